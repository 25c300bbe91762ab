"""Samples in bins of time, so that a page can hold hours of them, and figures of each method."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.qualification.report.results import Distribution, distribution
from tests.qualification.report.timeline import Sample, Series, Timeline

MOST_BINS: Final = 600
EDGES_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper edges of a histogram's bars; the last bar is for what is longer."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the monotonic clock, cut into bins of whole seconds."""

    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return max(self.ended - self.began, 1e-9)

    @property
    def bin_seconds(self) -> int:
        return max(1, math.ceil(self.seconds / MOST_BINS))

    @property
    def bins(self) -> int:
        return max(1, math.ceil(self.seconds / self.bin_seconds))

    def bin_of(self, at: float) -> int | None:
        """Where a time falls; None outside."""
        if not self.began <= at <= self.ended:
            return None
        return min(self.bins - 1, int((at - self.began) / self.bin_seconds))


@dataclass(frozen=True, slots=True)
class LatencyBin:
    """The calls that ended in one bin: how many of each outcome, and percentiles of those that were answered, in
    seconds; NaN if none was."""

    outcomes: Mapping[str, int]
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of one method. `histogram` counts its answers by `EDGES_SECONDS`."""

    outcomes: Mapping[str, int]
    of_answers: Distribution | None
    histogram: Sequence[int]


def outcome_of(key: str) -> tuple[str, str]:
    """(method, outcome) of the key of a latency."""
    method, _, outcome = key.rpartition(" ")
    return (method, outcome) if method else (outcome, "ok")


def whole(timeline: Timeline) -> Window:
    """From the beginning to the last that is known."""
    ends = [event.began if event.ended is None else event.ended for event in timeline.events]
    ends += [samples[-1].at for samples in timeline.samples.values() if samples]
    return Window(timeline.began, max([timeline.began + 1.0, *ends]))


def latency_bins(timeline: Timeline, window: Window) -> Sequence[LatencyBin]:
    """All methods together."""
    seconds: list[list[float]] = [[] for _ in range(window.bins)]
    outcomes: list[Counter[str]] = [Counter() for _ in range(window.bins)]
    for (series, key), samples in timeline.samples.items():
        if series is not Series.LATENCY_SECONDS:
            continue
        _, outcome = outcome_of(key)
        for sample in samples:
            place = window.bin_of(sample.at)
            if place is not None:
                outcomes[place][outcome] += 1
                if outcome == "ok":
                    seconds[place].append(sample.value)
    return [LatencyBin(counted, *_percentiles(values)) for counted, values in zip(outcomes, seconds, strict=True)]


def latency_by_method(timeline: Timeline, window: Window | None = None) -> Mapping[str, Latencies]:
    """Of all calls that ended in the window, by method in alphabetical order."""
    seconds: dict[str, list[float]] = {}
    outcomes: dict[str, Counter[str]] = {}
    for (series, key), samples in timeline.samples.items():
        if series is not Series.LATENCY_SECONDS:
            continue
        method, outcome = outcome_of(key)
        values = [one.value for one in samples if window is None or window.began <= one.at <= window.ended]
        if values:
            outcomes.setdefault(method, Counter())[outcome] += len(values)
            seconds.setdefault(method, []).extend(values if outcome == "ok" else ())
    return {
        method: Latencies(outcomes[method], distribution(seconds[method], "seconds"), histogram(seconds[method]))
        for method in sorted(outcomes)
    }


def histogram(seconds: Iterable[float]) -> Sequence[int]:
    """How many fall under each edge, and beyond the last."""
    counts = [0] * (len(EDGES_SECONDS) + 1)
    for value in seconds:
        counts[bisect.bisect_left(EDGES_SECONDS, value)] += 1
    return counts


def steps(samples: Sequence[Sample], window: Window) -> Sequence[Sample]:
    """The last value of each bin that has one: enough of what only rises, and of what is sampled all the time.

    A value that fell within a bin is kept too, as a fall is what a reader looks for.
    """
    kept: list[Sample] = []
    place_before: int | None = None
    for sample in samples:
        place = window.bin_of(sample.at)
        if place is None:
            continue
        if place == place_before and sample.value >= kept[-1].value:
            kept[-1] = sample
        else:
            kept.append(sample)
        place_before = place
    return kept


def risen(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Each with the highest value so far."""
    highest = -math.inf
    kept = []
    for sample in samples:
        highest = max(highest, sample.value)
        kept.append(Sample(sample.at, highest))
    return kept


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    found = distribution(values, "seconds")
    return (math.nan, math.nan) if found is None else (found.p50, found.p99)
