"""Refreshes over a real server: what it forgets before it is published is staged again, and never published in part."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from durable_memory.adapters.memory.semantic_records import MemorySemanticRecords
from durable_memory.adapters.redis.keys import lease_key, segment_pattern
from durable_memory.adapters.runtime import ManualClock
from durable_memory.app.semantic.partition_state import IndexState
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from tests.conformance.index_samples import fresh
from tests.integration.redis.conftest import OpenIndex
from tests.processes.polling import wait_until_async
from tests.processes.redis import RedisProcess
from tests.unit.app.semantic.semantic_world import (
    ABOUT_RAIN,
    RAIN,
    TEA,
    TTL_SECONDS,
    Backing,
    SemanticWorld,
    found_ids,
    semantic_process,
)
from tests.unit.app.stores import HookedStore, fails_once
from tests.unit.app.world import START, CountingIds, opened_store, refused


@pytest.fixture
async def world(redis_server: RedisProcess, open_index: OpenIndex) -> AsyncIterator[SemanticWorld]:
    """A process whose index and leases are on the server, with one memory indexed and another one not yet."""
    opened = await open_index(redis_server.url)
    leases: Any = opened.leases
    store = await opened_store(CountingIds("store"))
    backing = Backing(
        HookedStore(store),
        ManualClock(START),
        leases,
        HookedStore(opened.index),
        HookedStore(MemorySemanticRecords(store)),
    )
    async with semantic_process(backing, fresh("process")) as world:
        world.namespace = Namespace("acme", "user-1", fresh("scope"))
        await world.indexed(TEA)
        await world.remember(RAIN, "b")
        yield world


def forgets_what_is_staged(world: SemanticWorld, server: RedisProcess, times: int) -> Callable[[], Awaitable[None]]:
    """A hook under which the time of staged segments runs out, so often."""
    left = list(range(times))

    async def hook() -> None:
        if not left:
            return
        left.pop()
        with server.client() as client:
            staged = [key for key in client.keys(segment_pattern(world.partition.name)) if client.pttl(key) > 0]
            assert staged
            for key in staged:
                client.pexpire(key, 1)
            await wait_until_async(lambda: not client.exists(*staged), what="they expired")

    return hook


async def test_what_expired_before_it_was_published_is_staged_again(
    world: SemanticWorld, redis_server: RedisProcess
) -> None:
    world.backing.index.before["publish"] = forgets_what_is_staged(world, redis_server, 2)
    receipt = await world.refresh()
    assert (receipt.index_revision, receipt.indexed_count, receipt.work.provider_inputs) == (2, 2, 1)
    assert found_ids(await world.answer(ABOUT_RAIN)) == ["b"]
    with redis_server.client() as client:
        keys = client.keys(segment_pattern(world.partition.name))
        assert [client.pttl(key) for key in keys] == [-1, -1], "what is published stays"


async def test_a_publisher_that_is_always_stalled_past_the_ttl_of_what_it_staged_is_refused(
    world: SemanticWorld, redis_server: RedisProcess
) -> None:
    kept = (await world.status()).manifest
    world.backing.index.before["publish"] = forgets_what_is_staged(world, redis_server, 100)
    with refused(Reason.LEASE_FENCED):
        await world.refresh()
    status = await world.status()
    assert (status.state, status.manifest) == (IndexState.CURRENT, kept)
    world.backing.index.before.clear()
    assert (await world.refresh()).indexed_count == 2, "the lease was given back"


async def test_a_publisher_whose_lease_ran_out_on_the_server_is_refused(
    world: SemanticWorld, redis_server: RedisProcess
) -> None:
    kept = (await world.status()).manifest

    async def expires() -> None:
        with redis_server.client() as client:
            client.delete(lease_key(world.partition.name))

    world.backing.index.before["publish"] = expires
    with refused(Reason.LEASE_FENCED):
        await world.refresh()
    assert (await world.status()).manifest == kept


async def test_a_crash_between_publication_and_receipt_is_completed_by_the_next_holder(world: SemanticWorld) -> None:
    lost = DomainError(Reason.DEPENDENCY_UNAVAILABLE, "the repository is not there")
    world.backing.records.before["write_receipt"] = fails_once(lost)
    with refused(Reason.OUTCOME_UNKNOWN):
        await world.refresh()
    assert await world.state() is IndexState.CURRENT, "an intent tells it from a regress"
    calls = world.provider_calls()
    world.pass_seconds(TTL_SECONDS)
    await world.refresh()
    (receipt,) = await world.semantic.receipts(world.call, before=None, limit=1)
    assert (receipt.index_revision, receipt.completed_by_successor) == (2, True)
    assert world.provider_calls() == calls
