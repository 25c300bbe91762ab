"""Failures that are met again and again: which of them the log is told, so that an outage is no line a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from durable_memory.ports.runtime import Clock

_FIRST_PAUSE_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 600.0
_FORGOTTEN_SECONDS: Final = 1_800.0
"""A cause that was not met for so long is a new one: who met it may have left the work to another server."""

_SOURCES_KEPT: Final = 10_000


@dataclass(slots=True)
class Trouble:
    """One cause. `facts` is what the log is told of it, `times` how often it was met, `since` and `last` when first and
    last, on the monotonic clock in seconds.
    """

    facts: Mapping[str, str]
    since: float
    last: float
    times: int = 0
    told_again_at: float = 0.0
    pause: float = _FIRST_PAUSE_SECONDS
    sources: dict[str, None] = field(default_factory=dict)


class RepeatedFailures:
    """A cause is told when it is new and then ever more rarely; once all who met it are well again, it is over.

    Several may meet the same cause, and one may meet several in turn: neither makes a cause a new one.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[str, Trouble] = {}

    def met(self, source: str, cause: str, facts: Mapping[str, str]) -> Trouble | None:
        """What is to be told now, if anything."""
        now = self._clock.monotonic()
        trouble = self._troubles.get(cause)
        if trouble is None or now - trouble.last > _FORGOTTEN_SECONDS:
            trouble = self._troubles[cause] = Trouble(facts, since=now, last=now, told_again_at=now)
        trouble.times += 1
        trouble.last = now
        trouble.sources[source] = None
        if len(trouble.sources) > _SOURCES_KEPT:
            del trouble.sources[next(iter(trouble.sources))]
        if now < trouble.told_again_at:
            return None
        trouble.told_again_at = now + trouble.pause
        trouble.pause = min(2 * trouble.pause, _LONGEST_PAUSE_SECONDS)
        return trouble

    def well(self, source: str) -> list[Trouble]:
        """What is over, now that this one has met no failure."""
        over = []
        for cause, trouble in list(self._troubles.items()):
            if source in trouble.sources:
                del trouble.sources[source]
                if not trouble.sources:
                    over.append(self._troubles.pop(cause))
        return over
