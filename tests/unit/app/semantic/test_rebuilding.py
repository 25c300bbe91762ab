"""An index that was lost or damaged is built again because somebody asked for it, although no memory has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from durable_memory.app.recall_result import DegradationReason
from durable_memory.app.semantic.partition_state import IndexState, PartitionState, judge
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.refusals import manifest_unreadable
from tests.processes.polling import wait_until_async
from tests.unit.app.semantic.semantic_world import (
    ABOUT_RAIN,
    ABOUT_TEA,
    MONEY,
    RAIN,
    TEA,
    Backing,
    SemanticWorld,
    found_ids,
    looked,
    maintained,
)
from tests.unit.app.stores import Gate, fails_once

LOST = DomainError(Reason.DEPENDENCY_UNAVAILABLE, "the index is not there")
FIRST_PAUSE_SECONDS, A_WHILE = 2.0, 61.0


def is_current(world: SemanticWorld) -> Callable[[], Awaitable[bool]]:
    async def current() -> bool:
        return await world.state() is IndexState.CURRENT

    return current


async def reason(world: SemanticWorld) -> DegradationReason | None:
    degradation = (await world.answer("kettles")).degradation
    return None if degradation is None else degradation.reason


def lost(backing: Backing) -> None:
    backing.lose_index()


def damaged(backing: Backing) -> None:
    backing.damage_segments()


def unreadable(backing: Backing) -> None:
    """The manifest, until it is cleared away."""

    async def hook() -> None:
        if not backing.index.calls["clear"]:
            raise manifest_unreadable()

    backing.index.before["manifest"] = hook


@pytest.mark.parametrize("happened", [lost, damaged, unreadable])
async def test_what_a_recall_found_unfit_is_built_again_once_and_without_the_provider(
    semantic: SemanticWorld, successor: SemanticWorld, backing: Backing, happened: Callable[[Backing], None]
) -> None:
    await semantic.indexed(TEA, RAIN)
    happened(backing)
    async with maintained(successor):
        await wait_until_async(looked(successor))
        assert len(await receipts(successor)) == 1, "nobody has asked for it yet"
        assert await reason(successor) in (DegradationReason.INDEX_REGRESSED, DegradationReason.INDEX_CORRUPTED)
        await wait_until_async(is_current(successor))
        await wait_until_async(looked(successor))
    newest, *_ = made = await receipts(successor)
    assert len(made) == 2
    assert (newest.work.cache_hits, newest.work.provider_calls) == (2, 0)
    assert successor.embedder.passages == []
    for world in (semantic, successor):
        assert found_ids(await world.answer(ABOUT_TEA)) == ["a"]


async def test_what_another_process_has_built_again_is_left_alone(
    semantic: SemanticWorld, successor: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    backing.lose_index()
    assert await reason(successor) is DegradationReason.INDEX_REGRESSED
    await semantic.refresh()
    async with maintained(successor):
        await wait_until_async(looked(successor))
    assert len(await receipts(successor)) == 2
    assert successor.runtime.health.unserved() == []


async def test_a_namespace_without_a_schedule_is_built_again_by_hand_alone(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    await semantic.semantic.set_schedule(semantic.call, interval_seconds=None, on_change_delay_seconds=None)
    backing.lose_index()
    async with maintained(semantic):
        assert await reason(semantic) is DegradationReason.INDEX_REGRESSED
        await wait_until_async(looked(semantic))
        assert await semantic.state() is IndexState.REGRESSED
        await semantic.semantic.set_schedule(semantic.call, interval_seconds=None, on_change_delay_seconds=1.0)
        semantic.pass_seconds(A_WHILE)
        await wait_until_async(is_current(semantic))


async def test_nobody_waits_long_after_the_end_of_an_outage_that_all_waited_for(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")

    async def is_covered() -> bool:
        return (await semantic.status()).unindexed_active_count == 0

    async with maintained(semantic) as maintenance:
        for failures in range(1, 6):
            backing.index.before["manifest"] = fails_once(LOST)
            await wait_until_async(lambda: maintenance.health().failures >= failures)  # noqa: B023
            semantic.pass_seconds(FIRST_PAUSE_SECONDS)
        await wait_until_async(is_covered)
    assert found_ids(await semantic.answer(ABOUT_RAIN)) == ["b"]


async def test_an_index_that_went_back_to_a_state_that_was_verified_is_told_by_its_new_connection(
    semantic: SemanticWorld, successor: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    assert await reason(successor) is None
    kept = backing.keep_index()
    await semantic.remember(RAIN, "b")
    await semantic.refresh()
    backing.lay_back(kept)
    backing.index._store.connections = 1
    assert await reason(successor) is DegradationReason.INDEX_REGRESSED


async def test_what_was_built_again_elsewhere_is_kept_by_the_next_refresh_although_its_vectors_were_there_before(
    semantic: SemanticWorld, successor: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    await semantic.answer(ABOUT_TEA)
    backing.lose_index()
    await successor.refresh()
    await semantic.remember(RAIN, "b")
    staged = backing.index.calls["stage"]
    assert (await semantic.refresh()).indexed_count == 2
    assert backing.index.calls["stage"] == staged + 1, "the new one alone"


# What is published while somebody looks


async def judged(world: SemanticWorld) -> PartitionState:
    return await judge(world.runtime.index, world.runtime.records, world.partition)


async def test_an_index_whose_receipt_is_written_while_it_is_judged_is_current(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    written = backing.records.before["write_receipt"] = Gate()
    refreshing = asyncio.create_task(semantic.refresh())
    await written.reached.wait()
    reads: list[None] = []

    async def between_the_reads() -> None:
        reads.append(None)
        if len(reads) == 2:
            written.open()
            await refreshing

    backing.records.before |= {"last_receipt": between_the_reads, "pending_intent": between_the_reads}
    state = await judged(semantic)
    assert (state.state, state.index_revision, len(reads)) == (IndexState.CURRENT, 2, 2)


async def test_an_index_is_current_however_often_it_is_published_while_it_is_judged(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    left = [("b", RAIN), ("c", MONEY)]

    async def publish_meanwhile() -> None:
        del backing.records.before["last_receipt"]
        if left:
            await semantic.put(*left.pop())
            await semantic.refresh()
            backing.records.before["last_receipt"] = publish_meanwhile

    backing.records.before["last_receipt"] = publish_meanwhile
    state = await judged(semantic)
    assert (state.state, state.index_revision) == (IndexState.CURRENT, 3)


async def receipts(world: SemanticWorld) -> list:
    return list(await world.semantic.receipts(world.call, before=None, limit=10))
