"""What befalls the PostgreSQL pair, and the connections to it."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Final

from tests.processes.proxy import Fate, Way
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.report.timeline import Lane

_COMMIT: Final = b"COMMIT"
_MOST_SECONDS: Final = 4.0


def _is_whole(cluster: Cluster) -> bool:
    """Whether both run, and whatever is acknowledged is on both."""
    pair = cluster.postgres
    return pair.primary.is_running and pair.standby.is_running and pair.waits_for_standby


class PrimaryCrashed:
    """kill -9 of the primary; it is started again, and recovers from its log."""

    name = "crash of the PostgreSQL primary"

    def available(self, cluster: Cluster) -> bool:
        return cluster.postgres.primary.is_running

    async def inject(self, cluster: Cluster, rng: random.Random) -> None:
        away_seconds = rng.uniform(0.0, 1.5)
        with cluster.timeline.span(Lane.FAULT, self.name, key=cluster.postgres.primary.name):
            await cluster.postgres.kill9_primary()
            await asyncio.sleep(away_seconds)
            await cluster.postgres.recover_primary()


class StandbyPromoted:
    """kill -9 of the primary; the synchronous standby takes over, and the old primary becomes its standby."""

    name = "promotion of the PostgreSQL standby"

    def available(self, cluster: Cluster) -> bool:
        return _is_whole(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> None:
        alone_seconds = rng.uniform(0.0, 2.0)
        with cluster.timeline.span(Lane.FAULT, self.name, key=cluster.postgres.standby.name):
            await cluster.postgres.promote()
            await asyncio.sleep(alone_seconds)
            await cluster.postgres.rejoin()


class StandbyLost:
    """kill -9 of the standby: commits are on the primary and wait, until it is back."""

    name = "loss of the PostgreSQL standby"

    def available(self, cluster: Cluster) -> bool:
        return _is_whole(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> None:
        away_seconds = rng.uniform(0.5, 4.0)
        with cluster.timeline.span(Lane.FAULT, self.name, key=cluster.postgres.standby.name):
            await cluster.postgres.kill9_standby()
            await asyncio.sleep(away_seconds)
            await cluster.postgres.restart_standby()


class ConnectionsCut:
    """All connections of servers to PostgreSQL end at once, some times in a row; new ones are welcome."""

    name = "cut of all PostgreSQL connections"

    def available(self, cluster: Cluster) -> bool:
        return True

    async def inject(self, cluster: Cluster, rng: random.Random) -> None:
        pauses = [rng.uniform(0.05, 1.0) for _ in range(rng.randint(1, 4))]
        with cluster.timeline.span(Lane.FAULT, self.name):
            for seconds in pauses:
                for node in cluster.postgres.nodes:
                    node.proxy.cut()
                await asyncio.sleep(seconds)


class CommitCut:
    """One to four commits end their connections: before the server heard of them, or after, unanswered.

    It takes as long as it takes until so many have been sent, and 4 s at most; silence lasts a little longer.
    """

    def __init__(self, name: str, fate: Fate) -> None:
        self.name = name
        self._fate = fate

    def available(self, cluster: Cluster) -> bool:
        return True

    async def inject(self, cluster: Cluster, rng: random.Random) -> None:
        commits = NextCommits(self._fate, rng.randint(1, 4))
        silent_seconds = rng.uniform(1.0, 3.0) if self._fate is Fate.SWALLOW else 0.0
        proxies = [node.proxy for node in cluster.postgres.nodes]
        with cluster.timeline.span(Lane.FAULT, self.name):
            for proxy in proxies:
                proxy.rule = commits.rule
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(commits.struck.wait(), _MOST_SECONDS)
                await asyncio.sleep(silent_seconds)
            finally:
                for proxy in proxies:
                    proxy.mend()


class NextCommits:
    """The next `count` commits have this fate, whichever line they take; `struck` is set with the last."""

    def __init__(self, fate: Fate, count: int) -> None:
        self._fate = fate
        self._left = count
        self.struck = asyncio.Event()

    def rule(self, way: Way, chunk: bytes) -> Fate:
        if self._left and way is Way.TO_SERVER and _COMMIT in chunk:
            self._left -= 1
            if not self._left:
                self.struck.set()
            return self._fate
        return Fate.PASS


COMMIT_UNHEARD: Final = CommitCut("cut before a commit arrives", Fate.CUT_BEFORE)
COMMIT_UNANSWERED: Final = CommitCut("cut after a commit arrived", Fate.CUT_AFTER)
COMMIT_SWALLOWED: Final = CommitCut("silence from a commit on", Fate.SWALLOW)
