"""Servers that die, drain and stand still, and the embedding provider that dies."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from tests.qualification.cluster.cluster import Cluster
from tests.qualification.cluster.server_node import ServerNode
from tests.qualification.report.timeline import Lane

KILLED_AMID_COMMITS: Final = "kill -9 of every server amid commits"
"""The name of row 1's own, which has to see what callers learn."""


class ServerKilled:
    """One server, at any moment of what it does; it starts again at once or a little later."""

    name = "kill -9 of a server"

    def available(self, cluster: Cluster) -> bool:
        return bool(_serving(cluster))

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        server = rng.choice(_serving(cluster))
        away_seconds = rng.uniform(0.0, 1.5)
        with cluster.timeline.span(Lane.FAULT, self.name, key=server.name):
            await server.kill9()
            await asyncio.sleep(away_seconds)
            await server.start()
        return 1


class EveryServerKilled:
    """All servers at the same moment: nothing is left that remembers who waits for an answer."""

    name = "kill -9 of every server"

    def available(self, cluster: Cluster) -> bool:
        return len(_serving(cluster)) == len(cluster.servers)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        with cluster.timeline.span(Lane.FAULT, self.name):
            await asyncio.gather(*(server.kill9() for server in cluster.servers))
            await asyncio.gather(*(server.start() for server in cluster.servers))
        return len(cluster.servers)


class ServerDrained:
    """SIGTERM, as in an upgrade: no call is dropped."""

    name = "drain of a server"

    def available(self, cluster: Cluster) -> bool:
        return bool(_serving(cluster))

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        server = rng.choice(_serving(cluster))
        with cluster.timeline.span(Lane.FAULT, self.name, key=server.name):
            try:
                code = await server.terminate()
            finally:
                # One that does not end in time is killed. What is raised tells that, and not that it is not there.
                await server.start()
        if code:
            raise RuntimeError(f"{server.name} ended with {code} when it was told to drain")
        return 1


class ServerPaused:
    """SIGSTOP for 1 to 6 s: it keeps its connections, locks and leases, and wakes as if no time had passed."""

    name = "pause of a server"

    def available(self, cluster: Cluster) -> bool:
        return bool(_serving(cluster))

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        server = rng.choice(_serving(cluster))
        seconds = rng.uniform(1.0, 6.0)
        with cluster.timeline.span(Lane.FAULT, self.name, key=server.name):
            server.pause()
            try:
                await asyncio.sleep(seconds)
            finally:
                server.wake()
        return 1


class EmbeddingKilled:
    """The endpoint is gone for some seconds: recall goes on by words, and says so."""

    name = "kill -9 of the embedding provider"

    def available(self, cluster: Cluster) -> bool:
        return cluster.embedding.is_running

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        away_seconds = rng.uniform(0.5, 4.0)
        with cluster.timeline.span(Lane.FAULT, self.name, key="embedding"):
            await cluster.embedding.kill9()
            await asyncio.sleep(away_seconds)
            await cluster.embedding.start()
        return 1


def _serving(cluster: Cluster) -> list[ServerNode]:
    return [server for server in cluster.servers if server.is_running and not server.is_paused]
