"""What of the faults can be tested with nothing to break: which chunks they strike, and that all have names."""

import asyncio
import random
import selectors
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from tests.processes import polling
from tests.processes.proxy import Fate, TcpProxy, Way
from tests.qualification.cluster.cluster import Cluster
from tests.qualification.cluster.redis_group import REPLICAS_WAIT_SECONDS
from tests.qualification.faults.lines import cut_again_and_again, until_disturbed
from tests.qualification.faults.postgres import COMMIT_UNHEARD, NextCommits
from tests.qualification.faults.processes import ServerDrained
from tests.qualification.faults.redis import PromotionWithLoss
from tests.qualification.faults.registry import ALL, POSTGRES, PROCESSES, REDIS, WIRE
from tests.qualification.faults.wire import PLACES, CutAfterBytes, Place, every_bytes
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios.endurance import struck_nothing

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"


def test_every_fault_has_a_name_of_its_own():
    assert [name for name, count in Counter(fault.name for fault in ALL).items() if count > 1] == []


def test_every_kind_of_fault_is_in_the_list_of_all():
    assert list(ALL) == [*PROCESSES, *POSTGRES, *REDIS, *WIRE]


def test_every_place_has_every_fault_of_the_wire():
    assert {fault.name for fault in WIRE} == {
        f"{what} on the {place.name}"
        for what in ("latency", "black hole", "reset", "cut after some bytes")
        for place in PLACES
    }


def test_a_connection_ends_with_the_chunk_that_completes_the_bytes_and_counting_begins_again():
    rule = every_bytes(Way.TO_CLIENT, 10)
    assert [rule(Way.TO_CLIENT, bytes(size)) for size in (4, 5, 1, 9, 3)] == [
        *(Fate.PASS, Fate.PASS, Fate.CUT_AFTER),
        *(Fate.PASS, Fate.CUT_AFTER),
    ]


def test_bytes_of_the_other_way_do_not_count():
    rule = every_bytes(Way.TO_CLIENT, 10)
    assert rule(Way.TO_SERVER, bytes(100)) is Fate.PASS
    assert rule(Way.TO_CLIENT, bytes(9)) is Fate.PASS


def test_so_many_commits_of_writes_are_struck_and_nothing_else():
    commits = NextCommits(Fate.CUT_BEFORE, 2)
    assert commits.rule(Way.TO_SERVER, b"Q\x00\x00\x00\x0aBEGIN;\x00") is Fate.PASS
    assert commits.rule(Way.TO_CLIENT, b"C\x00\x00\x00\x0bCOMMIT\x00") is Fate.PASS
    assert commits.rule(Way.TO_SERVER, b"Q\x00\x00\x00\x0cCOMMIT;\x00") is Fate.PASS, "of what only reads"
    assert commits.struck == 0
    assert commits.rule(Way.TO_SERVER, COMMIT) is Fate.CUT_BEFORE
    assert not commits.done.is_set()
    assert commits.rule(Way.TO_SERVER, COMMIT) is Fate.CUT_BEFORE
    assert commits.done.is_set()
    assert commits.rule(Way.TO_SERVER, COMMIT) is Fate.PASS
    assert commits.struck == 2


def test_all_commits_are_struck_if_there_is_no_count():
    commits = NextCommits(Fate.CUT_AFTER, None)
    assert [commits.rule(Way.TO_SERVER, COMMIT) for _ in range(9)] == [Fate.CUT_AFTER] * 9
    assert commits.struck == 9


def test_a_fault_that_struck_nothing_in_all_its_times_is_found():
    assert struck_nothing(Counter({"a": 3, "b": 1})) == []
    assert struck_nothing({"a": 3, "b": 0}) == ["b struck nothing"]


async def test_nothing_is_struck_on_a_line_on_which_nobody_speaks():
    async with TcpProxy(0) as line:
        assert await until_disturbed([line], 0, within=0.0) == 0
        assert await cut_again_and_again([line], [0.0, 0.0], within=0.0) == 0


def test_bytes_are_awaited_on_a_line_on_which_little_is_said(hours: "_Hours"):
    line = TcpProxy(0)
    fault = CutAfterBytes(Place("line", lambda cluster, rng: [line]))
    struck = [hours.run(fault.inject(_cluster(), random.Random(seed)), _talk(line, bytes(500))) for seed in range(20)]
    assert 0 not in struck


def test_the_first_commit_is_awaited_for_longer_than_all_of_them(hours: "_Hours"):
    line = TcpProxy(0)
    cluster = _cluster(postgres=SimpleNamespace(nodes=[SimpleNamespace(proxy=line)]))
    four = random.Random(1)
    assert random.Random(1).randint(1, 4) > 1
    assert hours.run(COMMIT_UNHEARD.inject(cluster, four), _talk(line, COMMIT, every=30.0)) == 1
    assert hours.loop.time() < 60.0, "it ends with the first"


def test_a_promotion_waits_for_something_to_lose_but_not_until_replicas_connect_anew(hours: "_Hours"):
    redis = _Redis(changes=lambda: 3 if hours.loop.time() > 50.0 else 0)
    assert hours.run(PromotionWithLoss().inject(_cluster(redis=redis), random.Random(0))) == 3
    redis = _Redis(changes=lambda: 7)
    began = hours.loop.time()
    assert hours.run(PromotionWithLoss().inject(_cluster(redis=redis), random.Random(0))) == 0
    assert hours.loop.time() - began < REPLICAS_WAIT_SECONDS / 2


async def test_a_server_whose_drain_does_not_end_runs_again_and_that_is_an_error():
    server = _DrainsForEver()
    with pytest.raises(subprocess.TimeoutExpired):
        await ServerDrained().inject(_cluster(servers=[server]), random.Random(0))
    assert server.is_running


async def test_a_promotion_strikes_as_many_changes_as_it_loses():
    redis = _Redis(changes=iter([7, 7, 10]).__next__)
    assert await PromotionWithLoss().inject(_cluster(redis=redis), random.Random(0)) == 3
    assert redis.rejoined


class _DrainsForEver:
    """What is killed in the end, because it does not end by itself."""

    name = "server-0"
    is_running = True
    is_paused = False

    async def terminate(self) -> int:
        self.is_running = False
        raise subprocess.TimeoutExpired("server-0", 30.0)

    async def start(self) -> None:
        self.is_running = True


class _Redis:
    """A group whose primary has had so many changes when it is looked at."""

    name = "redis-1"

    def __init__(self, changes: Callable[[], int]) -> None:
        self.changes = changes
        self.rejoined = False

    async def find_primary(self) -> Self:
        return self

    async def promote_losing_writes(self, during: Callable[[], Awaitable[None]]) -> Self:
        await during()
        return self

    async def rejoin(self, node: Self) -> None:
        self.rejoined = node is self


class _AtOnce(selectors.DefaultSelector):
    """Whoever waits for nothing but time has waited."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class _Hours:
    """An event loop whose hours pass at once. Nothing in it may wait for a thread and for time together."""

    def __init__(self) -> None:
        self._selector = _AtOnce()
        self.loop = asyncio.SelectorEventLoop(self._selector)
        self.loop.time = lambda: self._selector.now  # type: ignore[method-assign]

    def run(self, injecting: Coroutine[Any, Any, int], beside: Coroutine[Any, Any, None] | None = None) -> int:
        """How often it strikes, while something else goes on."""

        async def both() -> int:
            other = None if beside is None else asyncio.create_task(beside)
            try:
                return await injecting
            finally:
                if other is not None:
                    other.cancel()

        return self.loop.run_until_complete(both())


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Hours]:
    hours = _Hours()
    monkeypatch.setattr(polling, "time", SimpleNamespace(monotonic=hours.loop.time))
    yield hours
    hours.loop.run_until_complete(hours.loop.shutdown_default_executor())
    hours.loop.close()


async def _talk(line: TcpProxy, said: bytes, every: float = 1.0) -> None:
    """Say it both ways again and again, on connections that are made up."""
    while True:
        await asyncio.sleep(every)
        for way in Way:
            line.struck += line.rule(way, said) is not Fate.PASS


def _cluster(**parts: Any) -> Cluster:
    return cast(Cluster, SimpleNamespace(timeline=Timeline(), **parts))


async def test_what_is_late_lost_and_cut_is_counted():
    async with _echo() as port, TcpProxy(port) as line:
        reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
        line.delay_seconds = 0.001
        writer.write(b"late")
        assert await reader.readexactly(4) == b"late"
        assert await until_disturbed([line], 0) == line.late == 2
        line.delay_seconds = 0.0
        line.go_silent()
        writer.write(b"lost")
        assert await until_disturbed([line], 2) == 1
        assert line.lost == 1
        assert await cut_again_and_again([line], [0.0]) == 1
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def _echo() -> AsyncIterator[int]:
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(100):
            writer.write(chunk)
        writer.close()
        await writer.wait_closed()
        over.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await over.wait()
