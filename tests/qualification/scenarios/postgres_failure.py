"""Row 5: the database crashes, is promoted, and loses connections in the middle of commits."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Sequence, Set
from contextlib import suppress
from typing import Final

from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.qualification.checks.doubts import ended_since, in_doubt, one_sided, unsettled
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.faults.fault import Fault
from tests.qualification.faults.postgres import (
    COMMIT_SWALLOWED,
    COMMIT_UNANSWERED,
    COMMIT_UNHEARD,
    CommitCut,
    ConnectionsCut,
    NextCommits,
    PrimaryCrashed,
    StandbyLost,
    StandbyPromoted,
)
from tests.qualification.recorder.history import Key
from tests.qualification.report.timeline import Lane
from tests.qualification.scenarios.endurance import endure, spans_of, traffic_on
from tests.qualification.scenarios.past_faults import READS_WITHOUT_STANDBY, REPETITIONS_WITHOUT_STANDBY
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.traffic import Traffic

_MOST_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2
_ENOUGH: Final = 3
"""One of them may turn out to change nothing, as what is remembered twice."""
_CUT: Final = frozenset({"OUTCOME_UNKNOWN"})
"""What the service says of a commit whose connection ended."""


class OldPrimaryAnswers:
    """After a promotion the old primary comes back as it was: it takes connections and writes, and is out of date.

    It stays for 2 to 4 s before it becomes the standby. Whoever believed it would read what is old, and write what
    nobody else will ever see.
    """

    name = "return of the old PostgreSQL primary"

    def available(self, cluster: Cluster) -> bool:
        return cluster.postgres.waits_for_standby and cluster.postgres.standby.is_running

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        seconds = rng.uniform(2.0, 4.0)
        with cluster.timeline.span(Lane.FAULT, self.name, key=cluster.postgres.primary.name):
            await cluster.postgres.promote()
            await cluster.postgres.revive_old_primary()
            await asyncio.sleep(seconds)
            await cluster.postgres.rejoin()
        return 1


class CommitsCut:
    """Every commit is cut, and each of its repetitions, until some callers give up and are in doubt; 60 s at most.

    Clients repeat what is in doubt, with the same request id: one commit that is cut is settled before anybody sees it.
    """

    def __init__(self, fault: CommitCut, traffic: Traffic) -> None:
        self.name = fault.name
        self._fate = fault.fate
        self._traffic = traffic

    def available(self, cluster: Cluster) -> bool:
        return True

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        commits = NextCommits(self._fate, None)
        with cluster.timeline.span(Lane.FAULT, self.name), commits.to(cluster):
            began = time.monotonic()
            # What is sent again may have been done before.
            known = [{call.key for call in one.recorder.calls_so_far()} for one in self._traffic.tenancies]
            with suppress(WaitTimeoutError):
                await wait_until_async(
                    lambda: self._in_doubt(began, known) >= _ENOUGH, _MOST_SECONDS, interval=_LOOK_SECONDS
                )
        return commits.struck

    def _in_doubt(self, since: float, known: Sequence[Set[Key]]) -> int:
        """How many commands that are not known yet were sent first since then, and are in doubt."""
        count = 0
        for history, before in zip(self._traffic.histories, known, strict=True):
            recent = ended_since(history.calls, since)
            doubts = in_doubt(recent, {}, [(since, math.inf)], reasons=_CUT, within=True)
            count += len({doubt.call.key for doubt in doubts} - before)
        return count


def _faults(traffic: Traffic) -> Sequence[Fault]:
    return (
        PrimaryCrashed(),
        StandbyPromoted(),
        OldPrimaryAnswers(),
        StandbyLost(),
        ConnectionsCut(),
        CommitsCut(COMMIT_UNHEARD, traffic),
        CommitsCut(COMMIT_UNANSWERED, traffic),
        COMMIT_SWALLOWED,
    )


class PostgresFailure:
    row = 5
    name = "postgres_failure"
    promise = (
        "kill -9 and crash recovery; promotion of a synchronous standby; connection cut in the middle of a commit: no "
        "acknowledged write lost, none applied twice, unknown outcomes resolved by the same request id"
    )

    async def run(self, stage: Stage) -> None:
        traffic = traffic_on(stage)
        await endure(stage, traffic, _faults(traffic))
        _settled(stage, traffic)
        stage.result.caveats.append(
            "The harness promotes the standby as soon as it has killed the primary. How long it takes a deployment to "
            "find out that it has to is its own, and comes on top of the seconds without writes."
        )


def _settled(stage: Stage, traffic: Traffic) -> None:
    """Commits cut after they arrived are there, those that did not arrive are not, and callers learn which."""
    left, problems = 0, []
    for fault, applied in ((COMMIT_UNANSWERED, True), (COMMIT_UNHEARD, False)):
        spans = spans_of(stage, traffic, {fault.name})
        doubts = []
        for tenancy in traffic.tenancies:
            calls, committed = tenancy.history.calls, tenancy.committed
            problems += unsettled(in_doubt(calls, committed, spans), calls, committed)
            doubts += in_doubt(calls, committed, spans, reasons=_CUT, within=True)
        problems += [f"{fault.name}: {problem}" for problem in one_sided(doubts, applied=applied)]
        left += len(doubts)
        stage.result.figures[f"attempts_in_doubt: {fault.name}"] = len(doubts)
        stage.result.figures[f"attempts_in_doubt_and_applied: {fault.name}"] = sum(one.applied for one in doubts)
    stage.found("commits that were cut are settled by the same request id", left, problems)


SCENARIO: Final = PostgresFailure()
REGRESSIONS: Final = (READS_WITHOUT_STANDBY, REPETITIONS_WITHOUT_STANDBY)
