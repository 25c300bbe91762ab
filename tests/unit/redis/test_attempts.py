"""What a call is told that was tried several times: the last word it met, unless an attempt before it had none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from redis import exceptions

from durable_memory.adapters.redis import RedisSettings, parse_redis_url
from durable_memory.adapters.redis.cluster import ClusterRoute
from durable_memory.adapters.redis.errors import index_unavailable
from durable_memory.adapters.redis.route import Route
from durable_memory.adapters.redis.sentinels import SentinelRoute
from durable_memory.adapters.redis.server import Client, Server
from durable_memory.adapters.redis.url import Address
from durable_memory.adapters.redis.watch import Watch
from durable_memory.domain.errors import DomainError, Reason, not_serving
from durable_memory.tasks import end
from tests.processes.polling import wait_until_async

LONG_SECONDS = 60.0
QUICK = RedisSettings(retry_pause_seconds=0.001, acquire_timeout_seconds=LONG_SECONDS)


class Unfit(Server):
    """Answers, and says that nothing can be kept on it."""

    async def judge(self) -> None:
        raise not_serving("index", "the index server's maxmemory-policy is not noeviction")


class ScriptedRoute(Route):
    """Goes to one server after another, as it was told; nobody is asked."""

    def __init__(self, *found: Callable[[], Server]) -> None:
        super().__init__(parse_redis_url("redis://127.0.0.1:1"), QUICK, lambda: None)
        self._found = iter(found)
        self.told: list[Exception] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def check(self) -> None: ...

    def server_of(self, key: str) -> Server:
        return next(self._found)()

    def failed(self, server: Server, error: Exception) -> Server | None:
        self.told.append(error)
        return None


def _server(kind: type[Server]) -> Server:
    return kind(Address("127.0.0.1", 1), "redis://127.0.0.1:1/0", QUICK, made=lambda: None)


def fit() -> Server:
    server = _server(Server)
    server.is_judged = True
    return server


def unfit() -> Server:
    return _server(Unfit)


def nowhere() -> Server:
    raise index_unavailable("no server of the cluster has the slot of the partition")


async def cut(client: Client) -> None:
    """Sent, and the connection is lost before the answer."""
    raise exceptions.ConnectionError("cut")


async def crowded_out(client: Client) -> None:
    """Never sent."""
    raise exceptions.MaxConnectionsError("all connections are in use")


async def refusal(route: Route, work: Callable[[Client], object], *, changes_state: bool) -> DomainError:
    with pytest.raises(DomainError) as refused:
        await route.call("key", work, timeout_seconds=LONG_SECONDS, changes_state=changes_state)  # type: ignore[arg-type]
    return refused.value


@pytest.mark.parametrize("then", [unfit, nowhere])
async def test_a_change_that_had_no_answer_stays_unknown_whatever_is_found_in_place_of_its_server(then):
    error = await refusal(ScriptedRoute(fit, then), cut, changes_state=True)
    assert error.reason is Reason.OUTCOME_UNKNOWN


@pytest.mark.parametrize("then", [unfit, nowhere])
async def test_a_question_that_had_no_answer_is_told_what_was_found(then):
    error = await refusal(ScriptedRoute(fit, then), cut, changes_state=False)
    assert error.reason is Reason.DEPENDENCY_UNAVAILABLE


@pytest.mark.parametrize("first", [unfit, nowhere])
async def test_a_change_that_was_never_sent_did_not_happen(first):
    error = await refusal(ScriptedRoute(first), cut, changes_state=True)
    assert error.reason is Reason.DEPENDENCY_UNAVAILABLE


async def test_a_change_that_finds_no_connection_did_not_happen_and_says_nothing_about_the_server():
    server = fit()
    error = await refusal(ScriptedRoute(*[lambda: server] * QUICK.attempts), crowded_out, changes_state=True)
    assert (error.reason, error.metadata) == (Reason.DEPENDENCY_UNAVAILABLE, {"dependency": "index"})
    assert error.message == "all connections to the index server are in use"
    for _ in range(10):
        await refusal(ScriptedRoute(*[lambda: server] * QUICK.attempts), crowded_out, changes_state=True)
    assert not server.circuit.is_open


async def test_a_change_that_had_no_answer_stays_unknown_when_no_connection_is_free_to_ask_again():
    sent = iter([cut, crowded_out])
    server = fit()
    route = ScriptedRoute(*[lambda: server] * QUICK.attempts)
    error = await refusal(route, lambda client: next(sent)(client), changes_state=True)
    assert error.reason is Reason.OUTCOME_UNKNOWN


async def test_no_connection_to_be_had_does_not_end_the_silence_of_a_server():
    server = fit()
    now = asyncio.get_running_loop().time
    assert not any(server.circuit.unanswered(now(), silence=True) for _ in range(2))
    await refusal(ScriptedRoute(*[lambda: server] * QUICK.attempts), crowded_out, changes_state=False)
    assert server.circuit.unanswered(now(), silence=True)


async def test_a_change_that_waits_for_a_connection_when_its_server_is_left_alone_did_not_happen():
    server = fit()
    for _ in range(QUICK.max_connections):
        await server._places.acquire()
    waiting = asyncio.create_task(refusal(ScriptedRoute(lambda: server), cut, changes_state=True))
    await wait_until_async(lambda: bool(server.circuit._waiting), what="it waits")
    now = asyncio.get_running_loop().time
    while not server.circuit.unanswered(now(), silence=True):
        pass
    assert (await waiting).reason is Reason.DEPENDENCY_UNAVAILABLE


def _asking() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "is the index server back"]


async def test_a_server_that_is_left_alone_again_at_once_is_asked_by_one_task_that_ends_with_it():
    server = fit()
    for _ in range(2):
        server.circuit.is_open = True
        server.leave_alone()
        await asyncio.sleep(0)
        server.answered()
    server.circuit.is_open = True
    assert len(_asking()) == 1
    await server.close()
    assert _asking() == []


class SlowToClose(Server):
    """The first time nobody waits for its end."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1
        if self.closed == 1:
            await asyncio.Event().wait()
        await super().close()


@pytest.mark.parametrize(
    ("kind", "url"),
    [(SentinelRoute, "redis+sentinel://127.0.0.1:1/memory"), (ClusterRoute, "redis+cluster://127.0.0.1:1")],
)
async def test_a_server_that_is_being_left_when_the_route_is_closed_is_closed_with_it(kind, url):
    route, server = kind(parse_redis_url(url), QUICK, lambda: None), _server(SlowToClose)
    leaving = asyncio.create_task(route.leave(server))
    await asyncio.sleep(0)
    await end([leaving])
    await route.close()
    assert server.closed == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "url"),
    [(SentinelRoute, "redis+sentinel://127.0.0.1:1/memory"), (ClusterRoute, "redis+cluster://127.0.0.1:1")],
)
async def test_a_server_that_is_unfit_makes_the_route_look_for_another_at_once(kind, url, monkeypatch):
    hurried: list[Watch] = []
    monkeypatch.setattr(Watch, "hurry", lambda watch: hurried.append(watch))
    server = unfit()
    monkeypatch.setattr(kind, "server_of", lambda route, key: server)
    route = kind(parse_redis_url(url), QUICK, lambda: None)
    error = await refusal(route, cut, changes_state=False)
    assert "maxmemory-policy" in error.message
    assert len(hurried) == 1
    await route.close()


async def test_a_cluster_that_is_closed_makes_no_connections_to_a_shard_that_a_late_answer_names():
    route = ClusterRoute(parse_redis_url("redis+cluster://127.0.0.1:1"), QUICK, lambda: None)
    await route.close()
    with pytest.raises(DomainError) as refused:
        route.failed(fit(), exceptions.MovedError("0 127.0.0.1:2"))
    assert refused.value.metadata == {"state": "closed"}
