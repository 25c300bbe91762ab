"""Recall and refreshes over a promotion: what it lost is found out, and nothing that is not so is recalled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from durable_memory.adapters.memory.semantic_records import MemorySemanticRecords
from durable_memory.adapters.runtime import ManualClock
from durable_memory.app.semantic.partition_state import IndexState
from durable_memory.domain.errors import DomainError
from durable_memory.domain.namespace import Namespace
from tests.conformance.index_samples import fresh
from tests.integration.redis.conftest import Opened, OpenIndex
from tests.integration.redis.told_sentinel import NAME, ToldSentinel
from tests.processes.polling import wait_until_async
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis
from tests.unit.app.semantic.semantic_world import (
    ABOUT_RAIN,
    RAIN,
    TEA,
    Backing,
    SemanticWorld,
    found_ids,
    semantic_process,
)
from tests.unit.app.stores import HookedStore
from tests.unit.app.world import START, CountingIds, opened_store


@asynccontextmanager
async def processes(*opened: Opened) -> AsyncIterator[list[SemanticWorld]]:
    """Processes over one repository, each with what it sees of the index."""
    store, clock = await opened_store(CountingIds("store")), ManualClock(START)
    records, namespace = MemorySemanticRecords(store), Namespace("acme", "user-1", fresh("scope"))
    async with AsyncExitStack() as stack:
        worlds = []
        for one in opened:
            leases: Any = one.leases
            backing = Backing(HookedStore(store), clock, leases, HookedStore(one.index), HookedStore(records))
            world = await stack.enter_async_context(semantic_process(backing, fresh("process")))
            world.namespace = namespace
            worlds.append(world)
        yield worlds


def url_of(sentinel: ToldSentinel) -> str:
    return f"redis+sentinel://127.0.0.1:{sentinel.port}/{NAME}"


async def test_what_a_promotion_lost_is_found_out_and_rebuilt_without_the_provider(
    redis_server: RedisProcess, open_index: OpenIndex
):
    sentinel = ToldSentinel(redis_server.port, 1)
    async with sentinel.serving():
        with RedisProcess(system_redis()) as promoted:
            opened = await open_index(url_of(sentinel), look_seconds=0.1)
            async with processes(opened) as (world,):
                await world.indexed(TEA)
                await world.remember(RAIN, "b")
                await world.refresh()
                assert found_ids(await world.answer(ABOUT_RAIN)) == ["b"]
                sentinel.primary_port, sentinel.epoch = promoted.port, 2

                async def is_regressed() -> bool:
                    try:
                        return await world.state() is IndexState.REGRESSED
                    except DomainError:
                        return False

                await wait_until_async(is_regressed, what="the loss is found out")
                calls = world.provider_calls()
                await world.refresh()
                assert await world.state() is IndexState.CURRENT
                assert found_ids(await world.answer(ABOUT_RAIN)) == ["b"]
                assert world.provider_calls() <= calls + 1, "but for the question"
            await opened.index.close()


async def test_two_servers_that_each_have_a_primary_recall_nothing_that_is_not_so(
    redis_server: RedisProcess, open_index: OpenIndex
):
    """The longest that a partition can last for a server: its sentinel has not heard of the promotion."""
    behind = ToldSentinel(redis_server.port, 1)
    async with behind.serving():
        with RedisProcess(system_redis()) as promoted:
            opened = await open_index(url_of(behind)), await open_index(promoted.url)
            async with processes(*opened) as (old, new):
                await old.indexed(TEA)
                rain = await old.remember(RAIN, "b")
                for world, other in ((new, old), (old, new)):
                    await world.refresh()
                    assert await world.state() is IndexState.CURRENT
                    assert await other.state() is IndexState.REGRESSED, "its primary is not what the receipt is of"
                    assert found_ids(await world.answer(ABOUT_RAIN)) == ["b"]
                await old.retire(rain)
                for world in (old, new):
                    assert found_ids(await world.answer(ABOUT_RAIN)) == [], "although both primaries have its vector"
                receipts = await old.semantic.receipts(old.call, before=None, limit=10)
                fences = [receipt.fence for receipt in receipts]
                assert fences == sorted(set(fences), reverse=True), "no two ever had the same"
            for one in opened:
                await one.index.close()
