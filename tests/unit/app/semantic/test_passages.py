"""Texts that a provider refuses are left out one by one; what may pass by itself fails the refresh as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence

import pytest

from durable_memory.app.semantic import passages
from durable_memory.domain.errors import Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from tests.unit.app.semantic.semantic_world import (
    ABOUT_TEA,
    RAIN,
    TEA,
    Backing,
    GatedEmbedder,
    SemanticWorld,
    found_ids,
    semantic_process,
)
from tests.unit.app.world import refused


class PickyEmbedder(GatedEmbedder):
    """Refuses every call that has one of the texts `refuses`, or all if it says so. `called` are the calls' texts."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses: Collection[str] = ()
        self.refuses_all = False
        self.failure = EmbeddingError(EmbeddingFailure.REFUSED, retryable=False, status=400)
        self.called: list[list[str]] = []

    async def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        self.called.append(list(texts))
        if self.refuses_all or any(text in self.refuses for text in texts):
            self.failures.append(self.failure)
        return await super().embed_passages(texts)


@pytest.fixture
def picky() -> PickyEmbedder:
    return PickyEmbedder()


@pytest.fixture
async def world(backing: Backing, picky: PickyEmbedder) -> AsyncIterator[SemanticWorld]:
    async with semantic_process(backing, "picky", picky) as world:
        await world.open()
        yield world


async def remember(world: SemanticWorld, count: int) -> list[str]:
    texts = [f"Number {number} is a number." for number in range(count)]
    for text in texts:
        await world.remember(text)
    return texts


async def test_only_the_text_that_is_refused_stays_without_a_vector(world: SemanticWorld, picky: PickyEmbedder) -> None:
    texts = await remember(world, 64)
    picky.refuses = [texts[17]]
    receipt = await world.refresh()
    assert (receipt.active_count, receipt.indexed_count) == (64, 63)
    assert (receipt.work.added, receipt.work.refused, receipt.work.provider_inputs) == (63, 1, 63)
    assert receipt.work.provider_calls == len(picky.called) == 2 + 2 * 6, "one to see whether it is well, 6 halvings"
    status = await world.status()
    assert (status.unindexed_active_count, status.refused_count, status.last_failure) == (1, 1, "")


async def test_what_was_refused_is_found_by_words_and_asked_for_again_when_its_text_changes(
    world: SemanticWorld, picky: PickyEmbedder
) -> None:
    await world.remember(TEA, "a")
    await world.remember(RAIN, "b")
    picky.refuses = [TEA]
    await world.refresh()
    assert found_ids(await world.answer("kettles")) == ["a"]
    assert (await world.answer(ABOUT_TEA)).hits == ()
    picky.called.clear()
    assert (await world.refresh()).work.provider_calls == 0
    await world.put("a", "Kettles boil water soon.")
    receipt = await world.refresh()
    assert picky.called == [["Kettles boil water soon."]]
    assert (receipt.work.refused, receipt.indexed_count) == (0, 2)
    assert (await world.status()).refused_count == 0


async def test_a_rebuild_asks_again_and_a_lost_index_is_built_without_asking(
    world: SemanticWorld, picky: PickyEmbedder, backing: Backing
) -> None:
    await world.remember(TEA, "a")
    await world.remember(RAIN, "b")
    picky.refuses = [TEA]
    await world.refresh()
    backing.lose_index()
    receipt = await world.refresh()
    assert (receipt.work.provider_calls, receipt.work.refused, receipt.indexed_count) == (0, 1, 1)
    picky.refuses = []
    receipt = await world.refresh(rebuild=True)
    assert (receipt.work.refused, receipt.indexed_count) == (0, 2)
    assert found_ids(await world.answer(ABOUT_TEA)) == ["a"]


async def test_a_text_that_is_refused_after_a_change_loses_its_old_vector(
    world: SemanticWorld, picky: PickyEmbedder
) -> None:
    await world.indexed(TEA, RAIN)
    await world.put("a", "Kettles boil oil.")
    picky.refuses = ["Kettles boil oil."]
    receipt = await world.refresh()
    assert (receipt.work.replaced, receipt.work.removed, receipt.work.refused, receipt.indexed_count) == (0, 1, 1, 1)
    assert (await world.answer(ABOUT_TEA)).hits == ()


async def test_the_count_of_what_has_no_vector_stays_exact_while_refused_memories_come_and_go(
    world: SemanticWorld, picky: PickyEmbedder
) -> None:
    await world.remember(TEA, "a")
    await world.remember(RAIN, "b")
    picky.refuses = [TEA]
    await world.refresh()

    async def unindexed() -> tuple[int, int]:
        answer = await world.answer(ABOUT_TEA)
        assert answer.semantic is not None
        return (await world.status()).unindexed_active_count, answer.semantic.unindexed_active

    assert await unindexed() == (1, 1)
    await world.retire(await world.node("a"))
    assert await unindexed() == (0, 0)
    await world.remember("Another one.", "c")
    assert await unindexed() == (1, 1)
    await world.retire(await world.node("b"))
    assert await unindexed() == (1, 1)


@pytest.mark.parametrize(
    "failure", [EmbeddingFailure.UNREACHABLE, EmbeddingFailure.TIMEOUT, EmbeddingFailure.NOT_FINITE]
)
async def test_what_may_pass_by_itself_divides_nothing(
    world: SemanticWorld, picky: PickyEmbedder, failure: EmbeddingFailure
) -> None:
    texts = await remember(world, 8)
    picky.refuses, picky.failure = [texts[3]], EmbeddingError(failure, retryable=True)
    with refused(Reason.SEMANTIC_UNAVAILABLE, failure=failure.value):
        await world.refresh()
    assert len(picky.called) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_refusal_of_the_caller_divides_nothing(world: SemanticWorld, picky: PickyEmbedder, status: int) -> None:
    texts = await remember(world, 8)
    picky.refuses = [texts[3]]
    picky.failure = EmbeddingError(EmbeddingFailure.REFUSED, retryable=False, status=status)
    with refused(Reason.SEMANTIC_UNAVAILABLE, failure="REFUSED"):
        await world.refresh()
    assert len(picky.called) == 1


async def test_a_provider_that_refuses_everything_fails_the_refresh_and_no_text_is_held_against(
    world: SemanticWorld, picky: PickyEmbedder
) -> None:
    await remember(world, 8)
    picky.refuses_all = True
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="PROVIDER_FAILED", failure="REFUSED"):
        await world.refresh()
    assert len(picky.called) == 2
    picky.refuses_all = False
    assert (await world.refresh()).indexed_count == 8


async def test_calls_are_bounded_and_several_refreshes_get_through_together(
    world: SemanticWorld, picky: PickyEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "_CALLS_TO_DIVIDE", 12)
    texts = await remember(world, 16)
    picky.refuses = texts[::4]
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="PROVIDER_FAILED", failure="REFUSED"):
        await world.refresh()
    assert len(picky.called) <= 2 + 12 + 16 // 8
    picky.called.clear()
    receipt = await world.refresh()
    assert (receipt.work.refused, receipt.indexed_count) == (4, 12)
    assert len(picky.called) <= 2 + 12 + 16 // 8


async def test_calls_for_others_are_not_counted_in_a_receipt(world: SemanticWorld, picky: PickyEmbedder) -> None:
    """What one tenant's receipt says tells nothing of another's work."""
    await world.remember(TEA, "a")
    picky.gate.clear()
    work = asyncio.create_task(world.refresh())
    await picky.waiting.wait()
    for _ in range(5):
        await picky.embed_query("a question of somebody else")
    picky.gate.set()
    assert (await work).work.provider_calls == 1


async def test_what_one_namespace_has_embedded_or_was_refused_is_nothing_to_another(
    world: SemanticWorld, picky: PickyEmbedder
) -> None:
    await world.remember(TEA, "a")
    await world.remember(RAIN, "b")
    picky.refuses = [RAIN]
    await world.refresh()
    world.namespace = Namespace("globex", "user-2", "default")
    await world.open()
    await world.remember(TEA, "a")
    await world.remember(RAIN, "b")
    picky.refuses = []
    receipt = await world.refresh()
    assert (receipt.work.cache_hits, receipt.work.provider_inputs, receipt.work.refused) == (0, 2, 0)
