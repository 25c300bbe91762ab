"""What befalls Redis: promotions with and without loss, empty restarts, outages, and a primary that stands still."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Final

from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.cluster.to_the_end import in_thread_to_the_end
from tests.qualification.faults.lines import STRUCK_SECONDS, disturbed
from tests.qualification.report.timeline import Lane

_LOOK_SECONDS: Final = 0.2


def _all_run(cluster: Cluster) -> bool:
    return all(node.is_running for node in cluster.redis.nodes)


class PrimaryKilled:
    """kill -9 of the primary; the sentinels promote a replica, and the old primary comes back as another."""

    name = "kill -9 of the Redis primary"

    def available(self, cluster: Cluster) -> bool:
        return _all_run(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        primary = await cluster.redis.find_primary()
        with cluster.timeline.span(Lane.FAULT, self.name, key=primary.name):
            await in_thread_to_the_end(primary.kill9)
            await cluster.redis.wait_promoted(away_from=primary)
            await cluster.redis.rejoin(primary)
        return 1


class PromotionWithLoss:
    """A promotion that loses what the primary acknowledged for a second or three, or until there is something to lose.

    It strikes so many changes of data.
    """

    name = "promotion in Redis that loses writes"

    def available(self, cluster: Cluster) -> bool:
        return _all_run(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        seconds = rng.uniform(1.0, 3.0)
        primary = await cluster.redis.find_primary()
        lost = 0

        async def lose() -> None:
            before = await asyncio.to_thread(primary.changes)

            async def anything() -> bool:
                nonlocal lost
                lost = await asyncio.to_thread(primary.changes) - before
                return lost > 0

            await asyncio.sleep(seconds)
            with suppress(WaitTimeoutError):
                await wait_until_async(anything, STRUCK_SECONDS, interval=_LOOK_SECONDS)

        with cluster.timeline.span(Lane.FAULT, self.name, key=primary.name):
            await cluster.redis.rejoin(await cluster.redis.promote_losing_writes(lose))
        return lost


class EmptyRestart:
    """All nodes are started again without any data, faster than a failover."""

    name = "restart of Redis without data"

    def available(self, cluster: Cluster) -> bool:
        return _all_run(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        with cluster.timeline.span(Lane.FAULT, self.name):
            await cluster.redis.restart_empty_everywhere()
        return len(cluster.redis.nodes)


class Outage:
    """No node answers for 2 to 5 s: all silent, or all killed."""

    def __init__(self, name: str, *, killed: bool) -> None:
        self.name = name
        self._killed = killed

    def available(self, cluster: Cluster) -> bool:
        return _all_run(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        seconds = rng.uniform(2.0, 5.0)
        lines = [node.proxy for node in cluster.redis.nodes]
        before = disturbed(lines)
        with cluster.timeline.span(Lane.FAULT, self.name):
            await cluster.redis.outage(killed=self._killed)
            try:
                await asyncio.sleep(seconds)
                struck = len(lines) if self._killed else disturbed(lines) - before
            finally:
                await cluster.redis.end_outage()
        return struck


class PrimaryFrozen:
    """SIGSTOP of the primary until another one is promoted; then it wakes, and still thinks that it is the primary."""

    name = "frozen Redis primary"

    def available(self, cluster: Cluster) -> bool:
        return _all_run(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        primary = await cluster.redis.find_primary()
        longer_seconds = rng.uniform(0.0, 1.0)
        with cluster.timeline.span(Lane.FAULT, self.name, key=primary.name):
            primary.stop_answering()
            try:
                await cluster.redis.wait_promoted(away_from=primary)
                await asyncio.sleep(longer_seconds)
            finally:
                primary.answer_again()
            await cluster.redis.wait_settled()
        return 1


SILENT_OUTAGE = Outage("silence of all of Redis", killed=False)
KILLED_OUTAGE = Outage("kill -9 of all of Redis", killed=True)
