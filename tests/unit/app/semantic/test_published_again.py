"""An index that was lost is published as it was, from cached vectors, before what is new is embedded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.domain.errors import Reason
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
from tests.unit.app.world import refused


def lost(backing: Backing) -> None:
    backing.lose_index()


def damaged(backing: Backing) -> None:
    backing.damage_segments()


def without_vectors(backing: Backing) -> None:
    """The cache, as if nothing had ever been embedded."""
    backing.records._store._vectors.clear()


async def receipts(world: SemanticWorld, but: int = 1) -> list[Receipt]:
    """In the order in which they were written, without the first ones."""
    newest_first = await world.semantic.receipts(world.call, before=None, limit=10)
    return list(reversed(newest_first))[but:]


@pytest.mark.parametrize("happened", [lost, damaged])
async def test_what_was_published_is_searched_again_while_the_provider_is_slow_with_what_is_new(
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
        (receipt,) = await receipts(successor)
        assert (receipt.source_revision, receipt.active_count, receipt.indexed_count) == (published, 2, 2)
        assert (receipt.work.cache_hits, receipt.work.provider_calls) == (2, 0)
        assert found_ids(await successor.answer(ABOUT_RAIN)) == ["b"]
        assert (await successor.status()).unindexed_active_count == 1
        successor.embedder.gate.set()

        async def is_covered() -> bool:
            return not (await successor.status()).unindexed_active_count

        await wait_until_async(is_covered)
    assert found_ids(await successor.answer(ABOUT_MONEY)) == ["c"]


async def test_what_is_new_is_taken_in_by_the_same_refresh_and_each_has_its_receipt(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA, RAIN)
    await semantic.remember(MONEY, "c")
    backing.lose_index()
    last = await semantic.publish_behind()
    as_it_was, new = await receipts(semantic)
    assert new == last
    assert (as_it_was.fence, as_it_was.index_revision, new.fence, new.index_revision) == (2, 1, 2, 2)
    assert (as_it_was.work.added, as_it_was.work.cache_hits, as_it_was.work.provider_inputs) == (2, 2, 0)
    assert (new.work.added, new.work.cache_hits, new.work.provider_inputs) == (1, 0, 1)
    assert (new.indexed_count, new.source_revision) == (3, await semantic.revision())


async def test_a_provider_that_is_away_fails_the_run_and_not_what_was_there(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA, RAIN)
    await semantic.remember(MONEY, "c")
    backing.lose_index()
    semantic.embedder.failures += [EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=False)]
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="PROVIDER_FAILED"):
        await semantic.publish_behind()
    answer = await semantic.answer(ABOUT_TEA)
    assert (found_ids(answer), answer.degradation) == (["a"], None)
    assert (await semantic.publish_behind()).indexed_count == 3


async def test_what_was_retired_or_revised_since_is_not_recalled_from_what_it_was(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA, RAIN)
    await semantic.retire(await semantic.node("a"))
    await semantic.put("b", MONEY)
    backing.lose_index()
    semantic.embedder.failures += [EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=False)]
    with refused(Reason.SEMANTIC_UNAVAILABLE):
        await semantic.publish_behind()
    (receipt,) = await receipts(semantic)
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


@pytest.mark.parametrize("newer", [(), (MONEY,)], ids=["nothing is new", "something is new"])
async def test_what_the_provider_refused_is_left_out_again_by_whoever_builds_it(
    backing: Backing, newer: Sequence[str]
) -> None:
    refusing, away = RefusingEmbedder(), GatedEmbedder()
    refusing.refuses = [RAIN]
    async with (
        semantic_process(backing, "refusing", refusing) as world,
        semantic_process(backing, "other", away) as other,
    ):
        await world.indexed(TEA, RAIN)
        for text in newer:
            await world.remember(text, "c")
        backing.lose_index()
        away.gate.clear()
        refreshing = asyncio.create_task(other.publish_behind())
        await wait_until_async(lambda: refreshing.done() or away.waiting.is_set())
        (receipt,) = await receipts(other)
        assert (receipt.active_count, receipt.indexed_count, receipt.work.refused) == (2, 1, 1)
        assert (await other.status()).unindexed_active_count == 1 + len(newer)
        away.gate.set()
        assert (await refreshing).indexed_count == 1 + len(newer)


async def test_nothing_is_published_twice_where_nothing_is_new(semantic: SemanticWorld, backing: Backing) -> None:
    await semantic.indexed(TEA)
    backing.lose_index()
    receipt = await semantic.publish_behind()
    assert receipt.source_revision == await semantic.revision()
    assert (await semantic.publish_behind()).work.added == 0
