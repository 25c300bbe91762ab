"""How servers are killed amid commits, until something is in doubt; over a cluster and callers that are made up."""

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.processes.polling import WaitTimeoutError
from tests.processes.proxy import Fate, Way, always
from tests.qualification.recorder.history import Call, History, Outcome, Write
from tests.qualification.report.timeline import Lane, Timeline
from tests.qualification.scenarios import repeated_restart
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
    """They ask for something now, and learn `outcomes` of it when the servers have been killed. `applied`: whether it
    had been done. `again`: the first of them had asked for it before."""

    def __init__(self, *outcomes: Outcome, applied: bool = True, again: bool = False) -> None:
        self.history = History()
        self.histories = [self.history]
        self.tenancies = [SimpleNamespace(recorder=self, history=self.history, committed={})]
        self._outcomes = outcomes
        self._applied = applied
        self._round = 0
        self.are_asking = True
        if again:
            self.history.add(replace(self._call(0), outcome=Outcome.OK, ended=0.0))

    @property
    def under_way(self) -> list[Call]:
        return [self._call(number) for number in range(len(self._outcomes))] if self.are_asking else []

    def killed(self) -> None:
        self.are_asking = False
        for number, outcome in enumerate(self._outcomes):
            call = replace(self._call(number), outcome=outcome, ended=time.monotonic() + 1)
            self.history.add(call)
            if self._applied:
                self.tenancies[0].committed[call.key] = call.wall + 1

    def ask_again(self) -> None:
        self.are_asking = True
        self._round += 1

    def _call(self, number: int) -> Call:
        return Call(
            method="ReviseMemory",
            request_id=f"{self._round}-{number}",
            began=time.monotonic() - 60,
            ended=math.inf,
            outcome=Outcome.UNKNOWN,
            wall=1_000.0,
            writes=(Write(),),
        )


def _cluster(callers: _Callers, *, healthy: bool = True) -> Any:
    async def wait_healthy(timeout: float) -> None:
        if not healthy:
            raise WaitTimeoutError("not healthy")
        callers.ask_again()

    line, servers = _Line(), [_Server(callers.killed), _Server(lambda: None)]
    line.servers = servers
    return SimpleNamespace(
        servers=servers,
        postgres=SimpleNamespace(nodes=[SimpleNamespace(proxy=line)]),
        timeline=Timeline(),
        wait_healthy=wait_healthy,
    )


@contextmanager
def _at_rest() -> Iterator[None]:
    yield


async def _inject(cluster: Any, callers: Any) -> int:
    callers.at_rest = _at_rest
    stage = SimpleNamespace(cluster=cluster, result=SimpleNamespace(caveats=[]))
    fault = EveryServerKilledAmidCommits(cast(Any, stage), callers)
    assert fault.available(cluster)
    return await fault.inject(cluster, random.Random(1))


@pytest.fixture(autouse=True)
def _told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is told later in a history that is made up."""
    monkeypatch.setattr(repeated_restart, "_TOLD_SECONDS", 0.0)


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
    assert await _inject(_cluster(callers), callers) == 4


async def test_it_is_done_again_where_the_first_was_no_first_attempt():
    callers = _Callers(*[Outcome.UNKNOWN] * 3, again=True)
    assert await _inject(_cluster(callers), callers) == 4


@pytest.mark.parametrize(
    ("outcome", "applied"),
    [(Outcome.OK, True), (Outcome.REFUSED, True), (Outcome.UNKNOWN, False)],
    ids=["callers learn that it was done", "callers learn that it was refused", "nothing had been done"],
)
async def test_it_ends_in_bounds_where(outcome: Outcome, applied: bool):
    callers = _Callers(*[outcome] * 3, applied=applied)
    assert await _inject(_cluster(callers), callers) == 20


async def test_servers_run_again_where_the_cluster_breaks_down():
    callers = _Callers(Outcome.OK)
    cluster = _cluster(callers, healthy=False)
    with pytest.raises(WaitTimeoutError, match="not healthy"):
        await _inject(cluster, callers)
    assert all(server.is_running for server in cluster.servers)
