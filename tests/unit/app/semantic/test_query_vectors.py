"""Vectors of questions: one embedding for all who ask the same, kept within bounds, whoever gives up."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from durable_memory.app.semantic.query_vectors import QueryVectors
from durable_memory.domain.namespace import Namespace
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from tests.fixture_embedder import DIMENSION, floats
from tests.unit.app.semantic.semantic_world import ABOUT_RAIN, ABOUT_TEA, GatedEmbedder
from tests.unit.app.world import NAMESPACE, OTHER_NAMESPACE

ENTRY_BYTES = 512 + 4 * DIMENSION


async def made_by(embedder: GatedEmbedder, text: str) -> np.ndarray:
    return floats(await embedder.embed_query(text))


async def test_those_who_ask_the_same_at_once_share_one_embedding() -> None:
    embedder = GatedEmbedder()
    embedder.query_gate.clear()
    vectors = QueryVectors(embedder)
    asked = [vectors.begin(NAMESPACE, embedder.generation, ABOUT_TEA) for _ in range(5)]
    await embedder.asked.wait()
    embedder.query_gate.set()
    found = await asyncio.gather(*asked)
    assert embedder.queries == [ABOUT_TEA]
    assert all(np.array_equal(vector, found[0]) for vector in found)
    assert vectors.under_way == 0


async def test_a_question_that_was_given_up_is_embedded_all_the_same_for_who_shares_it_or_asks_again() -> None:
    embedder = GatedEmbedder()
    embedder.query_gate.clear()
    vectors = QueryVectors(embedder)

    async def ask() -> np.ndarray:
        return await asyncio.shield(vectors.begin(NAMESPACE, embedder.generation, ABOUT_TEA))

    leaving, staying = asyncio.create_task(ask()), asyncio.create_task(ask())
    await embedder.asked.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    embedder.query_gate.set()
    assert np.array_equal(await staying, await ask())
    assert embedder.queries == [ABOUT_TEA]


async def test_the_cache_keeps_within_its_bytes_and_forgets_what_was_asked_longest_ago() -> None:
    embedder = GatedEmbedder()
    vectors = QueryVectors(embedder, budget_bytes=2 * ENTRY_BYTES)
    for query in ("one", "two", "one", "three", "one", "two"):
        await vectors.begin(NAMESPACE, embedder.generation, query)
        assert vectors.nbytes <= 2 * ENTRY_BYTES
    assert embedder.queries == ["one", "two", "three", "two"]


async def test_a_vector_is_never_used_for_another_model() -> None:
    embedder, other = GatedEmbedder(), GatedEmbedder(revision="2")
    vectors = QueryVectors(embedder)
    for generation in (embedder.generation, other.generation, embedder.generation):
        await vectors.begin(NAMESPACE, generation, ABOUT_TEA)
    assert embedder.queries == [ABOUT_TEA, ABOUT_TEA]


@pytest.mark.parametrize("other", [Namespace("other", "user-1", "project-a"), Namespace("acme", "user-2", "project-a")])
async def test_nobody_is_answered_sooner_because_another_has_asked_the_same(other: Namespace) -> None:
    embedder = GatedEmbedder()
    vectors = QueryVectors(embedder)
    await vectors.begin(NAMESPACE, embedder.generation, ABOUT_TEA)
    assert vectors.begin(OTHER_NAMESPACE, embedder.generation, ABOUT_TEA).done(), "one's own, of another scope"
    asked = vectors.begin(other, embedder.generation, ABOUT_TEA)
    assert not asked.done()
    await asked
    assert embedder.queries == [ABOUT_TEA] * 2


async def test_a_failure_is_told_to_all_who_wait_and_not_kept() -> None:
    embedder = GatedEmbedder()
    embedder.fail_next()
    vectors = QueryVectors(embedder)
    asked = [vectors.begin(NAMESPACE, embedder.generation, ABOUT_TEA) for _ in range(2)]
    failures = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(failure) for failure in failures] == [EmbeddingError, EmbeddingError]
    assert np.array_equal(
        await vectors.begin(NAMESPACE, embedder.generation, ABOUT_TEA), await made_by(embedder, ABOUT_TEA)
    )


async def test_a_vector_of_another_dimension_is_refused() -> None:
    embedder = GatedEmbedder()
    vectors = QueryVectors(embedder)
    with pytest.raises(EmbeddingError) as caught:
        await vectors.begin(NAMESPACE, embedder.generation.with_dimension(DIMENSION + 1), ABOUT_TEA)
    assert caught.value.failure is EmbeddingFailure.WRONG_DIMENSION


async def test_where_hundreds_wait_for_a_provider_another_question_is_not_sent() -> None:
    embedder = GatedEmbedder()
    embedder.query_gate.clear()
    vectors = QueryVectors(embedder)
    waiting = [vectors.begin(NAMESPACE, embedder.generation, f"question {number}") for number in range(512)]
    with pytest.raises(EmbeddingError) as caught:
        await vectors.begin(NAMESPACE, embedder.generation, ABOUT_RAIN)
    assert caught.value.failure is EmbeddingFailure.TIMEOUT
    embedder.query_gate.set()
    await asyncio.gather(*waiting)
    await vectors.begin(NAMESPACE, embedder.generation, ABOUT_RAIN)


async def test_closing_stops_what_is_under_way() -> None:
    embedder = GatedEmbedder()
    embedder.query_gate.clear()
    vectors = QueryVectors(embedder)
    asked = vectors.begin(NAMESPACE, embedder.generation, ABOUT_TEA)
    await embedder.asked.wait()
    await vectors.close()
    assert asked.cancelled()
    assert (vectors.under_way, vectors.nbytes) == (0, 0)
