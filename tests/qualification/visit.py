"""A run against a deployment: the rows that need nothing broken, and the others skipped with the reason."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.qualification.checks.hygiene import Forbidden, Scanner, Traces
from tests.qualification.deployment import Deployment, clean_up, isolate, race, use
from tests.qualification.report.machine import machine, versions
from tests.qualification.report.report import Report
from tests.qualification.report.results import RowResult
from tests.qualification.report.summary import line, problems
from tests.qualification.report.timeline import Lane
from tests.qualification.run import conclude, keep_traceback
from tests.qualification.scenarios.table import Row, rows
from tests.qualification.traffic.wording import phrases

USE: Final = Row(
    number=0,
    module="",
    name="use",
    promise="while everything is in use: no acknowledged write is lost or applied twice, revisions are linearizable, "
    "and no recall returns a wrong item or misses what it names",
    share=2,
)
_WRITERS: Final = 2
_ISOLATION: Final = 10
_READY_SECONDS: Final = 30.0
_ANYWAY_SECONDS: Final = 900.0
_NEEDS: Final[Mapping[int, str]] = {
    1: "servers would have to be killed",
    3: "a server would have to be paused",
    4: "the vector store would have to be broken",
    5: "the database would have to be broken",
    6: "the clock would have to be moved by months",
    7: "it needs the embedding provider of the harness",
    8: "it looks into the vector store",
    9: "the lines would have to be broken",
    10: "it takes a token of another tenant (--other-token-file)",
    11: "logs, metrics and spans of a deployment are not to be seen from here; the report was scanned all the same",
}
_PROMISES: Final[Mapping[int, str]] = {
    _WRITERS: "many writers on several connections, in one namespace: no acknowledged write is lost or applied twice, "
    "and a compare-and-set has one winner",
    _ISOLATION: "another tenant's namespace is denied, its ids are unknown, and recall returns nothing of it",
}
"""Of rows whose promise in the table is more than can be tried here."""
_Trial = Callable[[RowResult, float], Awaitable[None]]


class Visit:
    """`rows` are numbers of the table, 0 for its use; none: all that may be tried."""

    def __init__(
        self,
        deployment: Deployment,
        seed: int,
        minutes: float,
        rows: Collection[int],
        out: Path,
        *,
        command: str,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._deployment = deployment
        self._seed = seed
        self._minutes = minutes
        self._rows = frozenset(rows)
        self._out = out
        self._command = command
        self._say = say

    async def run(self) -> Report:
        """Try, put away what was made, and write the pack. Rows that were not named may be skipped without failing.

        Raises: MemoryServiceError if the deployment does not answer, or refuses the credential.
        """
        deployment = self._deployment
        async with deployment.connect(deployment.identity, deployment.mark) as client:
            info = await client.wait_until_ready(_READY_SECONDS)
            await client.get_change_token()
        report = Report(
            seed=self._seed,
            minutes=self._minutes,
            command=self._command,
            started_at=datetime.now(UTC),
            machine=machine(),
            versions={"deployment": info.version, **versions()},
            timeline=deployment.timeline,
            asked=self._rows or frozenset(self._trials()),
        )
        forbidden = Forbidden(secrets=deployment.secrets, words=[deployment.canary], texts=phrases())
        report.holds = Scanner(forbidden).holds
        self._out.mkdir(parents=True, exist_ok=True)
        turns = self._turns()
        try:
            for row in turns:
                result = await self._take(row, report)
                report.results.append(result)
                self._say(line(result))
                for problem in problems(report, result):
                    self._say(f"      {problem}")
        except asyncio.CancelledError:
            report.caveats.insert(0, "The run was ended before it was done.")
            ended = "the run was ended before this was done"
            report.results += [_result(row, error=ended) for row in turns[len(report.results) :]]
        await self._put_away(report)
        report.caveats.append("Nothing was broken: what a deployment does under faults was not tried.")
        await conclude(report, self._out, Traces(forbidden=forbidden), self._say)
        return report

    def _turns(self) -> Sequence[Row]:
        named = self._rows - {USE.number}
        chosen = rows(named) if named or not self._rows else ()
        return (USE, *chosen) if not self._rows or USE.number in self._rows else chosen

    def _trials(self) -> Mapping[int, _Trial]:
        """What may be tried, by row."""
        deployment, seed = self._deployment, self._seed

        async def isolated(result: RowResult, seconds: float) -> None:
            await isolate(deployment, result)
            result.caveats.append("Some calls of each kind were tried, not every RPC; nothing was timed, no skew made.")

        async def raced(result: RowResult, seconds: float) -> None:
            await race(deployment, result, seconds, seed)
            result.caveats.append(
                "One process wrote, to as many replicas as there may be: neither many processes nor the records and "
                "publications of the index were looked at."
            )

        trials: dict[int, _Trial] = {
            USE.number: lambda result, seconds: use(deployment, result, seconds, seed),
            _WRITERS: raced,
        }
        return {**trials, _ISOLATION: isolated} if deployment.other is not None else trials

    async def _take(self, row: Row, report: Report) -> RowResult:
        trial = self._trials().get(row.number)
        if trial is None:
            result = _result(row)
            result.skipped = True
            result.caveats.append(f"Not tried: {_NEEDS[row.number]}.")
            return result
        result = _result(replace(row, promise=_PROMISES.get(row.number, row.promise)))
        seconds = self._minutes * 60 * (0.5 if row is USE else 0.3)
        began = time.monotonic()
        with self._deployment.timeline.span(Lane.ROW, row.name, key=str(row.number)):
            try:
                async with asyncio.timeout(seconds + _ANYWAY_SECONDS):
                    await trial(result, seconds)
            except Exception as error:  # noqa: BLE001 - whatever it is, this row failed, and the others are tried
                keep_traceback(self._out, row.name, error, report)
                result.error = f"{type(error).__name__}: {error}"
        result.seconds = time.monotonic() - began
        return result

    async def _put_away(self, report: Report) -> None:
        deployment = self._deployment
        left = await clean_up(deployment)
        said = (
            f"{left.retired} memories were retired, {left.rejected} candidates rejected and {left.closed} sessions "
            "closed"
        )
        failed = f"; {left.failures} calls for that failed" if left.failures else ""
        report.caveats.append(
            f"Left in the deployment: {len(deployment.scopes)} namespaces with scopes {deployment.mark}-…; "
            f"{said}{failed}. Their history stays, as nothing deletes it."
        )


def _result(row: Row, *, error: str = "") -> RowResult:
    return RowResult(row=row.number, name=row.name, promise=row.promise, error=error)
