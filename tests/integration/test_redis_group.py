"""The group of Redis servers and sentinels that the qualification breaks: it does what its methods say."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tests.qualification.cluster.redis_group import MASTER, RedisGroup

ONCE: Retry = Retry(NoBackoff(), 0)


@pytest.fixture
async def group() -> AsyncIterator[RedisGroup]:
    async with RedisGroup() as group:
        yield group


async def test_sentinels_and_clients_know_the_nodes_by_their_proxies(group: RedisGroup):
    ports = [f"127.0.0.1:{sentinel.port}" for sentinel in group.sentinels]
    assert group.url == f"redis+sentinel://{','.join(ports)}/durable-memory"
    with group.sentinels[0].client() as sentinel:
        primary: Any = sentinel.sentinel_master(MASTER)
        replicas: Any = sentinel.sentinel_slaves(MASTER)
    assert primary["port"] == group.primary.proxy.port
    assert {replica["port"] for replica in replicas} == {node.proxy.port for node in group.replicas}
    assert {group.primary, *group.replicas} == set(group.nodes)


async def test_a_promotion_loses_what_only_the_primary_acknowledged_and_the_old_primary_follows(group: RedisGroup):
    async with group.client() as client:
        await client.set("kept", "1")
    await group.wait_settled()

    async def during() -> None:
        async with group.client() as client:
            assert await client.set("lost", "1")

    old = await group.promote_losing_writes(during)
    assert group.primary is not old
    assert not old.is_running
    assert await group.problems()
    await group.rejoin(old)

    assert old in group.replicas
    for node in group.nodes:
        async with redis.asyncio.Redis(port=node.port, protocol=2) as client:
            assert await client.mget("kept", "lost") == [b"1", None]


async def test_all_nodes_lose_everything_and_the_primary_stays(group: RedisGroup):
    primary = group.primary
    for sentinel in group.sentinels:  # which the nodes are to be faster than
        with sentinel.client() as client:
            client.execute_command("SENTINEL SET", MASTER, "down-after-milliseconds", 60_000)
    async with group.client() as client:
        await client.set("lost", "1")
    await group.restart_empty_everywhere()
    assert group.primary is primary
    async with group.client() as client:
        assert await client.dbsize() == 0


async def test_in_an_outage_nobody_is_answered_and_after_it_the_data_is_there(group: RedisGroup):
    async with group.client() as client:
        await client.set("kept", "1")
    await group.wait_settled()

    for killed in (False, True):
        proxied = group.primary.proxy.port
        await group.outage(killed=killed)
        async with redis.asyncio.Redis(port=proxied, protocol=2, socket_timeout=0.2, retry=ONCE) as client:
            with pytest.raises(RedisError):
                await client.ping()
        await group.end_outage()
        async with group.client() as client:
            assert await client.get("kept") == b"1"
