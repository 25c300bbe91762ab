"""Commands that a fault left in doubt: whether there were any, and whether their request ids told their end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.qualification.recorder.history import Call, Fate, Key, Outcome, by_command, fate

Span = tuple[float, float]
"""Beginning and end by the monotonic clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """An attempt at a change of which its caller did not learn the outcome, and whether it did it."""

    call: Call
    applied: bool
    """Whether the command's change set was committed after this attempt began, and before the next one did."""


def ended_since(calls: Sequence[Call], moment: float) -> list[Call]:
    """The last of the attempts, which are in the order of their ends: those that ended at this moment or later."""
    return list(itertools.takewhile(lambda call: call.ended >= moment, reversed(calls)))[::-1]


def in_doubt(
    calls: Iterable[Call],
    committed: Mapping[Key, float],
    spans: Collection[Span],
    *,
    reasons: Collection[str] = (),
    within: bool = False,
) -> list[Doubt]:
    """The attempts at changes of nodes that were under way while a fault lasted, and ended in doubt.

    A command whose answer says in the end that it changes nothing is none of them: nothing tells whether it was done.
    `committed` is when each change set was committed, by the clock on the wall. `reasons`: for these alone, if any.
    `within`: only those that began and ended while it lasted, so that nothing else was done to them.
    """
    found = []
    for key, attempts in by_command(calls).items():
        if any(call.effect is not None and call.effect.revision is None for call in attempts):
            continue
        for place, call in enumerate(attempts):
            if call.outcome is not Outcome.UNKNOWN or not call.writes or (reasons and call.reason not in reasons):
                continue
            first, last = (call.began, call.ended) if within else (call.ended, call.began)
            if any(began <= first and last <= ended for began, ended in spans):
                following = attempts[place + 1].wall if place + 1 < len(attempts) else math.inf
                applied = key in committed and call.wall <= committed[key] < following
                found.append(Doubt(call=call, applied=applied))
    return found


def unsettled(doubts: Iterable[Doubt], calls: Iterable[Call], committed: Collection[Key]) -> list[str]:
    """After everything was repeated, each of them is known by its request id, as what the history says it is."""
    attempts = by_command(calls)
    found = []
    for key in dict.fromkeys(doubt.call.key for doubt in doubts):
        known = fate(attempts[key])
        if known is Fate.UNKNOWN:
            found.append(f"{key[0]} {key[1]} is still in doubt")
        elif (key in committed) and known is not Fate.APPLIED:
            found.append(f"{key[0]} {key[1]} was applied, and its caller was told that it was {known.value}")
    return found


def one_sided(doubts: Sequence[Doubt], *, applied: bool) -> list[str]:
    """Of what was cut before it arrived nothing was applied by that, and there was something.

    Of what was cut after it arrived (`applied`) something was. Not all of it: an attempt may repeat one that was, or
    have nothing to change.
    """
    found = [
        f"{doubt.call.method} {doubt.call.request_id} had been applied by an attempt that never arrived"
        for doubt in doubts
        if doubt.applied and not applied
    ]
    if not any(doubt.applied is applied for doubt in doubts):
        outcome = "had been applied" if applied else "had not been applied"
        found.append(f"of {len(doubts)} attempts in doubt none {outcome}")
    return found
