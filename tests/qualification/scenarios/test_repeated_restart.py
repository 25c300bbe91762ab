"""How servers are killed amid commits, until something is in doubt; over a cluster and callers that are made up."""

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.processes.polling import WaitTimeoutError
from tests.processes.proxy import Fate, Way, always
from tests.qualification.recorder.history import Call, History, Outcome, Write
from tests.qualification.report.timeline import Lane, Timeline
from tests.qualification.scenarios.repeated_restart import EveryServerKilledAmidCommits

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"


class _Line:
    """A commit comes as soon as commits are held, and is let go with the rule."""

    def __init__(self) -> None:
        self.rule: Callable[[Way, bytes], Fate] = always
        self.let_go_beside: list[int] = []
        self.servers: Sequence[_Server] = ()

    @property
    def held(self) -> bool:
        return self.rule(Way.TO_SERVER, COMMIT) is Fate.HOLD

    def mend(self) -> None:
        self.rule = always
        self.let_go_beside.append(sum(server.is_running for server in self.servers))


class _Server:
    is_paused = False

    def __init__(self, on_kill: Callable[[], None]) -> None:
        self.is_running = True
        self.kills = 0
        self._on_kill = on_kill

    async def kill9(self) -> None:
        self.is_running = False
        self.kills += 1
        self._on_kill()

    async def start(self) -> None:
        self.is_running = True


class _Callers:
    """Three that ask for something now, and learn `outcomes` of it when the servers have been killed."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.history = History()
        self.histories = [self.history]
        self.tenancies = [SimpleNamespace(recorder=self)]
        self._outcomes = outcomes
        self._killed = 0

    @property
    def under_way(self) -> list[Call]:
        calls = [self._call(number) for number in range(len(self._outcomes))]
        return calls if self._killed == 0 else []

    def killed(self) -> None:
        self._killed += 1
        for number, outcome in enumerate(self._outcomes):
            self.history.add(replace(self._call(number), outcome=outcome, ended=time.monotonic() + 1))

    def _call(self, number: int) -> Call:
        began = time.monotonic() - 1
        return Call(
            method="ReviseMemory",
            request_id=f"{self._killed}-{number}",
            began=began,
            ended=math.inf,
            outcome=Outcome.UNKNOWN,
            wall=began,
            writes=(Write(),),
        )


def _cluster(callers: _Callers, *, healthy: bool = True) -> Any:
    async def wait_healthy(timeout: float) -> None:
        if not healthy:
            raise WaitTimeoutError("not healthy")
        callers._killed = 0

    line, servers = _Line(), [_Server(callers.killed), _Server(lambda: None)]
    line.servers = servers
    return SimpleNamespace(
        servers=servers,
        postgres=SimpleNamespace(nodes=[SimpleNamespace(proxy=line)]),
        timeline=Timeline(),
        wait_healthy=wait_healthy,
    )


async def _inject(cluster: Any, callers: _Callers) -> int:
    fault = EveryServerKilledAmidCommits(cast(Any, callers))
    assert fault.available(cluster)
    return await fault.inject(cluster, random.Random(1))


async def test_all_servers_are_killed_before_their_commits_arrive_and_run_again():
    callers = _Callers(*[Outcome.UNKNOWN] * 3)
    cluster = _cluster(callers)
    assert await _inject(cluster, callers) == 2
    (line,) = [node.proxy for node in cluster.postgres.nodes]
    assert line.let_go_beside == [0], "nobody was there to hear what became of the commit"
    assert [(server.kills, server.is_running) for server in cluster.servers] == [(1, True)] * 2
    assert [event.lane for event in cluster.timeline.events] == [Lane.FAULT]


async def test_it_is_done_again_until_enough_is_in_doubt():
    callers = _Callers(Outcome.UNKNOWN, Outcome.OK, Outcome.UNKNOWN)
    cluster = _cluster(callers)
    assert await _inject(cluster, callers) == 4


@pytest.mark.parametrize("learned", [Outcome.OK, Outcome.REFUSED])
async def test_it_ends_where_callers_learn_everything(learned: Outcome):
    callers = _Callers(*[learned] * 3)
    assert await _inject(_cluster(callers), callers) == 20


async def test_servers_run_again_where_the_cluster_breaks_down():
    callers = _Callers(Outcome.OK)
    cluster = _cluster(callers, healthy=False)
    with pytest.raises(WaitTimeoutError, match="not healthy"):
        await _inject(cluster, callers)
    assert all(server.is_running for server in cluster.servers)
