"""An index that was lost is published as it was, from cached vectors, before what is new is embedded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from durable_memory.app.semantic.partition_state import IndexState
from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from durable_memory.ports.semantic_records import Receipt
from tests.processes.polling import wait_until_async
from tests.unit.app.semantic.semantic_world import (
    ABOUT_MONEY,
    ABOUT_RAIN,
    ABOUT_TEA,
    MONEY,
    RAIN,
    TEA,
    Backing,
    GatedEmbedder,
    SemanticWorld,
    found_ids,
    maintained,
    semantic_process,
)


def lost(backing: Backing) -> None:
    backing.lose_index()


def damaged(backing: Backing) -> None:
    backing.damage_segments()


def without_vectors(backing: Backing) -> None:
    """The cache, as if nothing had ever been embedded."""
    backing.records._store._vectors.clear()


async def last_receipt(world: SemanticWorld) -> Receipt:
    return (await world.semantic.receipts(world.call, before=None, limit=1))[0]


@pytest.mark.parametrize("happened", [lost, damaged])
async def test_what_was_published_is_searched_again_while_the_provider_is_away_and_something_is_new(
    semantic: SemanticWorld, successor: SemanticWorld, backing: Backing, happened: Callable[[Backing], None]
) -> None:
    await semantic.indexed(TEA, RAIN)
    published = await semantic.revision()
    await semantic.remember(MONEY, "c")
    happened(backing)
    successor.embedder.gate.clear()
    async with maintained(successor, delay_seconds=3_600.0):
        assert (await successor.answer(ABOUT_TEA)).degradation is not None

        async def is_searched() -> bool:
            return (await successor.answer(ABOUT_TEA)).degradation is None

        await wait_until_async(is_searched)
        assert not successor.embedder.waiting.is_set(), "nothing was asked of the provider"
    receipt = await last_receipt(successor)
    assert (receipt.source_revision, receipt.active_count, receipt.indexed_count) == (published, 2, 2)
    assert (receipt.work.cache_hits, receipt.work.provider_calls) == (2, 0)
    assert found_ids(await successor.answer(ABOUT_RAIN)) == ["b"]
    assert (await successor.status()).unindexed_active_count == 1


async def test_what_is_new_comes_with_the_refresh_after_it(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.indexed(TEA, RAIN)
    await semantic.remember(MONEY, "c")
    backing.lose_index()
    assert (await semantic.publish_behind()).indexed_count == 2
    receipt = await semantic.publish_behind()
    assert (receipt.indexed_count, receipt.work.added, receipt.work.provider_inputs) == (3, 1, 1)
    assert receipt.source_revision == await semantic.revision()
    assert found_ids(await semantic.answer(ABOUT_MONEY)) == ["c"]


async def test_the_schedule_sees_to_both(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.indexed(TEA, RAIN)
    await semantic.remember(MONEY, "c")
    backing.lose_index()
    assert (await semantic.answer(ABOUT_TEA)).degradation is not None

    async def is_covered() -> bool:
        status = await semantic.status()
        return status.state is IndexState.CURRENT and not status.unindexed_active_count

    async with maintained(semantic):
        await wait_until_async(is_covered)
    assert found_ids(await semantic.answer(ABOUT_MONEY)) == ["c"]


async def test_what_was_retired_or_revised_since_is_not_recalled_from_what_it_was(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA, RAIN)
    await semantic.retire(await semantic.node("a"))
    await semantic.put("b", MONEY)
    backing.lose_index()
    receipt = await semantic.publish_behind()
    assert (receipt.indexed_count, receipt.work.provider_calls) == (2, 0)
    for question in (ABOUT_TEA, ABOUT_RAIN, ABOUT_MONEY):
        assert (await semantic.answer(question)).hits == ()
    await semantic.publish_behind()
    assert found_ids(await semantic.answer(ABOUT_MONEY)) == ["b"]


async def test_who_asks_for_a_refresh_gets_all_that_there_is(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    backing.lose_index()
    receipt = await semantic.refresh()
    assert (receipt.indexed_count, receipt.source_revision) == (2, await semantic.revision())


async def test_a_vector_that_is_not_kept_any_more_takes_the_provider_and_then_all_is_embedded(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    backing.lose_index()
    without_vectors(backing)
    receipt = await semantic.publish_behind()
    assert (receipt.indexed_count, receipt.work.provider_inputs) == (2, 2)


async def test_another_history_has_nothing_to_go_back_to(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.indexed(TEA)
    await semantic.remember(RAIN, "b")
    backing.lose_index()
    kept = backing.records._store._kept[semantic.namespace, semantic.partition.authority_digest]
    kept.receipts[-1] = replace(kept.receipts[-1], source_history_id="before the import")
    receipt = await semantic.publish_behind()
    assert (receipt.indexed_count, receipt.source_revision) == (2, await semantic.revision())


async def test_where_bounds_are_tighter_now_what_is_there_now_counts(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.indexed(TEA, RAIN)
    await semantic.retire(await semantic.node("a"))
    backing.lose_index()
    async with semantic_process(backing, "tight", limits=RefreshLimits(max_records=1)) as tight:
        receipt = await tight.publish_behind()
    assert (receipt.indexed_count, receipt.source_revision) == (1, await semantic.revision())


class RefusingEmbedder(GatedEmbedder):
    """Takes none of the texts `refuses`, and no call that has one of them."""

    refuses: Collection[str] = ()

    async def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        if any(text in self.refuses for text in texts):
            self.failures.append(EmbeddingError(EmbeddingFailure.REFUSED, retryable=False, status=400))
        return await super().embed_passages(texts)


async def test_what_the_provider_refuses_is_left_out_again_without_asking(backing: Backing) -> None:
    embedder = RefusingEmbedder()
    embedder.refuses = [RAIN]
    async with semantic_process(backing, "refusing", embedder) as world:
        await world.indexed(TEA, RAIN)
        await world.remember(MONEY, "c")
        backing.lose_index()
        calls = world.provider_calls()
        receipt = await world.publish_behind()
        assert (receipt.active_count, receipt.indexed_count, receipt.work.refused) == (2, 1, 1)
        assert world.provider_calls() == calls
        assert (await world.status()).unindexed_active_count == 2


async def test_nothing_is_published_twice_where_nothing_is_new(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.indexed(TEA)
    backing.lose_index()
    receipt = await semantic.publish_behind()
    assert receipt.source_revision == await semantic.revision()
    assert (await semantic.publish_behind()).work.added == 0
