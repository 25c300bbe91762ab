"""Which primary is used when sentinels disagree, are silent, or know none; and that one is enough."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from structlog.testing import capture_logs

from durable_memory.adapters.redis.server import Server
from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.index_samples import fresh, grant, partition_of, publish
from tests.integration.redis.conftest import NEVER_SECONDS, Opened, OpenIndex, left_by_all, made
from tests.integration.redis.told_sentinel import NAME, ToldSentinel
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until_async
from tests.processes.proxy import Fate, TcpProxy, Way
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis

PORT_OF_NOBODY = 1
QUICK = {"look_seconds": 0.1}
BESIDE_SILENT_ONES = {**QUICK, "look_timeout_seconds": 2.0}
"""Every look lasts so long where most sentinels say nothing."""


@pytest.fixture
async def sentinels(redis_server: RedisProcess) -> AsyncIterator[list[ToldSentinel]]:
    """Three that know the server as the primary."""
    async with AsyncExitStack() as stack:
        made = [ToldSentinel(redis_server.port, 1) for _ in range(3)]
        for sentinel in made:
            await stack.enter_async_context(sentinel.serving())
        yield made


def url_of(sentinels: list[ToldSentinel], user: str = "", options: str = "") -> str:
    hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in sentinels)
    return f"redis+sentinel://{user}{hosts}/{NAME}{options}"


async def refusal(call) -> DomainError:
    with pytest.raises(DomainError) as refused:
        await call
    return refused.value


async def uses(opened: Opened, server: RedisProcess) -> bool:
    """Whether the next call goes to this server."""
    scope = fresh("scope")
    await grant(opened.leases, partition_of(scope))
    with server.client() as client:
        return bool(client.exists(f"dm:{{{partition_of(scope).name}}}:lease"))


async def eventually_uses(opened: Opened, server: RedisProcess) -> None:
    async def does() -> bool:
        return await uses(opened, server)

    await wait_until_async(does, what="the other primary is used")


async def test_one_sentinel_that_answers_is_enough(sentinels, redis_server, open_index: OpenIndex):
    silent, gone = ToldSentinel(redis_server.port, 1), ToldSentinel(redis_server.port, 1)
    silent.answers = False
    gone.port = free_port()
    async with silent.serving():
        opened = await open_index(url_of([gone, silent, sentinels[0]]), **BESIDE_SILENT_ONES)
        assert await uses(opened, redis_server)
        await opened.index.check()


async def test_where_no_sentinel_answers_that_is_what_is_said():
    nobody = [ToldSentinel(0, 0) for _ in range(3)]
    for sentinel in nobody:
        sentinel.port = free_port()
    error = await refusal(made(url_of(nobody, "user:hunter2@"), **QUICK).index.open())
    assert error.reason is Reason.DEPENDENCY_UNAVAILABLE
    assert error.message == "no sentinel answers"
    assert error.metadata == {"dependency": "index"}


async def test_where_no_primary_is_known_that_is_what_is_said(sentinels):
    for sentinel in sentinels:
        sentinel.primary_port = 0
    error = await refusal(made(url_of(sentinels), **QUICK).index.open())
    assert error.message == "the sentinels know no primary of that name"
    assert NAME not in error.message


async def test_while_the_primary_is_looked_for_the_index_cannot_be_reached_and_is_no_defect(sentinels, partition):
    for sentinel in sentinels:
        sentinel.answers = False
    opened = made(url_of(sentinels), look_timeout_seconds=NEVER_SECONDS)
    opening = asyncio.create_task(opened.index.open())
    await wait_until_async(lambda: all(sentinel.connections for sentinel in sentinels), what="all are asked")
    for call in (opened.index.check(), opened.index.manifest(partition), opened.index.segments(partition, ["s"])):
        error = await refusal(call)
        assert (error.reason, error.metadata) == (Reason.DEPENDENCY_UNAVAILABLE, {"dependency": "index"})
        assert error.message == "the primary is not known yet"
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert (await refusal(opened.index.manifest(partition))).metadata == {"state": "closed"}


async def test_a_look_at_a_primary_that_says_it_is_a_replica_makes_the_sentinels_be_asked_at_once(
    sentinels, open_index: OpenIndex
):
    with RedisProcess(system_redis()) as old, RedisProcess(system_redis()) as promoted:
        for sentinel in sentinels:
            sentinel.primary_port = old.port
        opened = await open_index(url_of(sentinels), **{**QUICK, "look_seconds": 600.0})
        for sentinel in sentinels:
            sentinel.primary_port, sentinel.epoch = promoted.port, 2
        await asyncio.to_thread(old.replicate, promoted.port)

        async def answers() -> bool:
            try:
                await opened.index.check()
            except DomainError:
                return False
            return True

        await wait_until_async(answers, what="the promoted one is looked at")
        await opened.index.close()


async def test_a_primary_that_is_left_for_another_is_left_although_it_still_answers_as_one(
    sentinels, redis_server, open_index: OpenIndex
):
    """A partition: the sentinels have promoted another one, and nobody could tell the old one."""
    with RedisProcess(system_redis()) as promoted:
        opened = await open_index(url_of(sentinels), **QUICK)
        partition = partition_of(fresh("scope"))
        lost = await grant(opened.leases, partition)
        manifest = await publish(opened.index, partition, lost)
        sentinels[1].primary_port, sentinels[1].epoch = promoted.port, 2
        await eventually_uses(opened, promoted)
        assert await opened.index.manifest(partition) is None, "what the old one acknowledged is not there"
        for call in (opened.leases.renew(lost), publish(opened.index, partition, lost, after=manifest)):
            assert (await refusal(call)).reason is Reason.LEASE_FENCED
        assert (await grant(opened.leases, partition, floor=lost.fence)).fence == lost.fence + 1
        await left_by_all(redis_server)
        await opened.index.close()


async def test_the_first_look_that_is_told_of_a_promotion_goes_there_although_nobody_calls(
    sentinels, open_index: OpenIndex
):
    with RedisProcess(system_redis()) as promoted:
        async with TcpProxy(promoted.port) as way_there:
            opened = await open_index(url_of(sentinels), **QUICK)
            seen: list[int] = []

            def note(way: Way, chunk: bytes) -> Fate:
                seen.append(min(sentinel.asked for sentinel in sentinels))
                return Fate.PASS

            way_there.rule = note
            before = max(sentinel.asked for sentinel in sentinels)
            for sentinel in sentinels:
                sentinel.primary_port, sentinel.epoch = way_there.port, 2
            await wait_until_async(lambda: seen, what="somebody has gone there")
            assert seen[0] <= before + 2, "the look that was under way, and the next"
            await eventually_uses(opened, promoted)
            await opened.index.close()


async def test_what_was_verified_before_a_promotion_is_not_taken_for_verified_after_it(
    sentinels, open_index: OpenIndex, monkeypatch
):
    """Recalls go by the number of connections; the first one to a promoted server is made before it is used."""
    with RedisProcess(system_redis()) as promoted:
        opened = await open_index(url_of(sentinels), **QUICK)
        judge, seen = Server.judge, []

        async def judged(server: Server) -> None:
            await judge(server)
            seen.append(opened.index.connections)

        monkeypatch.setattr(Server, "judge", judged)
        for sentinel in sentinels:
            sentinel.primary_port, sentinel.epoch = promoted.port, 2
        await eventually_uses(opened, promoted)
        assert opened.index.connections > seen[-1]
        await opened.index.close()


async def test_a_sentinel_that_missed_a_promotion_brings_nobody_back(sentinels, redis_server, open_index: OpenIndex):
    with RedisProcess(system_redis()) as promoted:
        opened = await open_index(url_of(sentinels), **BESIDE_SILENT_ONES)
        for sentinel in sentinels[1:]:
            sentinel.primary_port, sentinel.epoch = promoted.port, 2
        await eventually_uses(opened, promoted)
        for sentinel in sentinels[1:]:
            sentinel.answers = False
        asked = sentinels[0].asked
        await wait_until_async(lambda: sentinels[0].asked > asked + 3, what="it was asked several times")
        assert await uses(opened, promoted)
        await opened.index.close()


async def test_sentinels_that_were_set_up_anew_are_believed_when_most_say_the_same(
    sentinels, redis_server, open_index: OpenIndex
):
    for sentinel in sentinels:
        sentinel.epoch = 7
    with RedisProcess(system_redis()) as other:
        opened = await open_index(url_of(sentinels), **QUICK)
        for sentinel in sentinels[1:]:
            sentinel.primary_port, sentinel.epoch = other.port, 0
        sentinels[0].primary_port = 0
        await eventually_uses(opened, other)
        await opened.index.close()


async def test_one_that_is_named_before_it_is_a_primary_is_not_used_until_it_is(
    sentinels, redis_server, open_index: OpenIndex
):
    with RedisProcess(system_redis()) as replica:
        await asyncio.to_thread(replica.replicate, redis_server.port)
        opened = await open_index(url_of(sentinels), **QUICK)
        asked = sentinels[0].asked
        for sentinel in sentinels:
            sentinel.primary_port, sentinel.epoch = replica.port, 2
        await wait_until_async(lambda: sentinels[0].asked > asked + 3, what="it was looked at several times")
        assert await uses(opened, redis_server)
        replica.promote()
        await eventually_uses(opened, replica)
        await opened.index.close()


async def test_a_demoted_primary_that_closes_its_connections_is_never_read_from_as_a_replica(
    sentinels, redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(url_of(sentinels), **QUICK)
    assert await opened.index.manifest(partition) is None
    with redis_server.client() as client:
        client.replicaof("127.0.0.1", str(PORT_OF_NOBODY))
        client.client_kill_filter(_type="normal", skipme=True)
        try:
            error = await refusal(opened.index.manifest(partition))
        finally:
            client.replicaof("NO", "ONE")
    assert (error.reason, error.message) == (Reason.DEPENDENCY_UNAVAILABLE, "the index server is a replica")
    assert await opened.index.manifest(partition) is None


async def test_a_promoted_server_that_would_evict_is_refused_until_it_is_told_not_to(
    sentinels, redis_server, open_index: OpenIndex, partition
):
    with RedisProcess(system_redis(), settings={"maxmemory-policy": "allkeys-lru"}) as promoted:
        opened = await open_index(url_of(sentinels), **QUICK)
        for sentinel in sentinels:
            sentinel.primary_port, sentinel.epoch = promoted.port, 2

        async def refused() -> DomainError | None:
            try:
                await opened.index.check()
            except DomainError as error:
                return error
            return None

        error = await wait_until_async(refused, what="the promoted server is looked at")
        assert error is not None
        assert (error.reason, error.metadata) == (Reason.NOT_SERVING, {"state": "index", "policy": "allkeys-lru"})
        error = await refusal(opened.index.manifest(partition))
        assert (error.reason, error.metadata) == (Reason.DEPENDENCY_UNAVAILABLE, {"dependency": "index"})
        assert "maxmemory-policy" in error.message
        with promoted.client() as client:
            client.config_set("maxmemory-policy", "noeviction")
        await publish(opened.index, partition, await grant(opened.leases, partition))
        await opened.index.check()
        await opened.index.close()


async def test_sentinels_are_asked_by_one_task_over_one_connection_each_however_many_calls_fail(
    sentinels, open_index: OpenIndex, partition
):
    with RedisProcess(system_redis()) as server:
        for sentinel in sentinels:
            sentinel.primary_port = server.port
        opened = await open_index(url_of(sentinels), **QUICK)
        server.kill9()
        before = [sentinel.asked for sentinel in sentinels]
        calls = [opened.index.manifest(partition) for _ in range(200)]
        assert all(isinstance(error, DomainError) for error in await asyncio.gather(*calls, return_exceptions=True))
        asks = [sentinel.asked - asked for sentinel, asked in zip(sentinels, before, strict=True)]
        assert max(asks) < len(calls) / 2, "each of which has failed several times"
        assert [sentinel.connections for sentinel in sentinels] == [1, 1, 1]
        await opened.index.close()


async def test_passwords_and_names_are_in_no_error_and_no_log(sentinels, partition):
    with RedisProcess(system_redis()) as server, capture_logs() as logs:
        with server.client() as client:
            client.config_set("requirepass", "hunter2")
        for sentinel in sentinels:
            sentinel.primary_port = server.port
        url = url_of(sentinels, "user:hunter3@", "?sentinel_username=watcher&sentinel_password=hunter4")
        opened = made(url, **QUICK)
        errors = [await refusal(opened.index.open())]
        right = made(url_of(sentinels, ":hunter2@"), **QUICK)
        await right.index.open()
        server.kill9()
        for sentinel in sentinels:
            sentinel.answers = False
        errors += [await refusal(right.index.manifest(partition)) for _ in range(5)]
        errors.append(await refusal(right.index.check()))
        await right.index.close()
    told = " ".join([*(f"{error.message} {error.metadata}" for error in errors), *map(str, logs)])
    assert not any(word in told for word in ("hunter", "watcher", "user"))
