"""Row 5: the database crashes, is promoted, and loses connections in the middle of commits."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from tests.qualification.cluster.cluster import Cluster
from tests.qualification.faults.fault import Fault
from tests.qualification.faults.postgres import (
    COMMIT_SWALLOWED,
    COMMIT_UNANSWERED,
    COMMIT_UNHEARD,
    ConnectionsCut,
    PrimaryCrashed,
    StandbyLost,
    StandbyPromoted,
)
from tests.qualification.report.timeline import Lane
from tests.qualification.scenarios.endurance import endure, traffic_on
from tests.qualification.scenarios.past_faults import READS_WITHOUT_STANDBY
from tests.qualification.scenarios.stage import Stage


class OldPrimaryAnswers:
    """After a promotion the old primary comes back as it was: it takes connections and writes, and is out of date.

    It stays for 2 to 4 s before it becomes the standby. Whoever believed it would read what is old, and write what
    nobody else will ever see.
    """

    name = "return of the old PostgreSQL primary"

    def available(self, cluster: Cluster) -> bool:
        return cluster.postgres.waits_for_standby and cluster.postgres.standby.is_running

    async def inject(self, cluster: Cluster, rng: random.Random) -> None:
        seconds = rng.uniform(2.0, 4.0)
        with cluster.timeline.span(Lane.FAULT, self.name, key=cluster.postgres.primary.name):
            await cluster.postgres.promote()
            await cluster.postgres.revive_old_primary()
            await asyncio.sleep(seconds)
            await cluster.postgres.rejoin()


_FAULTS: Final[tuple[Fault, ...]] = (
    PrimaryCrashed(),
    StandbyPromoted(),
    OldPrimaryAnswers(),
    StandbyLost(),
    ConnectionsCut(),
    COMMIT_UNHEARD,
    COMMIT_UNANSWERED,
    COMMIT_SWALLOWED,
)


class PostgresFailure:
    row = 5
    name = "postgres_failure"
    promise = (
        "kill -9 and crash recovery; promotion of a synchronous standby; connection cut in the middle of a commit: no "
        "acknowledged write lost, none applied twice, unknown outcomes resolved by the same request id"
    )
    needs_faults = True

    async def run(self, stage: Stage) -> None:
        await endure(stage, traffic_on(stage), _FAULTS)
        stage.result.caveats.append(
            "The harness promotes the standby as soon as it has killed the primary. How long it takes a deployment to "
            "find out that it has to is its own, and comes on top of the seconds without writes."
        )


SCENARIO: Final = PostgresFailure()
REGRESSIONS: Final = (READS_WITHOUT_STANDBY,)
