"""Filters, floors, the re-check and the cut of the semantic branch, in this order, and what is counted on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import numpy as np
import pytest

from durable_memory.app.recall_result import DegradationReason, RecallAnswer, SemanticCut, SemanticSearched, VectorState
from durable_memory.domain.change_set import Revise, ReviseMode
from durable_memory.domain.citation import Citation
from durable_memory.domain.lexical.query import ANY_DOCUMENT, LexicalFilter
from durable_memory.domain.session import RecallMode
from tests.fixture_embedder import DIMENSION
from tests.unit.app.semantic.semantic_world import Backing, GatedEmbedder, SemanticWorld, found_ids, semantic_process
from tests.unit.app.world import DEFAULTS

QUESTION = "question"
KEPT, OTHER = "kept", "other"


def leaning(cosine: float) -> list[float]:
    """A unit vector with this cosine to the question's."""
    return [cosine, float(np.sqrt(1 - cosine**2)), *([0.0] * (DIMENSION - 2))]


COSINES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
TEXTS = [f"Text{number} alone." for number in range(6)]


@pytest.fixture
async def ranked(backing: Backing) -> AsyncIterator[SemanticWorld]:
    """Six memories "n0".."n5", each nearer to the question than the next; even ones are labelled KEPT."""
    vectors = {QUESTION: leaning(1.0), **{text: leaning(cosine) for text, cosine in zip(TEXTS, COSINES, strict=True)}}
    async with semantic_process(backing, "r", GatedEmbedder(vectors)) as world:
        for number, text in enumerate(TEXTS):
            await world.remember(text, f"n{number}", labels={"group": OTHER if number % 2 else KEPT})
        yield world


async def asked(world: SemanticWorld, filter: LexicalFilter = ANY_DOCUMENT) -> RecallAnswer:
    return await world.answer(QUESTION, mode=RecallMode.SEMANTIC, filter=filter)


def searched(answer: RecallAnswer) -> SemanticSearched:
    assert answer.semantic is not None
    return answer.semantic


def counts(answer: RecallAnswer) -> tuple[int, int]:
    return searched(answer).dropped, searched(answer).refilled


async def opened(
    world: SemanticWorld, *, candidate_limit: int = 100, max_results: int = 6, min_similarity: float = -1.0
) -> None:
    await world.open(candidate_limit=candidate_limit, max_results=max_results, min_similarity=min_similarity)
    await world.refresh()


IN_GROUP = LexicalFilter(labels={"group": KEPT})


async def test_a_filter_comes_before_the_cut(ranked: SemanticWorld) -> None:
    await opened(ranked, candidate_limit=2)
    assert found_ids(await asked(ranked)) == ["n0", "n1"]
    assert found_ids(await asked(ranked, IN_GROUP)) == ["n0", "n2"]


async def test_what_a_filter_keeps_out_is_not_counted_as_dropped(ranked: SemanticWorld) -> None:
    await opened(ranked, candidate_limit=3)
    await ranked.put("n1", "Changed since.")
    await ranked.put("n2", "Changed as well.", labels={"group": KEPT})
    answer = await asked(ranked)
    assert (found_ids(answer), counts(answer)) == (["n0", "n3", "n4"], (2, 2))
    answer = await asked(ranked, IN_GROUP)
    assert (found_ids(answer), counts(answer)) == (["n0", "n4"], (1, 0))
    answer = await asked(ranked, LexicalFilter(excluded_ids=frozenset({"n1", "n2"})))
    assert (found_ids(answer), counts(answer)) == (["n0", "n3", "n4"], (0, 0))


async def test_only_what_took_the_place_of_a_dropped_one_is_refilled(ranked: SemanticWorld) -> None:
    await opened(ranked, candidate_limit=100)
    await ranked.retire(await ranked.node("n0"))
    answer = await asked(ranked)
    assert (found_ids(answer), counts(answer)) == (["n1", "n2", "n3", "n4", "n5"], (1, 0))


async def test_however_many_are_stale_the_next_take_their_places(backing: Backing) -> None:
    vectors = {QUESTION: leaning(1.0), **{f"Memory m{n}m.": leaning(0.99 - n / 100) for n in range(60)}}
    async with semantic_process(backing, "m", GatedEmbedder(vectors)) as world:
        for number in range(60):
            await world.remember(f"Memory m{number}m.", f"n{number:02}")
        await opened(world, candidate_limit=2)
        for number in range(50):
            await world.retire(await world.node(f"n{number:02}"))
        answer = await asked(world)
        assert (found_ids(answer), counts(answer)) == (["n50", "n51"], (50, 2))


async def test_equal_vectors_are_ranked_by_newer_then_id_before_the_cut(backing: Backing) -> None:
    texts = [f"Twin t{number}t." for number in range(40)]
    vectors = {QUESTION: leaning(1.0), **{text: leaning(0.5) for text in texts}}
    async with semantic_process(backing, "t", GatedEmbedder(vectors)) as world:
        for number, text in enumerate(texts):
            await world.remember(text, f"n{number:02}")
            if number == 34:
                world.clock.advance(timedelta(seconds=1))
        await opened(world, candidate_limit=7, max_results=7)
        assert found_ids(await asked(world)) == [f"n{number:02}" for number in [35, 36, 37, 38, 39, 0, 1]]


async def test_an_explanation_tells_the_place_of_what_was_cut_and_what_cut_it(ranked: SemanticWorld) -> None:
    await opened(ranked, candidate_limit=4, max_results=2, min_similarity=0.45)

    async def explained(node_id: str) -> tuple[object, ...]:
        found = await ranked.app.recall.explain(ranked.call, "assistant", node_id, QUESTION)
        score = found.semantic.score
        assert found.semantic.state is VectorState.CURRENT
        assert score is not None
        assert score.score == pytest.approx(COSINES[int(node_id[1])])
        return score.rank, found.rank, found.recalled, found.semantic.cut

    assert await explained("n1") == (2, 2, True, None)
    assert await explained("n3") == (4, 4, False, None)
    assert await explained("n4") == (5, None, False, SemanticCut.CANDIDATE_LIMIT)
    assert await explained("n5") == (6, None, False, SemanticCut.MIN_SIMILARITY)


async def test_an_explanation_says_that_and_why_auto_went_without_vectors(ranked: SemanticWorld) -> None:
    await opened(ranked)
    ranked.embedder.fail_next()
    found = await ranked.app.recall.explain(ranked.call, "assistant", "n0", "text0 alone")
    assert (found.mode, found.recalled, found.semantic.state) == (RecallMode.LEXICAL, True, VectorState.NOT_USED)
    assert found.degradation is not None
    assert found.degradation.reason is DegradationReason.PROVIDER_FAILED


async def test_hundreds_of_recalls_at_once_answer_as_one_by_one(ranked: SemanticWorld) -> None:
    await opened(ranked)
    questions = [f"question number {number}" for number in range(200)]
    alone = [(await ranked.answer(question)).hits for question in questions]
    together = await asyncio.gather(*(ranked.answer(question) for question in questions))
    assert [answer.hits for answer in together] == alone


async def test_unindexed_memories_are_counted_on_from_the_last_count(ranked: SemanticWorld) -> None:
    await opened(ranked)
    await ranked.remember("New one.", "x")
    assert searched(await asked(ranked)).unindexed_active == 1
    store = ranked.backing.store
    reads: list[int] = []
    changed_nodes = store._store.changed_nodes

    async def noticed(namespace: object, **bounds: int) -> object:
        reads.append(bounds["after_revision"])
        return await changed_nodes(namespace, **bounds)

    store._store.changed_nodes = noticed
    last = await ranked.revision()
    await ranked.remember("New two.", "y")
    assert searched(await asked(ranked)).unindexed_active == 2
    assert set(reads) == {last}, "what was counted already is not read again"
    await ranked.put("n0", "New three.")
    await ranked.retire(await ranked.node("x"))
    assert searched(await asked(ranked)).unindexed_active == 2
    assert (await ranked.status()).unindexed_active_count == 2


async def test_a_change_of_labels_is_seen_by_filters_and_costs_no_vector(ranked: SemanticWorld) -> None:
    await opened(ranked, candidate_limit=2)
    node = await ranked.node("n1")
    await ranked.app.memories.revise(
        ranked.request("ReviseMemory"),
        Citation.of(node),
        Revise(node_id="n1", expected_revision=node.revision, mode=ReviseMode.CORRECTION, set_labels={"group": KEPT}),
        DEFAULTS,
    )
    answer = await asked(ranked, IN_GROUP)
    assert (found_ids(answer), counts(answer)) == (["n0", "n1"], (0, 0))
