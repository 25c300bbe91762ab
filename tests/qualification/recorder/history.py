"""What happened, as the callers know it: each attempt of each command, and what its answer promised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

Key = tuple[str, str]
"""Method and request id: what identifies a command in its namespace."""


_BEFORE_THE_LOOKUP = frozenset({"NOT_SERVING", "DEPENDENCY_UNAVAILABLE", "OVERLOADED", "RATE_LIMITED"})
"""Refusals that do not look at the request id, so that they say nothing about other attempts."""


class Outcome(Enum):
    """What the caller of one attempt knows about it."""

    OK = "ok"
    REFUSED = "refused"
    """This attempt certainly changed nothing."""
    UNKNOWN = "unknown"


class Fate(Enum):
    """What the caller knows about a command after all of its attempts."""

    APPLIED = "applied"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What an answer says for ever: a repetition has to say the same.

    `revision` is the namespace revision of the change set that the command made; None if it made none.
    """

    revision: int | None
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt. Times are monotonic seconds, `wall` is its begin by the clock on the wall."""

    method: str
    request_id: str
    began: float
    ended: float
    outcome: Outcome
    reason: str = ""
    effect: Effect | None = None
    history_id: str = ""
    token_revision: int | None = None
    wall: float = 0.0

    @property
    def key(self) -> Key:
        return (self.method, self.request_id)

    @property
    def is_verdict(self) -> bool:
        """Whether it was refused for what it asked. The request id is looked up first, so this speaks of the command:
        no attempt before it was applied."""
        return self.outcome is Outcome.REFUSED and self.reason not in _BEFORE_THE_LOOKUP


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A change token that was read."""

    began: float
    ended: float
    history_id: str
    revision: int


def fate(attempts: Iterable[Call]) -> Fate:
    """What the attempts of one command, in order, say together."""
    known = Fate.REFUSED
    for call in attempts:
        if call.outcome is Outcome.OK:
            return Fate.APPLIED
        if call.outcome is Outcome.UNKNOWN:
            known = Fate.UNKNOWN
        elif call.is_verdict:
            known = Fate.REFUSED
    return known


def by_command(calls: Iterable[Call]) -> Mapping[Key, Sequence[Call]]:
    """The attempts of each command, in order."""
    attempts: dict[Key, list[Call]] = {}
    for call in calls:
        attempts.setdefault(call.key, []).append(call)
    return attempts
