"""A refresh makes an index cover what is ACTIVE now, or leaves it exactly as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from durable_memory.adapters.memory.vector_index import MemoryVectorIndex
from durable_memory.app.recall_result import DegradationReason
from durable_memory.app.semantic import index_delta
from durable_memory.app.semantic.partition_state import IndexState
from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.manifest import Manifest
from durable_memory.domain.semantic.refusals import manifest_unreadable
from durable_memory.domain.session import RecallMode
from durable_memory.ports.vector_index import Consistency
from tests.fixture_embedder import DIMENSION
from tests.processes.polling import wait_until_async
from tests.unit.app.semantic.semantic_world import (
    ABOUT_MONEY,
    ABOUT_RAIN,
    ABOUT_TEA,
    MONEY,
    RAIN,
    TEA,
    TTL_SECONDS,
    Backing,
    SemanticWorld,
    found_ids,
    phases,
    semantic_process,
)
from tests.unit.app.stores import Gate, fails_once
from tests.unit.app.world import refused

LOST = DomainError(Reason.DEPENDENCY_UNAVAILABLE, "the repository is not there")


async def published(world: SemanticWorld) -> Manifest:
    manifest = (await world.status()).manifest
    assert manifest is not None
    return manifest


def always(act: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """A hook that does this before each call."""

    async def hook() -> None:
        act()

    return hook


def once(act: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """A hook that does this before the first call."""
    left = [act]
    return always(lambda: left.pop()() if left else None)


def unless_cleared(backing: Backing, error: DomainError) -> Callable[[], Awaitable[None]]:
    """A hook that raises until the index has been cleared."""

    async def hook() -> None:
        if not backing.index.calls["clear"]:
            raise error

    return hook


# What is published


async def test_the_first_refresh_publishes_all_that_is_active(semantic: SemanticWorld) -> None:
    await semantic.open()
    assert await semantic.state() is IndexState.NOT_BUILT
    await semantic.remember(TEA, "a")
    await semantic.retire(await semantic.remember(RAIN, "b"))
    receipt = await semantic.refresh()
    assert (receipt.index_revision, receipt.active_count, receipt.indexed_count) == (1, 1, 1)
    assert receipt.source_revision == await semantic.revision()
    assert (receipt.work.added, receipt.work.provider_inputs, receipt.completed_by_successor) == (1, 1, False)
    assert semantic.embedder.passages == [TEA]
    assert phases(semantic.reported) == ["DIFFING", "EMBEDDING", "STAGING", "PUBLISHED"]
    assert await semantic.state() is IndexState.CURRENT


async def test_one_changed_memory_costs_one_vector(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA, RAIN)
    await semantic.put("b", MONEY)
    receipt = await semantic.refresh()
    assert (receipt.index_revision, receipt.indexed_count) == (2, 2)
    assert (receipt.work.added, receipt.work.replaced, receipt.work.provider_inputs) == (0, 1, 1)
    assert found_ids(await semantic.answer(ABOUT_MONEY)) == ["b"]
    assert (await semantic.answer(ABOUT_RAIN)).hits == ()


async def test_a_refresh_of_nothing_new_is_verified_and_asks_no_provider(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    calls, kept = semantic.provider_calls(), (await semantic.status()).manifest
    semantic.reported.clear()
    receipt = await semantic.refresh()
    assert (receipt.index_revision, receipt.work.provider_calls, semantic.provider_calls()) == (1, 0, calls)
    assert (await semantic.status()).manifest == kept
    assert phases(semantic.reported) == ["DIFFING", "UNCHANGED"]


async def test_what_is_retired_leaves_the_index_without_a_provider_call(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA, RAIN)
    calls = semantic.provider_calls()
    await semantic.retire(await semantic.node("a"))
    receipt = await semantic.refresh()
    assert (receipt.work.removed, receipt.indexed_count, semantic.provider_calls()) == (1, 1, calls)
    answer = await semantic.answer(ABOUT_TEA)
    assert answer.semantic is not None
    assert (answer.semantic.dropped, answer.semantic.vectors_searched) == (0, 1)


async def test_a_rebuild_writes_every_segment_anew_from_cached_vectors(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA, RAIN)
    before, calls = (await semantic.status()).manifest, semantic.provider_calls()
    receipt = await semantic.refresh(rebuild=True)
    after = (await semantic.status()).manifest
    assert before is not None
    assert after is not None
    assert not {entry.segment_id for entry in before.segments} & {entry.segment_id for entry in after.segments}
    assert (receipt.index_revision, receipt.indexed_count, receipt.work.cache_hits) == (2, 2, 2)
    assert semantic.provider_calls() == calls


async def test_a_rebuild_where_nothing_is_active_any_more_leaves_nothing(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    await semantic.retire(await semantic.node("a"))
    assert (await semantic.refresh(rebuild=True)).indexed_count == 0
    assert (await semantic.answer(ABOUT_TEA)).degradation is None


async def test_a_damaged_index_of_what_is_retired_is_mended_as_well(semantic: SemanticWorld, backing: Backing) -> None:
    async with semantic_process(backing, "reader") as reader:
        await semantic.indexed(TEA)
        await semantic.retire(await semantic.node("a"))
        backing.damage_segments()
        assert await reader.state() is IndexState.CORRUPTED
        await reader.refresh()
        assert await reader.state() is IndexState.CURRENT


async def test_however_many_segments_are_mostly_dead_they_are_merged_in_one_publication(
    semantic: SemanticWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_delta, "RECORDS_PER_SEGMENT", 4)
    monkeypatch.setattr(index_delta, "_SMALL", 1)
    await semantic.open()
    nodes = [await semantic.remember(f"Number {number}.", f"n{number:03}") for number in range(112)]
    await semantic.refresh()
    for place, node in enumerate(nodes):
        if place % 4:
            await semantic.retire(node)
    receipt = await semantic.refresh()
    manifest = (await semantic.status()).manifest
    assert manifest is not None
    assert (receipt.indexed_count, len(manifest.segments), manifest.dead_count) == (28, 7, 0)


# What fails leaves the index whole


async def test_a_provider_that_fails_publishes_nothing(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    kept = (await semantic.status()).manifest
    await semantic.remember(RAIN, "b")
    semantic.embedder.fail_next()
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="PROVIDER_FAILED"):
        await semantic.refresh()
    status = await semantic.status()
    assert (status.manifest, status.state) == (kept, IndexState.CURRENT)
    assert status.last_failure == "SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:UNREACHABLE"
    assert found_ids(await semantic.answer(ABOUT_TEA)) == ["a"]
    assert (await semantic.refresh()).indexed_count == 2


async def test_a_lost_index_is_rebuilt_from_cached_vectors_alone(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.indexed(TEA, RAIN)
    backing.lose_index()
    assert await semantic.state() is IndexState.REGRESSED
    answer = await semantic.answer("kettles")
    assert answer.degradation is not None
    assert (found_ids(answer), answer.degradation.reason) == (["a"], DegradationReason.INDEX_REGRESSED)
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="INDEX_REGRESSED"):
        await semantic.answer(ABOUT_TEA, mode=RecallMode.SEMANTIC)
    calls = semantic.provider_calls()
    receipt = await semantic.refresh()
    assert (receipt.work.provider_calls, receipt.work.cache_hits, semantic.provider_calls()) == (0, 2, calls)
    assert await semantic.state() is IndexState.CURRENT
    healed = await semantic.answer(ABOUT_TEA)
    assert (found_ids(healed), healed.mode, healed.degradation) == (["a"], RecallMode.HYBRID, None)


async def test_a_publication_without_a_receipt_is_completed_by_the_next_holder(
    semantic: SemanticWorld, successor: SemanticWorld, backing: Backing
) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    backing.records.before["write_receipt"] = fails_once(LOST)
    with refused(Reason.OUTCOME_UNKNOWN):  # nobody may be told that it did not happen
        await semantic.refresh()
    assert found_ids(await semantic.answer(ABOUT_TEA)) == ["a"]
    await successor.refresh()
    (receipt,) = await successor.semantic.receipts(successor.call, before=None, limit=10)
    assert (receipt.index_revision, receipt.indexed_count, receipt.completed_by_successor) == (1, 1, True)
    assert receipt.work.added == 1
    assert successor.provider_calls() == 0
    assert await backing.records.pending_intent(semantic.partition) is None


# What vanishes or comes between


async def test_a_staged_segment_that_vanished_is_staged_again_and_nothing_is_embedded_twice(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    kept = {entry.segment_id for entry in (await published(semantic)).segments}
    backing.index.before["publish"] = once(lambda: backing.drop_segments(kept))
    receipt = await semantic.refresh()
    assert (receipt.index_revision, receipt.indexed_count, receipt.work.provider_inputs) == (2, 2, 1)
    assert semantic.embedder.passages == [TEA, RAIN]
    assert found_ids(await semantic.answer(ABOUT_RAIN)) == ["b"]


async def test_a_publisher_whose_staged_segments_always_vanish_is_refused_and_the_old_index_stays(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    kept = await published(semantic)
    await semantic.remember(RAIN, "b")
    backing.index.before["publish"] = always(
        lambda: backing.drop_segments({entry.segment_id for entry in kept.segments})
    )
    with refused(Reason.LEASE_FENCED):
        await semantic.refresh()
    assert backing.index.calls["publish"] == 1 + 3
    assert (await semantic.status()).manifest == kept
    backing.index.before.clear()
    assert (await semantic.refresh()).indexed_count == 2, "its lease was given back"


async def test_a_stage_that_is_found_expired_by_a_renewal_leaves_the_lease_to_its_holder(backing: Backing) -> None:
    async with semantic_process(backing, "brief", ttl_seconds=0.03) as world:
        await world.open()
        await world.remember(TEA, "a")
        gate = Gate()
        backing.index.before["publish"] = gate
        work = asyncio.create_task(world.refresh())
        await gate.reached.wait()
        backing.drop_segments(set())
        renewals = backing.index.calls["keep_staged"]
        await wait_until_async(lambda: backing.index.calls["keep_staged"] > renewals + 1)
        gate.open()
        assert (await work).indexed_count == 1


async def test_a_published_segment_that_is_gone_is_found_by_the_next_publication_and_all_is_built_again(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    backing.drop_segments(set())
    await semantic.remember(RAIN, "b")
    receipt = await semantic.refresh()
    assert (receipt.indexed_count, receipt.work.provider_inputs, receipt.work.cache_hits) == (2, 1, 1)
    async with semantic_process(backing, "reader") as reader:
        assert await reader.state() is IndexState.CURRENT
        assert found_ids(await reader.answer(ABOUT_TEA)) == ["a"]


async def test_a_manifest_that_cannot_be_read_is_damage_that_a_refresh_mends(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    calls = semantic.provider_calls()
    backing.index.before["manifest"] = unless_cleared(backing, manifest_unreadable())
    status = await semantic.status()
    assert (status.state, status.manifest, status.unindexed_active_count) == (IndexState.CORRUPTED, None, 1)
    assert (await semantic.refresh()).indexed_count == 1
    assert await semantic.state() is IndexState.CURRENT
    assert semantic.provider_calls() == calls


async def test_a_caller_that_leaves_while_it_is_published_leaves_a_receipt_behind(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    for step in ("publish", "write_receipt"):
        gate = Gate()
        hooked = backing.index if step == "publish" else backing.records
        hooked.before[step] = gate
        work = asyncio.create_task(semantic.refresh())
        await gate.reached.wait()
        work.cancel()
        work.cancel()
        gate.open()
        with pytest.raises(asyncio.CancelledError):
            await work
        hooked.before.clear()
        status = await semantic.status()
        assert status.manifest is not None
        assert status.last_receipt is not None
        assert status.last_receipt.history_digest == status.manifest.history_digest
        assert not status.last_receipt.completed_by_successor
        assert await backing.records.pending_intent(semantic.partition) is None
        await semantic.remember(RAIN, "b")


async def test_a_caller_that_leaves_before_the_publication_leaves_the_old_index_whole(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    kept = await published(semantic)
    await semantic.remember(RAIN, "b")
    for hooked, step in (
        (backing.records, "cached_vectors"),
        (backing.records, "cache_vectors"),
        (backing.index, "stage"),
        (backing.records, "write_intent"),
    ):
        gate = Gate()
        hooked.before[step] = gate
        work = asyncio.create_task(semantic.refresh())
        await gate.reached.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        hooked.before.clear()
        status = await semantic.status()
        assert (status.manifest, status.state) == (kept, IndexState.CURRENT)
    assert (await semantic.refresh()).indexed_count == 2


async def test_a_namespace_over_the_budget_of_an_index_is_refused_before_anything_is_embedded_or_staged(
    backing: Backing,
) -> None:
    for limits in (RefreshLimits(max_records=1), RefreshLimits(max_bytes=2 * DIMENSION * 4 - 1)):
        async with semantic_process(backing, "small", limits=limits) as world:
            await world.open()
            for node_id, text in (("a", TEA), ("b", RAIN)):
                await world.put(node_id, text)
            with refused(Reason.QUOTA_EXCEEDED):
                await world.refresh()
            assert (world.provider_calls(), backing.index.calls["stage"]) == (0, 0)


async def test_a_weaker_index_is_refused_before_any_work(
    semantic: SemanticWorld, backing: Backing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    monkeypatch.setattr(MemoryVectorIndex, "consistency", Consistency.LAST_WRITER_WINS)
    before = (dict(backing.records.calls), semantic.provider_calls())
    with refused(Reason.CONSISTENCY_UNSUPPORTED):
        await semantic.refresh()
    assert (dict(backing.records.calls), semantic.provider_calls()) == before


def changing(world: SemanticWorld, times: int) -> Callable[[], Awaitable[None]]:
    """A hook under which the source changes so many times, once before each call."""
    left = list(range(times))

    async def hook() -> None:
        if left:
            await world.remember(f"Number {left.pop()} is new.")

    return hook


async def test_a_source_that_changes_thrice_meanwhile_is_followed(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    backing.records.before["cached_vectors"] = changing(semantic, 3)
    receipt = await semantic.refresh()
    assert (receipt.indexed_count, receipt.source_revision) == (5, await semantic.revision())


async def test_a_source_that_never_stands_still_is_refused_unless_it_may_be_published_behind(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    kept = (await semantic.status()).manifest
    await semantic.remember(RAIN, "b")
    backing.records.before["cached_vectors"] = changing(semantic, 100)
    with refused(Reason.SOURCE_DRIFT):
        await semantic.refresh()
    assert (await semantic.status()).manifest == kept
    receipt = await semantic.publish_behind()
    assert receipt.source_revision < await semantic.revision()
    answer = await semantic.answer(ABOUT_RAIN)
    assert found_ids(answer) == ["b"]
    assert answer.semantic is not None
    assert answer.semantic.unindexed_active == 1


# The lease


async def test_while_one_refreshes_another_is_told_that_the_lease_is_held(
    semantic: SemanticWorld, successor: SemanticWorld
) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    semantic.embedder.gate.clear()
    work = asyncio.create_task(semantic.refresh())
    await semantic.embedder.waiting.wait()
    with refused(Reason.LEASE_HELD):
        await successor.refresh()
    semantic.embedder.gate.set()
    assert (await work).indexed_count == 1


async def test_a_holder_that_slept_through_its_lease_is_fenced_and_the_newer_index_stays_whole(
    semantic: SemanticWorld, successor: SemanticWorld
) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    semantic.embedder.gate.clear()
    semantic.embedder.waiting.clear()
    work = asyncio.create_task(semantic.refresh())
    await semantic.embedder.waiting.wait()
    semantic.pass_seconds(TTL_SECONDS + 1)
    published = await successor.refresh()
    semantic.embedder.gate.set()
    with refused(Reason.LEASE_FENCED):
        await work
    status = await semantic.status()
    assert (status.state, status.last_receipt) == (IndexState.CURRENT, published)
    assert found_ids(await semantic.answer(ABOUT_RAIN)) == ["b"]


async def test_a_lease_lost_with_nobody_after_it_leaves_the_old_index_whole(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    kept = (await semantic.status()).manifest
    await semantic.remember(RAIN, "b")
    semantic.embedder.gate.clear()
    semantic.embedder.waiting.clear()
    work = asyncio.create_task(semantic.refresh())
    await semantic.embedder.waiting.wait()
    semantic.pass_seconds(TTL_SECONDS + 1)
    semantic.embedder.gate.set()
    with refused(Reason.LEASE_FENCED):
        await work
    status = await semantic.status()
    assert (status.state, status.manifest) == (IndexState.CURRENT, kept)
    assert (await semantic.refresh()).indexed_count == 2


async def test_a_holder_cancels_its_own_work_when_its_lease_may_have_run_out(backing: Backing) -> None:
    async with semantic_process(backing, "brief", ttl_seconds=0.03) as world:
        await world.open()
        await world.remember(TEA, "a")
        world.embedder.gate.clear()
        work = asyncio.create_task(world.refresh())
        await world.embedder.waiting.wait()
        world.pass_seconds(1)
        with refused(Reason.LEASE_FENCED):
            await work
        assert await world.state() is IndexState.NOT_BUILT


@pytest.mark.parametrize("unanswered", [Reason.OUTCOME_UNKNOWN, Reason.DEPENDENCY_UNAVAILABLE])
async def test_a_publication_whose_answer_is_lost_is_asked_for_again(
    semantic: SemanticWorld, backing: Backing, unanswered: Reason
) -> None:
    await semantic.open()
    await semantic.remember(TEA, "a")
    backing.index.before["publish"] = fails_once(DomainError(unanswered, "no answer"))
    assert (await semantic.refresh()).index_revision == 1
    assert backing.index.calls["publish"] == 2
