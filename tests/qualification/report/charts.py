"""Figures over time below the lanes: latency, calls, revisions, fences and memory; and the two whole pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.qualification.report.bins import LatencyBin, Window, latency_bins, risen, steps, whole
from tests.qualification.report.drawing import (
    LEFT,
    PLOT,
    RIGHT,
    Along,
    bar,
    duration,
    figure,
    fitted,
    nice_ceiling,
    number,
    path,
    rule,
    short,
    text,
    ticks,
)
from tests.qualification.report.lanes import (
    Picture,
    draw_faults,
    draw_leadership,
    draw_processes,
    draw_rows,
    events_of,
)
from tests.qualification.report.timeline import Lane, Sample, Series, Timeline

_FASTEST: Final = 0.001
_SLOWEST: Final = 30.0
_MOST_LINES: Final = 8
_DEFAULT_SCOPE: Final = "/default"
_MOST_LINES_OF_ALL: Final = 60
_LOOKS: Final = 4
_HOLE_BINS: Final = 3
"""Bins without an answer after which a latency's line is broken: nobody was answered."""


def overview(timeline: Timeline) -> str:
    """The whole run."""
    window = whole(timeline)
    picture = Picture(Along(window), timeline.began, whole=True)
    draw_rows(picture, timeline)
    _draw(picture, timeline, window, leadership=False)
    return figure(picture.y, picture.parts, label="Timeline of the whole run")


def closeup(timeline: Timeline, window: Window, name: str) -> str:
    """The part of the run in which one scenario was at it."""
    picture = Picture(Along(window), timeline.began)
    _draw(picture, timeline, window, leadership=True)
    return figure(picture.y, picture.parts, label=f"Timeline of {name}")


def _draw(picture: Picture, timeline: Timeline, window: Window, *, leadership: bool) -> None:
    draw_faults(picture, timeline)
    draw_processes(picture, timeline)
    if leadership:
        draw_leadership(picture, timeline)
    bins = latency_bins(timeline, window)
    if any(one.outcomes for one in bins):
        _draw_latency(picture, timeline, bins)
        _draw_calls(picture, timeline, bins)
    for series, head in (
        (Series.NAMESPACE_REVISION, "namespace revision"),
        (Series.INDEX_REVISION, "index revision"),
        (Series.FENCE, "fence"),
    ):
        _draw_lines(picture, timeline, series, head, short, height=76)
    _draw_lines(picture, timeline, Series.EMBEDDING_SECONDS, "embedding calls", duration, height=60)
    _draw_lines(picture, timeline, Series.RESIDENT_BYTES, "memory of servers", _mebibytes, height=60, unit=2.0**20)
    _draw_axis(picture)


def _draw_latency(picture: Picture, timeline: Timeline, bins: Sequence[LatencyBin]) -> None:
    height = 120.0
    top, bottom = picture.y + 4, picture.y + 4 + height
    _shade_faults(picture, timeline, top, bottom)
    span = math.log(_SLOWEST / _FASTEST)

    def y(seconds: float) -> float:
        if not math.isfinite(seconds):
            return math.nan
        return bottom - height * math.log(min(max(seconds, _FASTEST), _SLOWEST) / _FASTEST) / span

    picture.head("latency")
    for edge, name in ((0.001, "1 ms"), (0.01, "10 ms"), (0.1, "100 ms"), (1.0, "1 s"), (10.0, "10 s")):
        picture.parts.append(rule(y(edge)))
        picture.parts.append(text(LEFT - 8, y(edge) + 4, name, anchor="end", kind="dim"))
    for kind, name, values in (
        ("p99", "p99", [one.p99 for one in bins]),
        ("p50", "p50", [one.p50 for one in bins]),
    ):
        points = [(_middle(picture, place), y(value)) for place, value in enumerate(_bridged(values))]
        picture.parts.append(path(points, kind=kind, title=f"{name} of answered calls"))
        last = next((point for point in reversed(points) if math.isfinite(point[1])), None)
        if last is not None:
            # At the right, or the names of both lines would be far from where they end.
            picture.parts.append(text(LEFT + PLOT + 6, last[1] + (-2 if name == "p99" else 10), name, kind=kind))
    picture.y = bottom + 8


def _draw_calls(picture: Picture, timeline: Timeline, bins: Sequence[LatencyBin]) -> None:
    """Bars of ok, refused and unknown, one upon the other; the title of each bin has its figures."""
    height = 70.0
    top, bottom = picture.y + 4, picture.y + 4 + height
    _shade_faults(picture, timeline, top, bottom)
    window = picture.along.window
    most = nice_ceiling(max(sum(one.outcomes.values()) for one in bins) / window.bin_seconds)
    picture.head("calls each second")
    for value in (0.0, most / 2, most):
        level = bottom - height * value / most
        picture.parts.append(rule(level))
        picture.parts.append(text(LEFT - 8, level + 4, short(value), anchor="end", kind="dim"))
    wide = max(PLOT * window.bin_seconds / window.seconds - 0.4, 0.8)
    for place, one in enumerate(bins):
        if not one.outcomes:
            continue
        left = picture.along.x(window.began + place * window.bin_seconds)
        width = min(wide, LEFT + PLOT - left)
        level = bottom
        for outcome in ("ok", "refused", "unknown"):
            count = one.outcomes.get(outcome, 0)
            if count:
                tall = max(height * count / window.bin_seconds / most, 2.0 if outcome != "ok" else 0.5)
                level -= tall
                picture.parts.append(bar(left, level, width, tall, kind=f"calls {outcome}"))
        at = picture.since(window.began + place * window.bin_seconds)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(one.outcomes.items()))
        said = f"{at}: {counts}; p50 {duration(one.p50)}, p99 {duration(one.p99)}"
        picture.parts.append(bar(left, top, width, height, kind="pointer", title=said))
    x = LEFT + PLOT + 6
    for place, outcome in enumerate(("unknown", "refused", "ok")):
        picture.parts.append(bar(x, top + place * 16, 10, 10, kind=f"calls {outcome}"))
        picture.parts.append(text(x + 14, top + place * 16 + 9, outcome))
    picture.y = bottom + 8


def _draw_lines(
    picture: Picture,
    timeline: Timeline,
    series: Series,
    head: str,
    shown: Callable[[float], str],
    *,
    height: float,
    unit: float = 1.0,
) -> None:
    """The lines of a series, those with most changes if there are too many, each with its name at its end; in the
    picture of the whole run all of them, by no name. The axis ends at a round number of `unit`."""
    lines = _lines_of(timeline, series, picture.along.window)
    if not lines:
        return
    named = not picture.whole or len(lines) <= _MOST_LINES
    most_lines = _MOST_LINES if named else _MOST_LINES_OF_ALL
    chosen = sorted(lines, key=lambda key: (-len(lines[key]), key))[:most_lines]
    top, bottom = picture.y + 6, picture.y + 6 + height
    most = unit * nice_ceiling(max(sample.value for key in chosen for sample in lines[key]) / unit)
    _shade_faults(picture, timeline, top, bottom)
    picture.head(head)
    for value in (0.0, most / 2, most):
        level = bottom - height * value / most
        picture.parts.append(rule(level))
        picture.parts.append(text(LEFT - 8, level + 4, shown(value), anchor="end", kind="dim"))
    names: list[tuple[float, str, str]] = []
    for place, key in enumerate(sorted(chosen)):
        points = [(picture.along.x(one.at), bottom - height * one.value / most) for one in lines[key]]
        kind = f"l{place % _LOOKS}" if named else "l0"
        last = lines[key][-1].value
        picture.parts.append(path(points, kind=kind, title=f"{key or head}: {shown(last)} at the end", stepped=True))
        names.append((points[-1][1], key, kind))
    if named:
        _name_ends(picture, names, top)
    picture.y = bottom + 8
    if len(lines) > len(chosen):
        picture.parts.append(text(LEFT, picture.y + 6, f"and {len(lines) - len(chosen)} more", kind="dim"))
        picture.y += 12


def _lines_of(timeline: Timeline, series: Series, window: Window) -> Mapping[str, Sequence[Sample]]:
    found: dict[str, Sequence[Sample]] = {}
    for (one, key), samples in timeline.samples.items():
        if one is series:
            # A repeated command is answered with the revision that it made at first: no fall of the namespace's.
            shown = risen(samples) if series is Series.NAMESPACE_REVISION else samples
            found[key.removesuffix(_DEFAULT_SCOPE)] = steps(shown, window)
    return {key: kept for key, kept in found.items() if kept}


def _name_ends(picture: Picture, names: Sequence[tuple[float, str, str]], top: float) -> None:
    """Names beside where lines end, moved apart so that none covers another."""
    free = top - 4
    for y, name, kind in sorted(names):
        at = max(y + 4, free + 11)
        picture.parts.append(fitted(LEFT + PLOT + 6, at, name, RIGHT - 10, kind=kind))
        free = at


def _shade_faults(picture: Picture, timeline: Timeline, top: float, bottom: float) -> None:
    """Behind a chart, where anything was broken: one shape, since every chart has it."""
    spans: list[list[float]] = []
    for event in events_of(timeline, Lane.FAULT, picture):
        left = picture.along.x(event.began)
        right = max(picture.along.x(picture.end_of(event)), left + 1.0)
        if spans and left <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], right)
        else:
            spans.append([left, right])
    if spans:
        tall = number(bottom - top)
        boxes = [
            f"M{number(left)} {number(top)}h{number(right - left)}v{tall}H{number(left)}z" for left, right in spans
        ]
        picture.parts.append(f'<path d="{"".join(boxes)}" class="shade"/>')


def _draw_axis(picture: Picture) -> None:
    picture.parts.append(rule(picture.y, kind="axis"))
    for at, said in ticks(picture.along.window, picture.origin):
        x = picture.along.x(at)
        picture.parts.append(f'<path d="M{x:.1f} {picture.y:.1f}v5" class="axis"/>')
        picture.parts.append(text(x, picture.y + 18, said, anchor="middle", kind="dim"))
    picture.parts.append(text(0, picture.y + 18, "since the run began", kind="dim"))
    picture.y += 24


def _middle(picture: Picture, place: int) -> float:
    window = picture.along.window
    return picture.along.x(window.began + (place + 0.5) * window.bin_seconds)


def _bridged(values: Sequence[float]) -> Sequence[float]:
    """The values with short holes filled by what was before them, so that a slow second does not break the line."""
    kept: list[float] = []
    hole = _HOLE_BINS
    for value in values:
        hole = 0 if math.isfinite(value) else hole + 1
        kept.append(value if hole == 0 or hole >= _HOLE_BINS or not kept else kept[-1])
    return kept


def _mebibytes(value: float) -> str:
    return f"{value / 2**20:.0f} MiB"
