"""What happened when, for people and for checks: events with a lane, and samples of figures over time.

All times are seconds of the monotonic clock, which processes of one machine share.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum


class Lane(StrEnum):
    """Whose event it is; a report draws each lane by itself."""

    ROW = "row"
    FAULT = "fault"
    PROCESS = "process"
    LEADERSHIP = "leadership"


class Series(StrEnum):
    """What is sampled. `key` of a sample tells apart what has the same series: a partition, a method, a process."""

    LATENCY_SECONDS = "latency_seconds"
    """One finished call; `key` is "<method> <outcome>"."""
    NAMESPACE_REVISION = "namespace_revision"
    INDEX_REVISION = "index_revision"
    FENCE = "fence"
    EMBEDDING_SECONDS = "embedding_seconds"
    RESIDENT_BYTES = "resident_bytes"


@dataclass(slots=True, kw_only=True)
class Event:
    """Something that began, and perhaps ended. `label` holds no memory text and no credential."""

    lane: Lane
    label: str
    began: float
    ended: float | None = None
    key: str = ""
    """Tells apart what has the same lane: a partition, a process."""


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    value: float


@dataclass(slots=True)
class Timeline:
    """Grows while the harness runs. Belongs to one event loop."""

    began: float = field(default_factory=time.monotonic)
    events: list[Event] = field(default_factory=list)
    samples: dict[tuple[Series, str], list[Sample]] = field(default_factory=dict)

    def mark(self, lane: Lane, label: str, *, key: str = "") -> Event:
        """Something that takes no time, or whose end the caller sets later."""
        event = Event(lane=lane, label=label, began=time.monotonic(), key=key)
        self.events.append(event)
        return event

    @contextmanager
    def span(self, lane: Lane, label: str, *, key: str = "") -> Iterator[Event]:
        """Something that lasts as long as the block."""
        event = self.mark(lane, label, key=key)
        try:
            yield event
        finally:
            event.ended = time.monotonic()

    def sample(self, series: Series, value: float, *, key: str = "", at: float | None = None) -> None:
        self.samples.setdefault((series, key), []).append(Sample(time.monotonic() if at is None else at, value))
