"""What networks do to bytes: late, lost without a word, reset, and cut in the middle; on every kind of line."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.processes.proxy import Fate, Rule, TcpProxy, Way
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.faults.lines import cut_again_and_again, disturbed, until_disturbed
from tests.qualification.report.timeline import Lane


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of one kind. `silence_seconds` is how long they may be silent without being a fault of another kind."""

    name: str
    lines: Callable[[Cluster, random.Random], Sequence[TcpProxy]]
    silence_seconds: tuple[float, float] = (1.0, 5.0)


PLACES: Final = (
    Place("clients' line", lambda cluster, rng: [cluster.front]),
    Place("line to a server", lambda cluster, rng: [rng.choice(cluster.wires)]),
    Place("lines to PostgreSQL", lambda cluster, rng: [node.proxy for node in cluster.postgres.nodes]),
    # Sentinels use these lines too. Longer, and they promote another node: that is a fault of its own.
    Place("lines to Redis", lambda cluster, rng: [node.proxy for node in cluster.redis.nodes], (0.5, 1.5)),
    Place("line to the embedding provider", lambda cluster, rng: [cluster.embedding.proxy]),
)


class WireFault(ABC):
    """One thing that befalls the lines of one place, for some seconds."""

    what = ""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.name = f"{self.what} on the {place.name}"

    def available(self, cluster: Cluster) -> bool:
        return True

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        lines = self.place.lines(cluster, rng)
        with cluster.timeline.span(Lane.FAULT, self.name):
            try:
                return await self._disturb(lines, rng)
            finally:
                for line in lines:
                    line.mend()

    @abstractmethod
    async def _disturb(self, lines: Sequence[TcpProxy], rng: random.Random) -> int:
        """Do it, for as long as it is about, and until it has struck something; return how often it has.

        The lines are mended by the caller.
        """


class Latency(WireFault):
    """Whatever passes takes 5 to 200 ms more, each way."""

    what = "latency"

    async def _disturb(self, lines: Sequence[TcpProxy], rng: random.Random) -> int:
        seconds = rng.uniform(0.005, 0.2)
        before = disturbed(lines)
        for line in lines:
            line.delay_seconds = seconds
        await asyncio.sleep(rng.uniform(2.0, 5.0))
        return await until_disturbed(lines, before)


class BlackHole(WireFault):
    """Nothing passes, on old connections and new ones, and nobody is told; then the old ones end."""

    what = "black hole"

    async def _disturb(self, lines: Sequence[TcpProxy], rng: random.Random) -> int:
        before = disturbed(lines)
        for line in lines:
            line.go_silent()
        await asyncio.sleep(rng.uniform(*self.place.silence_seconds))
        return await until_disturbed(lines, before)


class Reset(WireFault):
    """All connections end, again and again; new ones are welcome."""

    what = "reset"

    async def _disturb(self, lines: Sequence[TcpProxy], rng: random.Random) -> int:
        return await cut_again_and_again(lines, [rng.uniform(0.05, 1.0) for _ in range(rng.randint(2, 5))])


class CutAfterBytes(WireFault):
    """Whichever connection passes another so many bytes one way ends there, in the middle of what is being said."""

    what = "cut after some bytes"

    async def _disturb(self, lines: Sequence[TcpProxy], rng: random.Random) -> int:
        way = rng.choice(list(Way))
        chunk_bytes = rng.randint(16, 512)
        before = disturbed(lines)
        for line in lines:
            line.chunk_bytes = chunk_bytes
            line.rule = every_bytes(way, rng.randint(1_000, 20_000))
        await asyncio.sleep(rng.uniform(1.0, 3.0))
        return await until_disturbed(lines, before)


def every_bytes(way: Way, count: int) -> Rule:
    """The chunk with which another `count` bytes have gone this way, over all connections, is the last of its own."""
    passed = 0

    def rule(actual: Way, chunk: bytes) -> Fate:
        nonlocal passed
        if actual is way:
            passed += len(chunk)
        if passed < count:
            return Fate.PASS
        passed = 0
        return Fate.CUT_AFTER

    return rule


WIRE: Final = tuple(kind(place) for place in PLACES for kind in (Latency, BlackHole, Reset, CutAfterBytes))
