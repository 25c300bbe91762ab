"""A run: each row in order on one cluster, what each found, and the report of it."""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.qualification.checks.hygiene import Scanner, Traces
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.report.bins import Window, latency_by_method
from tests.qualification.report.machine import machine, versions
from tests.qualification.report.pack import REPORT_HTML, sign, write
from tests.qualification.report.report import Report
from tests.qualification.report.results import Finding, RowResult
from tests.qualification.report.summary import line, problems
from tests.qualification.report.timeline import Lane, Timeline
from tests.qualification.scenarios.stage import Scenario, Stage
from tests.qualification.scenarios.table import (
    BY_NUMBER,
    EXPLORING,
    ROWS,
    MissingRowError,
    Row,
    regressions_of,
    rows,
    scenario_of,
)
from tests.qualification.stand import OpenCluster, Stand, logs_of

STANDARD_MINUTES: Final = 10.0
"""What every row takes together; a run that is longer than `LONG_MINUTES` explores for the rest of its time."""
LONG_MINUTES: Final = 12.0
HYGIENE: Final = 11
_LOG: Final = "run.log"
_MOST_PROBLEMS: Final = 12
"""Of the last look that are said at the terminal."""

_SHARED: Final = 0.8
"""Of the time that is asked for, what scenarios are given to fill; the rest is for what they have to do anyway."""
_ANYWAY_SECONDS: Final = 900.0
"""How slow a machine is is not judged: this is for what hangs."""
_SCANNED_BYTES_PER_SECOND: Final = 1_000_000
"""At the very least, where nothing hangs."""
_REGRESSION_SECONDS: Final = 5.0
_HEALTHY_SECONDS: Final = 180.0
_CANCEL_SECONDS: Final = 30.0
_CANCEL_AGAIN_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One scenario, or what is wrong with finding it."""

    row: int
    name: str
    promise: str
    seconds: float
    prefix: str
    scenario: Scenario | None
    error: str = ""

    @property
    def deadline_seconds(self) -> float:
        """What it may take at most: it has to do things anyway, whose time is not that which it was given."""
        return 2 * self.seconds + _ANYWAY_SECONDS


class Run:
    """Does what was asked for, once.

    `rows` are numbers of the table, 0 among them for exploring; none: all rows, and exploring if there is time.
    `command` is what does the same again, for the report.
    `service_root` is a folder with the package `durable_memory` for the servers, by default the tree's own.
    """

    def __init__(
        self,
        seed: int,
        minutes: float,
        rows: Collection[int],
        out: Path,
        service_root: Path | None = None,
        *,
        command: str,
        say: Callable[[str], None] = lambda line: None,
        open_cluster: OpenCluster | None = None,
        find: Callable[[Row], tuple[Scenario, Sequence[Scenario]]] | None = None,
    ) -> None:
        self._seed = seed
        self._minutes = minutes
        self._rows = frozenset(rows)
        self._out = out
        self._say = say
        self._timeline = Timeline()
        self._find = find or _find
        self._open = open_cluster or _cluster_of(seed, service_root, out / "logs")
        self._stragglers: list[asyncio.Task[None]] = []
        self._command = command

    async def run(self) -> Report:
        """Run, and write the pack. Raises nothing for what went wrong: the report has it.

        One that is cancelled ends the scenario that is under way and writes what there is; the rows that are left fail.
        Raises: ValueError for a row that the table does not have.
        """
        turns = self._turns()
        report = Report(
            seed=self._seed,
            minutes=self._minutes,
            command=self._command,
            started_at=datetime.now(UTC),
            machine=machine(),
            versions=versions(),
            timeline=self._timeline,
        )
        self._out.mkdir(parents=True, exist_ok=True)
        async with Stand(self._open, self._timeline, self._out / "logs") as stand:
            try:
                for turn in turns:
                    result = await self._take(turn, stand, report)
                    report.results.append(result)
                    self._say(line(result))
                    for problem in problems(report, result):
                        self._say(f"      {problem}")
            except asyncio.CancelledError:
                for turn in turns[len(report.results) :]:
                    report.results.append(_result(turn, error="the run was ended before this was done"))
                    self._say(line(report.results[-1]))
                report.caveats.insert(0, "The run was ended before it was done.")
            await stand.end()
            for straggler in self._stragglers:
                straggler.cancel()
            await conclude(report, self._out, stand.traces(), self._say)
        return report

    async def _take(self, turn: _Turn, stand: Stand, report: Report) -> RowResult:
        result = _result(turn, error=turn.error)
        if turn.scenario is None:
            return result
        began = time.monotonic()
        with self._timeline.span(Lane.ROW, turn.name, key=str(turn.row)):
            try:
                cluster = await stand.cluster(_HEALTHY_SECONDS)
            except Exception as error:  # noqa: BLE001 - whatever keeps it from starting fails the row
                keep_traceback(self._out, f"{turn.name}: the cluster does not start", error, report)
                result.error = f"the cluster does not start: {type(error).__name__}: {error}"
                return result
            report.holds = Scanner(stand.traces().forbidden).holds
            stage = Stage(
                cluster=cluster,
                rng=random.Random(f"{self._seed}/{turn.prefix}"),
                seconds=turn.seconds,
                prefix=turn.prefix,
                result=result,
                traces=stand.traces,
            )
            deadline = turn.deadline_seconds + (_scan_seconds(stand.traces()) if turn.row == HYGIENE else 0.0)
            await self._play(turn.scenario, stage, deadline, report, stand)
            result.seconds = time.monotonic() - began
            if result.error:
                _count_calls(result, self._timeline, began)
            if stand.is_open:
                await _see_healthy(stand, result)
        return result

    async def _play(self, scenario: Scenario, stage: Stage, seconds: float, report: Report, stand: Stand) -> None:
        """Run a scenario for so many seconds at most. What it raises becomes the error of its result.

        One that does not end when it is told to loses its cluster, so that whatever it still does is done to nobody
        else's; and it is told again until it ends.
        """
        task = asyncio.create_task(scenario.run(stage))
        stuck = False
        try:
            await asyncio.wait([task], timeout=seconds)
        finally:
            late = not task.done()
            if late:
                task.cancel()
                await asyncio.wait([task], timeout=_CANCEL_SECONDS)
                stuck = not task.done()
            if stuck:
                self._stragglers.append(asyncio.create_task(_cancel_until_done(task)))
                await stand.end()
        if late:
            stage.result.error = f"it was not done after {seconds:.0f} seconds"
        if stuck:
            stage.result.error += f", went on for {_CANCEL_SECONDS:.0f} more, and lost its cluster"
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            keep_traceback(self._out, scenario.name, error, report)
            stage.result.error = stage.result.error or f"{type(error).__name__}: {error}"

    def _turns(self) -> list[_Turn]:
        """In order, each with its share of the time. Hygiene comes last: it looks at what all others left."""
        long = self._minutes > LONG_MINUTES and not self._rows
        table = self._rows - {EXPLORING.number}
        chosen = rows(table) if table or not self._rows else ()
        explores = EXPLORING.number in self._rows
        minutes = STANDARD_MINUTES if long else self._minutes
        shares = sum(row.share for row in chosen) + (EXPLORING.share if explores else 0.0)
        second = _SHARED * minutes * 60 / shares
        turns = [turn for row in chosen if row.number != HYGIENE for turn in self._of(row, row.share * second)]
        if long:
            turns += self._of(EXPLORING, (self._minutes - STANDARD_MINUTES) * 60)
        elif explores:
            turns += self._of(EXPLORING, EXPLORING.share * second)
        turns += [turn for row in chosen if row.number == HYGIENE for turn in self._of(row, row.share * second)]
        return turns

    def _of(self, row: Row, seconds: float) -> Sequence[_Turn]:
        try:
            scenario, regressions = self._find(row)
        except MissingRowError as error:
            return [_turn(row, None, seconds=0.0, error=str(error))]
        return [
            _turn(row, scenario, seconds=seconds),
            *(
                _Turn(
                    row=row.number,
                    name=f"regression: {one.name}",
                    promise=one.promise,
                    seconds=_REGRESSION_SECONDS,
                    prefix=f"q{row.number:02d}r{place}",
                    scenario=one,
                )
                for place, one in enumerate(regressions, start=1)
            ),
        ]


async def _cancel_until_done(task: asyncio.Task[None]) -> None:
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_SECONDS)
    if not task.cancelled():
        task.exception()  # seen: its result says already that it was not done


async def conclude(report: Report, out: Path, traces: Traces, say: Callable[[str], None]) -> None:
    """Write the pack, look through it and all that was left, and say where it is and how to do it again."""
    report.seconds = time.monotonic() - report.timeline.began
    tried = {result.row for result in report.results}
    report.not_run = [row.number for row in ROWS if row.number not in tried]
    log = out / _LOG
    if log.exists():
        traces = traces | Traces(files=[log])
    await asyncio.to_thread(write, out, report)
    found = await asyncio.to_thread(sign, out, traces)
    if found.problems:
        _blame(report, found.problems)
        await asyncio.to_thread(write, out, report)
        say(f"{found.files} files that are left were looked through, and hold what they must not:")
        for problem in found.problems[:_MOST_PROBLEMS]:
            say(f"      {report.shown(problem)}")
        if len(found.problems) > _MOST_PROBLEMS:
            say(f"      and {len(found.problems) - _MOST_PROBLEMS} more")
    if report.left_out:
        say(report.left_out)
    say(f"{report.verdict.upper()}: {out / REPORT_HTML}")
    if not report.passed:
        say(f"again: {report.command}")


def keep_traceback(out: Path, what: str, error: BaseException, report: Report) -> None:
    """Add it to the log of the run, without the lines that tell content."""
    said = "".join(traceback.format_exception(error)).splitlines()
    with (out / _LOG).open("a", encoding="utf-8") as file:
        file.write("\n".join([f"== {what}", *map(report.shown, said), ""]))


def _turn(row: Row, scenario: Scenario | None, *, seconds: float, error: str = "") -> _Turn:
    return _Turn(
        row=row.number,
        name=row.name,
        promise=row.promise,
        seconds=seconds,
        prefix=f"q{row.number:02d}",
        scenario=scenario,
        error=error,
    )


def _find(row: Row) -> tuple[Scenario, Sequence[Scenario]]:
    return scenario_of(row), regressions_of(row)


def _result(turn: _Turn, *, error: str = "") -> RowResult:
    return RowResult(row=turn.row, name=turn.name, promise=turn.promise, error=error)


def _count_calls(result: RowResult, timeline: Timeline, began: float) -> None:
    """What was done by the time at which a scenario broke down, which had not counted it yet."""
    for method, latencies in latency_by_method(timeline, Window(began, time.monotonic())).items():
        for outcome, count in latencies.outcomes.items():
            counted = result.operations.attempts[method, outcome]
            result.operations.attempts[method, outcome] = max(counted, count)


def _scan_seconds(traces: Traces) -> float:
    """What a scan may take at most: the longer the run, the more there is to look through."""
    there = sum(path.stat().st_size for path in traces.files if path.is_file())
    return there / _SCANNED_BYTES_PER_SECOND


async def _see_healthy(stand: Stand, result: RowResult) -> None:
    """A scenario mends what it breaks: a cluster that does not get healthy again is its fault."""
    found = await stand.problems(_HEALTHY_SECONDS)
    if found:
        result.findings.append(
            Finding(check="the cluster is healthy again", looked_at=1, problems=[f"after it: {one}" for one in found])
        )
        await stand.end()


def _blame(report: Report, found: Sequence[str]) -> None:
    """What the scan of the finished pack found belongs to the row that promises there is nothing."""
    finding = Finding(check="nothing in the finished pack and the logs", looked_at=1, problems=list(found))
    for result in report.results:
        if result.row == HYGIENE:
            result.findings.append(finding)
            return
    row = BY_NUMBER[HYGIENE]
    report.results.append(RowResult(row=row.number, name=row.name, promise=row.promise, findings=[finding]))


def _cluster_of(seed: int, service_root: Path | None, logs: Path) -> OpenCluster:
    def open_cluster(folder: Path, timeline: Timeline, number: int) -> Cluster:
        kept = logs_of(logs, number)
        kept.mkdir(parents=True, exist_ok=True)
        # At once where it is kept: there is one disk whose room is looked at, and nothing of this size is copied.
        telemetry = kept / "otlp.bin"
        return Cluster(folder, timeline=timeline, service_root=service_root, seed=seed + number, telemetry=telemetry)

    return open_cluster
