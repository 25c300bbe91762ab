"""A server that keeps failing to answer costs nobody's time, until it answers again."""

import asyncio
from typing import cast

import pytest

from durable_memory.adapters.redis.circuit import Circuit
from durable_memory.adapters.redis.server import Client
from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.index_samples import fresh
from tests.integration.redis.conftest import NEVER_SECONDS, Opened, OpenIndex, at_once
from tests.processes.polling import wait_until_async
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis

QUICK = {"call_timeout_seconds": 1.0, "connect_timeout_seconds": 1.0, "transfer_timeout_seconds": NEVER_SECONDS}


async def refused(opened: Opened, partition) -> None:
    with pytest.raises(DomainError) as refusal:
        await opened.index.manifest(partition)
    error = refusal.value
    assert (error.reason, error.metadata) == (Reason.DEPENDENCY_UNAVAILABLE, {"dependency": "index"})


async def refused_at_once(opened: Opened, partition) -> None:
    error = await at_once(opened.index.manifest(partition))
    assert (error.reason, error.metadata) == (Reason.DEPENDENCY_UNAVAILABLE, {"dependency": "index"})


async def answers(opened: Opened, partition) -> bool:
    try:
        return await opened.index.manifest(partition) is None
    except DomainError:
        return False


async def eventually_answers(opened: Opened, partition) -> None:
    """Nobody looks at the health of this connection, and no call waits for it."""

    async def does() -> bool:
        return await answers(opened, partition)

    await wait_until_async(does, what="the server is used again")


async def test_a_silent_server_is_waited_for_by_one_call_and_by_none_after_it(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url, **QUICK)
    redis_server.stop_answering()
    try:
        await refused(opened, partition)
        for _ in range(20):
            await refused_at_once(opened, partition)
        assert "left alone" in (await at_once(opened.leases.inspect(partition.name))).message
    finally:
        redis_server.answer_again()
    await eventually_answers(opened, partition)


async def test_a_transfer_with_much_time_does_not_sit_through_an_outage_that_others_have_found(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url, **QUICK)
    redis_server.stop_answering()
    try:
        transfer = asyncio.create_task(opened.index.segments(partition, ["s"]))
        await refused(opened, partition)
        with pytest.raises(DomainError) as refusal:
            await transfer  # while the server is as silent as ever
        assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
    finally:
        redis_server.answer_again()


async def test_a_server_that_refuses_connections_is_left_alone_too_and_used_again_when_it_is_back(
    open_index: OpenIndex, partition
):
    with RedisProcess(system_redis()) as server:
        opened = await open_index(server.url, **QUICK)
        server.kill9()
        for _ in range(2):
            await refused(opened, partition)
        for _ in range(20):
            await refused_at_once(opened, partition)
        server.start()
        await eventually_answers(opened, partition)
        await opened.index.close()


async def test_a_look_at_its_health_is_made_while_it_is_left_alone_and_is_enough_to_use_it_again(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url, **QUICK)
    redis_server.stop_answering()
    try:
        await refused(opened, partition)
        (asking,) = (task for task in asyncio.all_tasks() if task.get_name() == "is the index server back")
        asking.cancel()  # so that nobody else finds out
        with pytest.raises(DomainError):
            await opened.index.check()
    finally:
        redis_server.answer_again()
    await refused_at_once(opened, partition)
    await opened.index.check()
    assert await answers(opened, partition)


async def test_a_connection_that_is_closed_while_its_server_is_left_alone_begins_anew(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url, **QUICK)
    redis_server.stop_answering()
    try:
        await refused(opened, partition)
        await opened.index.close()
    finally:
        redis_server.answer_again()
    await opened.index.open()
    assert await answers(opened, partition)


async def transfer(opened: Opened, key: str) -> bytes:
    """Has a connection until something is pushed to the key, with much time."""

    async def wait(client: Client) -> bytes:
        _, value = cast("tuple[bytes, bytes]", await client.blpop([key], timeout=0))
        return value

    return await opened.connection.call(key, wait, timeout_seconds=NEVER_SECONDS)


async def all_connections_in_use(opened: Opened, server: RedisProcess) -> None:
    def are() -> bool:
        with server.client() as client:
            return any("b" in item["flags"] for item in client.client_list())

    await wait_until_async(are, what="a transfer has the only connection")


async def test_transfers_that_have_all_connections_are_not_ended_by_those_who_find_none(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url, **QUICK, max_connections=1, acquire_timeout_seconds=0.1)
    key = fresh("list")
    waiting = asyncio.create_task(transfer(opened, key))
    await all_connections_in_use(opened, redis_server)
    for _ in range(4):
        with pytest.raises(DomainError, match="all connections to the index server are in use") as refusal:
            await opened.index.manifest(partition)
        assert (refusal.value.reason, refusal.value.metadata) == (
            Reason.DEPENDENCY_UNAVAILABLE,
            {"dependency": "index"},
        )
        await opened.index.check()
    with redis_server.client() as client:
        client.rpush(key, "moved")
    assert await waiting == b"moved"
    assert await answers(opened, partition)


async def test_transfers_that_have_all_connections_to_a_silent_server_are_ended_by_looks_at_its_health(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url, **QUICK, max_connections=1, acquire_timeout_seconds=0.1)
    waiting = asyncio.create_task(transfer(opened, fresh("list")))
    await all_connections_in_use(opened, redis_server)
    redis_server.stop_answering()
    try:
        with pytest.raises(DomainError):
            await opened.index.check()
        with pytest.raises(DomainError):
            await waiting
    finally:
        redis_server.answer_again()
    await eventually_answers(opened, partition)


async def test_attempts_that_ran_side_by_side_count_as_one():
    circuit = Circuit()
    began = asyncio.get_running_loop().time()
    assert not any(circuit.unanswered(began, silence=True) for _ in range(100))
    assert not circuit.is_open


async def test_an_answer_in_between_begins_the_count_anew():
    circuit, loop = Circuit(), asyncio.get_running_loop()
    for _ in range(10):
        assert not circuit.unanswered(loop.time(), silence=True)
        assert not circuit.unanswered(loop.time(), silence=True)
        assert not circuit.answered()
    opened = [circuit.unanswered(loop.time(), silence=False) for _ in range(5)]
    assert opened == [False, False, False, False, True]
    assert circuit.answered()
