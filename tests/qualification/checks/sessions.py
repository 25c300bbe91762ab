"""What must hold of sessions and of runs in them, whatever was restarted meanwhile. Each check returns what is wrong.

That the service was away, overloaded or late is no verdict: such attempts are neither problems nor looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tests.qualification.recorder.history import AWAY, Begun, BegunAgain, Recorded, Resumed

Restart: TypeAlias = tuple[float, float]
"""When a server was told to end, or was killed, and when it served again."""

_DIGITS = 12


def drifted_ones(resumed: Iterable[Resumed]) -> Sequence[Resumed]:
    """The attempts to resume with a binding that drifted, of which the service decided."""
    return [one for one in resumed if one.drifted and _is_decided(one.got, one.reason)]


def own_ones(resumed: Iterable[Resumed]) -> Sequence[Resumed]:
    """The attempts to resume with the session's own binding, of which the service decided."""
    return [one for one in resumed if one.asked and not one.drifted and _is_decided(one.got, one.reason)]


def drift_accepted(resumed: Iterable[Resumed]) -> list[str]:
    """A binding that drifted is refused, and for no other reason than that it drifted."""
    return [
        f"session {one.session_id} was resumed with a binding that drifted"
        if one.got
        else f"session {one.session_id} was refused with {one.reason}, and its binding drifted"
        for one in drifted_ones(resumed)
        if one.reason != "BINDING_DRIFT"
    ]


def wrong_bindings(resumed: Iterable[Resumed]) -> list[str]:
    """A session is resumed as exactly what it was bound to, whenever that is asked for; it is bound once."""
    found = []
    bound: dict[str, str] = {}
    for one in sorted(resumed, key=lambda one: one.began):
        if one.drifted or not _is_decided(one.got, one.reason):
            continue
        if not one.got:
            found.append(f"session {one.session_id} was refused as what it is bound to ({one.reason})")
            continue
        first = bound.setdefault(one.session_id, one.got)
        if first != one.got:
            found.append(f"session {one.session_id} was bound to {first[:_DIGITS]}, and is to {one.got[:_DIGITS]}")
        if one.asked and one.asked != one.got:
            expected = f"{one.asked[:_DIGITS]} was expected"
            found.append(f"session {one.session_id} was resumed as {one.got[:_DIGITS]}, and {expected}")
    return found


def collapsed_runs(begun: Iterable[Begun]) -> list[str]:
    """Each invocation of a run is one of its own, whatever its name was used for before, and keeps what it is."""
    by_incarnation: dict[str, set[str]] = defaultdict(set)
    by_context: dict[str, set[str]] = defaultdict(set)
    by_request: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for one in begun:
        by_incarnation[one.incarnation].add(one.request_id)
        by_context[one.context_id].add(one.request_id)
        by_request[one.request_id].add((one.incarnation, one.context_id))
    return [
        *(f"invocations {sorted(of)} are one incarnation" for of in by_incarnation.values() if len(of) > 1),
        *(f"invocations {sorted(of)} have one context" for of in by_context.values() if len(of) > 1),
        *(f"invocation {key} is of several: {sorted(of)}" for key, of in by_request.items() if len(of) > 1),
    ]


def decided(again: Iterable[BegunAgain]) -> Sequence[BegunAgain]:
    """The run ids that were begun again, where the service decided."""
    return [one for one in again if _is_decided(one.got, one.reason)]


def after_a_restart(again: Iterable[BegunAgain], restarts: Iterable[Restart]) -> Sequence[BegunAgain]:
    """Those of which everything before was known before a restart, and that were begun again after it."""
    spans = list(restarts)
    return [
        one
        for one in decided(again)
        if any(one.known < ended_at and back_at < one.began for ended_at, back_at in spans)
    ]


def wrong_runs(again: Iterable[BegunAgain], recorded: Iterable[Recorded] = ()) -> list[str]:
    """A run id that is begun again is another run, if the one before has ended. If that is open in the same process it
    is refused as that. What is admitted in one of them is no event of the other."""
    events: dict[str, set[str]] = defaultdict(set)
    for event in recorded:
        events[event.incarnation].add(event.event_id)
    found = []
    for one in decided(again):
        said = f"run {one.run_id} of {one.session_id}, begun again,"
        if one.is_open and one.reason != "RUN_IDENTITY_CONFLICT":
            found.append(f"{said} was {one.got or one.reason}, and {one.before} was open")
        elif one.is_open:
            continue
        elif not one.got:
            found.append(f"{said} was refused ({one.reason}), and {one.before} had ended")
        elif one.got == one.before:
            found.append(f"{said} was taken for {one.before}, which had ended")
        elif one.outcome != "BEGUN":
            found.append(f"{said} is {one.got} by {one.outcome}, and {one.before} had ended")
        elif events[one.got] & events[one.before]:
            found.append(f"{said} has events of {one.before}: {sorted(events[one.got] & events[one.before])}")
    return found


def _is_decided(got: str, reason: str) -> bool:
    return bool(got) or (bool(reason) and reason not in AWAY)
