"""Row 1: replicas are killed at random points, again and again, and nothing acknowledged is missing or there twice."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Sequence, Set
from contextlib import suppress
from typing import Final

from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.processes.proxy import Fate
from tests.qualification.checks.doubts import Doubt, ended_since, in_doubt, unsettled
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.faults.fault import Fault
from tests.qualification.faults.postgres import NextCommits
from tests.qualification.faults.processes import (
    KILLED_AMID_COMMITS,
    EveryServerKilled,
    ServerDrained,
    ServerKilled,
    ServerPaused,
)
from tests.qualification.recorder.history import Call, Key
from tests.qualification.report.timeline import Lane
from tests.qualification.scenarios.endurance import endure, healthy, spans_of, traffic_on
from tests.qualification.scenarios.past_faults import WATCH_THROUGH_PROXY
from tests.qualification.scenarios.stage import Stage
from tests.qualification.traffic.traffic import Traffic

_EPOCHS: Final = 10
_ENOUGH: Final = 3
"""Attempts that a kill leaves in doubt. One of them may turn out to change nothing, as what is remembered twice."""
_ROUNDS: Final = 10
_ARRIVED_SECONDS: Final = 30.0
_HELD_SECONDS: Final = 1.5
"""Less than servers and callers have for a commit, and enough for others to ask for something meanwhile."""
_GIVEN_UP_SECONDS: Final = 60.0
"""Callers have 5 s for an attempt."""
_TOLD_SECONDS: Final = 10.0
"""For the watch to go on and tell what had been done."""
_LOOK_SECONDS: Final = 0.5


class EveryServerKilledAmidCommits:
    """kill -9 of all servers while commits are on their way, which arrive all the same; nobody is there to answer.

    The servers stay away until callers have given up what was under way: clients repeat what a server that is soon back
    left open, and it is settled before anybody sees it. This is done again until there is enough that was sent once and
    is in doubt, and some of it has been done.
    """

    name = KILLED_AMID_COMMITS

    def __init__(self, stage: Stage, traffic: Traffic) -> None:
        self._stage = stage
        self._traffic = traffic

    def available(self, cluster: Cluster) -> bool:
        return all(server.is_running and not server.is_paused for server in cluster.servers)

    async def inject(self, cluster: Cluster, rng: random.Random) -> int:
        doubts: list[Doubt] = []
        rounds = 0
        while rounds < _ROUNDS and not _enough(doubts):
            doubts += await self._once(cluster, doubts)
            rounds += 1
        return rounds * len(cluster.servers)

    async def _once(self, cluster: Cluster, before: Sequence[Doubt]) -> list[Doubt]:
        """What it leaves in doubt; `before` is what earlier ones have."""
        # What is sent again may have been done before.
        known = [{call.key for call in history.calls} for history in self._traffic.histories]
        at = await self._kill_and_start(cluster)
        await healthy(self._stage, self._traffic)
        with suppress(WaitTimeoutError):
            await wait_until_async(
                lambda: _enough([*before, *self._in_doubt(at, known)]), _TOLD_SECONDS, interval=_LOOK_SECONDS
            )
        return self._in_doubt(at, known)

    async def _kill_and_start(self, cluster: Cluster) -> float:
        """When all servers were killed, with commits of theirs that had not arrived. They run again."""
        lines = [node.proxy for node in cluster.postgres.nodes]
        with cluster.timeline.span(Lane.FAULT, self.name):
            try:
                with NextCommits(Fate.HOLD, None).to(cluster):
                    with suppress(WaitTimeoutError):
                        await wait_until_async(lambda: any(line.held for line in lines), _ARRIVED_SECONDS)
                        await wait_until_async(lambda: len(self._under_way(math.inf)) >= _ENOUGH, _HELD_SECONDS)
                    at = time.monotonic()
                    await asyncio.gather(*(server.kill9() for server in cluster.servers))
                with suppress(WaitTimeoutError):
                    await wait_until_async(lambda: not self._under_way(at), _GIVEN_UP_SECONDS)
            finally:
                await asyncio.gather(*(server.start() for server in cluster.servers if not server.is_running))
        return at

    def _under_way(self, before: float) -> list[Call]:
        """Changes that were asked for before this moment, and have no end yet."""
        return [
            call
            for tenancy in self._traffic.tenancies
            for call in tenancy.recorder.under_way
            if call.writes and call.began < before
        ]

    def _in_doubt(self, at: float, known: Sequence[Set[Key]]) -> list[Doubt]:
        """What was under way at that moment, was sent for the first time, and is in doubt."""
        return [
            doubt
            for tenancy, before in zip(self._traffic.tenancies, known, strict=True)
            for doubt in in_doubt(ended_since(tenancy.history.calls, at), tenancy.committed, [(at, at)])
            if doubt.call.key not in before
        ]


def _enough(doubts: Sequence[Doubt]) -> bool:
    return len(doubts) >= _ENOUGH and any(doubt.applied for doubt in doubts)


_KILLS: Final = frozenset({ServerKilled.name, EveryServerKilled.name, EveryServerKilledAmidCommits.name})
_FAULTS: Final[tuple[Fault, ...]] = (
    ServerKilled(),
    EveryServerKilled(),
    ServerKilled(),
    ServerDrained(),
    ServerPaused(),
)


class RepeatedRestart:
    row = 1
    name = "repeated_restart"
    promise = (
        "kill -9 of replicas at random points, many epochs: every acknowledged write is there once; exact binding "
        "resumes; a drifted one is refused; run ids reused after restart never collapse admissions"
    )

    async def run(self, stage: Stage) -> None:
        traffic = traffic_on(stage)
        await endure(stage, traffic, (*_FAULTS, EveryServerKilledAmidCommits(stage, traffic)), least=_EPOCHS)
        _settled(stage, traffic)
        stage.result.caveats.append(
            "Where servers are killed amid commits, they stay away until callers have given up: how long nothing works "
            "then is up to how long callers wait."
        )


def _settled(stage: Stage, traffic: Traffic) -> None:
    """Kills are to leave commands in doubt: what became of those is what the row is about."""
    spans = spans_of(stage, traffic, _KILLS)
    left, applied, problems = 0, 0, []
    for tenancy in traffic.tenancies:
        found = in_doubt(tenancy.history.calls, tenancy.committed, spans)
        left += len(found)
        applied += sum(one.applied for one in found)
        problems += unsettled(found, tenancy.history.calls, tenancy.committed)
    stage.found("what kills leave in doubt is settled by the same request id", left, problems)
    stage.found("some of it had been applied", applied, [])
    stage.result.figures["attempts_in_doubt_by_kills"] = left


SCENARIO: Final = RepeatedRestart()
REGRESSIONS: Final = (WATCH_THROUGH_PROXY,)
