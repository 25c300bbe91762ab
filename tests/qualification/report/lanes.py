"""The lanes of a timeline: what was broken, which process was what, and who held which lease."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.qualification.report.drawing import (
    CHARACTER,
    LEFT,
    PLOT,
    Along,
    bar,
    clock,
    cross,
    duration,
    name_of_line,
    text,
    tick,
)
from tests.qualification.report.timeline import Event, Lane, Timeline

_LINE: Final = 18
_MOST_KINDS: Final = 60
_MOST_PARTITIONS: Final = 8
_LASTING: Final = frozenset({"running", "primary", "standby", "paused"})
"""States of processes: one that has not ended lasts. Anything else without an end took no time."""
_KINDS: Final = {"standby": "quiet", "primary": "strong", "running": "quiet", "paused": "paused"}
_STARTED: Final = "started"
_PIXEL: Final = 1.6
_HOLDERS: Final = 6
"""How many holders have a look of their own."""


@dataclass(slots=True)
class Picture:
    """Grows downwards."""

    along: Along
    origin: float
    """When the run began."""
    whole: bool = False
    """Whether it shows the whole run."""
    parts: list[str] = field(default_factory=list)
    y: float = 0.0

    def since(self, at: float) -> str:
        return clock(at - self.origin)

    def end_of(self, event: Event) -> float:
        if event.ended is not None:
            return event.ended
        lasting = event.lane is Lane.LEADERSHIP or (event.lane is Lane.PROCESS and event.label in _LASTING)
        return self.along.window.ended if lasting else event.began

    def head(self, said: str) -> None:
        self.parts.append(text(0, self.y + 13, said, kind="head"))

    def title(self, event: Event) -> str:
        ended = self.end_of(event)
        lasted = f", {duration(ended - event.began)}" if ended > event.began else ""
        of = f"{event.key}: " if event.key else ""
        return f"{of}{event.label} at {self.since(event.began)}{lasted}"


def events_of(timeline: Timeline, lane: Lane, picture: Picture) -> Sequence[Event]:
    """Those that the picture shows, in the order in which they began."""
    shown = [
        event
        for event in timeline.events
        if event.lane is lane and picture.along.shows(event.began, picture.end_of(event))
    ]
    return sorted(shown, key=lambda event: event.began)


def draw_rows(picture: Picture, timeline: Timeline) -> None:
    """Which scenario was at it."""
    rows = events_of(timeline, Lane.ROW, picture)
    if not rows:
        return
    picture.head("scenario")
    for place, event in enumerate(rows):
        left, right = _ends(picture, event)
        kind = "turn odd" if place % 2 else "turn"
        picture.parts.append(bar(left, picture.y, right - left, _LINE - 2, kind=kind, title=picture.title(event)))
        room = int((right - left - 6) / CHARACTER)
        said = f"{event.key} {event.label}" if event.key != "0" else event.label
        if len(said) > room:
            said = event.key if len(event.key) <= room else ""
        if said:
            picture.parts.append(text(left + 3, picture.y + 12, said))
    picture.y += _LINE + 4


def draw_faults(picture: Picture, timeline: Timeline) -> None:
    """A line for each kind, in the order in which they first came."""
    by_kind: dict[str, list[Event]] = {}
    for event in events_of(timeline, Lane.FAULT, picture):
        by_kind.setdefault(event.label, []).append(event)
    if not by_kind:
        return
    picture.head("faults")
    picture.y += 18
    for kind in list(by_kind)[:_MOST_KINDS]:
        picture.parts.append(name_of_line(picture.y + 11, kind))
        for event in _seen(picture, by_kind[kind]):
            left, right = _ends(picture, event)
            title = picture.title(event)
            picture.parts.append(bar(left, picture.y + 1, max(right - left, 3), 12, kind="fault", title=title))
            if event.key and right - left > len(event.key) * CHARACTER + 8:
                picture.parts.append(text(left + 4, picture.y + 11, event.key, kind="on"))
        picture.y += 16
    if len(by_kind) > _MOST_KINDS:
        _say(picture, f"and {len(by_kind) - _MOST_KINDS} more kinds")
    picture.y += 8


def draw_processes(picture: Picture, timeline: Timeline) -> None:
    """A line for each: thick while it is primary, thin while it is standby or runs; a cross where it was killed."""
    by_key: dict[str, list[Event]] = {}
    for event in events_of(timeline, Lane.PROCESS, picture):
        by_key.setdefault(event.key or "other", []).append(event)
    if by_key:
        picture.head("processes")
        said = "thick: primary; thin: standby, or a server that runs; a stroke: started; a cross: killed"
        picture.parts.append(text(LEFT, picture.y + 12, said, kind="dim"))
        picture.y += 16
    for key in sorted(by_key):
        picture.parts.append(name_of_line(picture.y + 12, key))
        for event in sorted(_seen(picture, by_key[key]), key=lambda event: picture.end_of(event) == event.began):
            left, right = _ends(picture, event)
            kind = _KINDS.get(event.label, "busy")
            if right <= left:
                sign = tick if event.label == _STARTED else cross
                picture.parts.append(sign(left, picture.y + 8, title=picture.title(event)))
                continue
            inset = {"strong": 2.0, "paused": 2.0, "busy": 2.0}.get(kind, 5.5)
            height = _LINE - 4 - 2 * (inset - 2)
            picture.parts.append(
                bar(left, picture.y + inset, right - left, height, kind=kind, title=picture.title(event))
            )
            if kind in ("strong", "paused", "busy") and right - left > len(event.label) * CHARACTER + 8:
                picture.parts.append(text(left + 4, picture.y + 12.5, event.label, kind="on"))
        picture.y += _LINE
    if by_key:
        picture.y += 8


def draw_leadership(picture: Picture, timeline: Timeline) -> None:
    """A line for each partition, those that changed hands most often first; each holder has a look of its own."""
    by_partition: dict[str, list[Event]] = {}
    for event in events_of(timeline, Lane.LEADERSHIP, picture):
        by_partition.setdefault(event.key, []).append(event)
    chosen = sorted(by_partition, key=lambda key: (-len(by_partition[key]), key))[:_MOST_PARTITIONS]
    if not chosen:
        return
    looks = {holder: place for place, holder in enumerate(_holders(by_partition[key] for key in chosen))}
    picture.head("who holds the lease")
    picture.y += 16
    for key in sorted(chosen):
        picture.parts.append(name_of_line(picture.y + 11, key))
        for event in _seen(picture, by_partition[key]):
            left, right = _ends(picture, event)
            kind = f"holder h{looks[_holder(event)] % _HOLDERS}"
            picture.parts.append(
                bar(left, picture.y + 1, right - left, _LINE - 5, kind=kind, title=picture.title(event))
            )
            if right - left > len(event.label) * CHARACTER + 8:
                picture.parts.append(text(left + 4, picture.y + 11.5, event.label, kind="on"))
        picture.y += _LINE - 2
    if len(by_partition) > len(chosen):
        _say(picture, f"and {len(by_partition) - len(chosen)} more partitions")
    _legend(picture, looks)
    picture.y += 8


def _legend(picture: Picture, looks: Mapping[str, int]) -> None:
    x = float(LEFT)
    for holder, place in looks.items():
        if x + len(holder) * CHARACTER + 30 > LEFT + PLOT:
            picture.parts.append(text(x, picture.y + 12, "…"))
            break
        picture.parts.append(bar(x, picture.y + 3, 10, 10, kind=f"holder h{place % _HOLDERS}"))
        picture.parts.append(text(x + 14, picture.y + 12, holder))
        x += len(holder) * CHARACTER + 34
    picture.y += 16


def _holder(event: Event) -> str:
    return event.label.split(" ")[0]


def _holders(groups: Iterable[Sequence[Event]]) -> Sequence[str]:
    return list(dict.fromkeys(_holder(event) for events in groups for event in events))


def _seen(picture: Picture, events: Iterable[Event]) -> Iterator[Event]:
    """Without those that would lie within a pixel or two of one that is alike: hours have many."""
    drawn: dict[str, float] = {}
    for event in events:
        left, right = _ends(picture, event)
        kind = _holder(event) if event.lane is Lane.LEADERSHIP else event.label
        if right < drawn.get(kind, -1.0) + _PIXEL:
            continue
        drawn[kind] = max(right, left)
        yield event


def _ends(picture: Picture, event: Event) -> tuple[float, float]:
    return picture.along.x(event.began), picture.along.x(picture.end_of(event))


def _say(picture: Picture, said: str) -> None:
    picture.parts.append(text(LEFT, picture.y + 11, said, kind="dim"))
    picture.y += 16
