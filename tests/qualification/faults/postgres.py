"""What befalls the PostgreSQL pair, and the connections to it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.processes.proxy import Fate, Way
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.faults.lines import STRUCK_SECONDS, cut_again_and_again
from tests.qualification.report.timeline import Lane

_COMMIT: Final = b"Q\x00\x00\x00\x0bCOMMIT\x00"
"""As the service says it after a write, in one simple query. Its driver ends what only reads with "COMMIT;"."""
_ALL_SECONDS: Final = 10.0
"""How long all of so many commits are awaited. It is about that long; for the first of them it goes on."""


def _is_whole(cluster: Cluster) -> bool:
    """Whether both run, and whatever is acknowledged is on both."""
    pair = cluster.postgres
    return pair.primary.is_running and pair.standby.is_running and pair.waits_for_standby


class PrimaryCrashed:
    """kill -9 of the primary; it is started again, and recovers from its log."""

    name = "crash of the PostgreSQL primary"

    def available(self, cluster: Cluster) -> bool:
        return cluster.postgres.primary.is_running

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        away_seconds = rng.uniform(0.0, 1.5)
        with cluster.timeline.span(Lane.FAULT, self.name, key=cluster.postgres.primary.name):
            await cluster.postgres.kill9_primary()
            await asyncio.sleep(away_seconds)
            await cluster.postgres.recover_primary()
        return 1


class StandbyPromoted:
    """kill -9 of the primary; the synchronous standby takes over, and the old primary becomes its standby."""

    name = "promotion of the PostgreSQL standby"

    def available(self, cluster: Cluster) -> bool:
        return _is_whole(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        alone_seconds = rng.uniform(0.0, 2.0)
        with cluster.timeline.span(Lane.FAULT, self.name, key=cluster.postgres.standby.name):
            await cluster.postgres.promote()
            await asyncio.sleep(alone_seconds)
            await cluster.postgres.rejoin()
        return 1


class StandbyLost:
    """kill -9 of the standby: commits are on the primary and wait, until it is back."""

    name = "loss of the PostgreSQL standby"

    def available(self, cluster: Cluster) -> bool:
        return _is_whole(cluster)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        away_seconds = rng.uniform(0.5, 4.0)
        with cluster.timeline.span(Lane.FAULT, self.name, key=cluster.postgres.standby.name):
            await cluster.postgres.kill9_standby()
            await asyncio.sleep(away_seconds)
            await cluster.postgres.restart_standby()
        return 1


class ConnectionsCut:
    """All connections of servers to PostgreSQL end at once, some times in a row; new ones are welcome."""

    name = "cut of all PostgreSQL connections"

    def available(self, cluster: Cluster) -> bool:
        return True

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        pauses = [rng.uniform(0.05, 1.0) for _ in range(rng.randint(1, 4))]
        with cluster.timeline.span(Lane.FAULT, self.name):
            return await cut_again_and_again([node.proxy for node in cluster.postgres.nodes], pauses)


class CommitCut:
    """One to four commits of writes end their connections: before the server heard of them, or after, unanswered.

    It takes as long as it takes until so many have been sent, and 10 s at most, unless none has been by then; silence
    lasts a little longer.
    """

    def __init__(self, name: str, fate: Fate) -> None:
        self.name = name
        self.fate = fate

    def available(self, cluster: Cluster) -> bool:
        return True

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        commits = NextCommits(self.fate, rng.randint(1, 4))
        silent_seconds = rng.uniform(1.0, 3.0) if self.fate is Fate.SWALLOW else 0.0
        with cluster.timeline.span(Lane.FAULT, self.name), commits.to(cluster):
            # Fewer than were to be strike as well; that none did is for the caller to see.
            with suppress(TimeoutError):
                await asyncio.wait_for(commits.done.wait(), _ALL_SECONDS)
            with suppress(WaitTimeoutError):
                await wait_until_async(lambda: commits.struck > 0, STRUCK_SECONDS)
            await asyncio.sleep(silent_seconds)
        return commits.struck


class NextCommits:
    """The next `count` commits of writes have this fate, whichever line they take; `done` is set with the last.

    None: all of them. Commits of transactions that only read are none of them: those are sent in other words.
    """

    def __init__(self, fate: Fate, count: int | None) -> None:
        self.struck = 0
        self.done = asyncio.Event()
        self._fate = fate
        self._count = count

    @contextmanager
    def to(self, cluster: Cluster) -> Iterator[None]:
        """Strike at every line to PostgreSQL for as long as the block lasts; then mend the lines."""
        proxies = [node.proxy for node in cluster.postgres.nodes]
        for proxy in proxies:
            proxy.rule = self.rule
        try:
            yield
        finally:
            for proxy in proxies:
                proxy.mend()

    def rule(self, way: Way, chunk: bytes) -> Fate:
        if self.struck == self._count or way is not Way.TO_SERVER or _COMMIT not in chunk:
            return Fate.PASS
        self.struck += 1
        if self.struck == self._count:
            self.done.set()
        return self._fate


COMMIT_UNHEARD: Final = CommitCut("cut before a commit arrives", Fate.CUT_BEFORE)
COMMIT_UNANSWERED: Final = CommitCut("cut after a commit arrived", Fate.CUT_AFTER)
COMMIT_SWALLOWED: Final = CommitCut("silence from a commit on", Fate.SWALLOW)
