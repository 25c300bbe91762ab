"""The semantic branch: what it finds, what never comes back through it, and what an answer says when it is missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from durable_memory.app.recall_result import (
    BranchScore,
    DegradationReason,
    RecallChannel,
    SemanticCut,
    SemanticStanding,
    VectorState,
)
from durable_memory.domain.change_set import Revise, ReviseMode, SetStatus
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.lexical.query import LexicalFilter
from durable_memory.domain.node import NodeRevision, NodeStatus, RelationKind
from durable_memory.domain.session import RecallMode
from tests.unit.app.semantic.semantic_world import (
    ABOUT_MONEY,
    ABOUT_RAIN,
    ABOUT_TEA,
    MONEY,
    RAIN,
    TEA,
    Backing,
    SemanticWorld,
    found_ids,
)
from tests.unit.app.world import DEFAULTS, decision, draft, refused, relate

UNREACHABLE = DomainError(Reason.DEPENDENCY_UNAVAILABLE, "the index is not there")
EXPLICIT = pytest.mark.parametrize("mode", [RecallMode.SEMANTIC, RecallMode.HYBRID])


# What changed after it was indexed


async def revised(world: SemanticWorld, node: NodeRevision) -> None:
    await world.put(node.node_id, "Coffee is ground.")


async def retired(world: SemanticWorld, node: NodeRevision) -> None:
    await world.retire(node)


async def tombstoned(world: SemanticWorld, node: NodeRevision) -> None:
    await world.apply(
        SetStatus(
            node_id=node.node_id,
            expected_revision=node.revision,
            status=NodeStatus.TOMBSTONED,
            evidence=(decision("asked to forget"),),
        )
    )


async def superseded(world: SemanticWorld, node: NodeRevision) -> None:
    await world.app.memories.supersede(
        world.request("SupersedeMemory"), Citation.of(node), "new", draft("Coffee is ground."), DEFAULTS
    )


@pytest.mark.parametrize("change", [revised, retired, tombstoned, superseded])
@EXPLICIT
async def test_what_changed_since_it_was_indexed_never_comes_back_before_a_refresh(
    semantic: SemanticWorld,
    successor: SemanticWorld,
    change: Callable[[SemanticWorld, NodeRevision], Awaitable[None]],
    mode: RecallMode,
) -> None:
    await semantic.indexed(TEA, RAIN)
    for world in (semantic, successor):
        assert found_ids(await world.answer(ABOUT_TEA, mode=mode)) == ["a"]
    await change(semantic, await semantic.node("a"))
    for world in (semantic, successor):
        answer = await world.answer(ABOUT_TEA, mode=mode)
        assert answer.hits == ()
        assert answer.semantic is not None
        assert (answer.semantic.dropped, answer.semantic.vectors_searched) == (1, 2)
    assert found_ids(await semantic.answer(ABOUT_RAIN, mode=mode)) == ["b"]


async def test_a_vector_that_is_dropped_leaves_its_place_to_the_next(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA, RAIN, MONEY, candidate_limit=2, min_similarity=-1.0)
    assert set(found_ids(await semantic.answer(ABOUT_TEA, mode=RecallMode.SEMANTIC))) == {"a", "b"}
    await semantic.retire(await semantic.node("a"))
    answer = await semantic.answer(ABOUT_TEA, mode=RecallMode.SEMANTIC)
    assert found_ids(answer) == ["b", "c"]
    assert answer.semantic is not None
    assert (answer.semantic.dropped, answer.semantic.refilled) == (1, 1)


async def test_a_memory_that_returns_to_the_indexed_text_is_found_by_its_old_vector(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    await semantic.put("a", RAIN)
    await semantic.put("a", TEA)
    answer = await semantic.answer(ABOUT_TEA)
    assert found_ids(answer) == ["a"]
    assert answer.semantic is not None
    assert answer.semantic.unindexed_active == 0


async def test_labels_and_relations_leave_the_vector_as_it_is(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA, RAIN)
    before = await semantic.node("a")
    await semantic.app.memories.revise(
        semantic.request("ReviseMemory"),
        Citation.of(before),
        Revise(
            node_id="a", expected_revision=before.revision, mode=ReviseMode.CORRECTION, set_labels={"room": "kitchen"}
        ),
        DEFAULTS,
    )
    one, other = await semantic.node("a"), await semantic.node("b")
    await semantic.apply(*relate(RelationKind.RELATED_TO, one, other))
    answer = await semantic.answer(ABOUT_TEA)
    (hit,) = answer.hits
    assert (hit.node.revision, hit.channel) == (before.revision + 2, RecallChannel.SEMANTIC)
    assert answer.semantic is not None
    assert (answer.semantic.dropped, answer.semantic.unindexed_active) == (0, 0)


# Bounds, filters and fusion


async def test_nothing_under_the_least_similarity_is_found(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    assert (await semantic.answer(ABOUT_RAIN)).hits == ()


async def test_a_filter_holds_for_the_semantic_branch(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    without = LexicalFilter(excluded_ids=frozenset({"a"}))
    assert (await semantic.answer(ABOUT_TEA, filter=without)).hits == ()


async def test_each_hit_says_by_which_branches_it_was_found(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA, RAIN, "A bad beverage.")
    found = {hit.node.node_id: hit for hit in (await semantic.answer("warm beverage")).hits}
    assert {node_id: hit.channel for node_id, hit in found.items()} == {
        "a": RecallChannel.SEMANTIC,
        "c": RecallChannel.LEXICAL,
    }
    assert (found["a"].lexical, found["c"].semantic) == (None, None)
    assert found["a"].semantic is not None
    assert found["a"].semantic.rank == 1
    assert found["a"].semantic.score == pytest.approx(1.0)
    (both,) = (await semantic.answer(TEA)).hits
    assert both.channel is RecallChannel.HYBRID
    assert both.score == pytest.approx(1.0)


# Modes and degradation


@pytest.mark.parametrize(
    ("mode", "answered", "ids"),
    [
        (None, RecallMode.HYBRID, ["a"]),
        (RecallMode.HYBRID, RecallMode.HYBRID, ["a"]),
        (RecallMode.SEMANTIC, RecallMode.SEMANTIC, ["a"]),
        (RecallMode.LEXICAL, RecallMode.LEXICAL, []),
    ],
)
async def test_an_auto_session_leaves_the_mode_to_the_call(
    semantic: SemanticWorld, mode: RecallMode | None, answered: RecallMode, ids: list[str]
) -> None:
    await semantic.indexed(TEA)
    answer = await semantic.answer(ABOUT_TEA, mode=mode)
    assert (found_ids(answer), answer.mode, answer.degradation) == (ids, answered, None)


async def nothing_indexed(world: SemanticWorld) -> None:
    await world.open()
    await world.remember(TEA, "a")


async def index_lost(world: SemanticWorld) -> None:
    await world.indexed(TEA)
    world.backing.lose_index()


async def index_set_back(world: SemanticWorld) -> None:
    await world.indexed(TEA)
    kept = world.backing.keep_index()
    await world.remember(RAIN, "b")
    await world.refresh()
    await world.answer(ABOUT_RAIN)
    world.backing.lay_back(kept)


async def segments_damaged(world: SemanticWorld) -> None:
    await world.indexed(TEA)
    world.backing.damage_segments()


async def index_unreachable(world: SemanticWorld) -> None:
    await world.indexed(TEA)
    world.backing.index.before["manifest"] = fails_always(UNREACHABLE)


async def provider_down(world: SemanticWorld) -> None:
    await world.indexed(TEA)
    for _ in range(2):
        world.embedder.fail_next()


def fails_always(error: DomainError) -> Callable[[], Awaitable[None]]:
    async def hook() -> None:
        raise error

    return hook


TROUBLES = pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (nothing_indexed, DegradationReason.INDEX_NOT_BUILT),
        (index_lost, DegradationReason.INDEX_REGRESSED),
        (index_set_back, DegradationReason.INDEX_REGRESSED),
        (segments_damaged, DegradationReason.INDEX_CORRUPTED),
        (index_unreachable, DegradationReason.INDEX_UNAVAILABLE),
        (provider_down, DegradationReason.PROVIDER_FAILED),
    ],
)


@TROUBLES
async def test_auto_answers_by_words_alone_and_says_why(
    semantic: SemanticWorld, trouble: Callable[[SemanticWorld], Awaitable[None]], reason: DegradationReason
) -> None:
    await trouble(semantic)
    answer = await semantic.answer("kettles")
    assert found_ids(answer) == ["a"]
    assert answer.degradation is not None
    assert (answer.mode, answer.degradation.reason) == (RecallMode.LEXICAL, reason)
    assert answer.semantic is None


@TROUBLES
@EXPLICIT
async def test_an_explicit_mode_is_refused_and_never_turned_into_another(
    semantic: SemanticWorld,
    trouble: Callable[[SemanticWorld], Awaitable[None]],
    reason: DegradationReason,
    mode: RecallMode,
) -> None:
    await trouble(semantic)
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause=reason.name):
        await semantic.answer("kettles", mode=mode)


async def test_where_nothing_is_active_an_index_of_nothing_is_complete(semantic: SemanticWorld) -> None:
    await semantic.open()
    answer = await semantic.answer(ABOUT_TEA)
    assert (answer.mode, answer.degradation, answer.hits) == (RecallMode.HYBRID, None, ())


async def test_the_query_is_embedded_once_for_all_recalls(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    for _ in range(3):
        await semantic.answer(ABOUT_TEA)
    assert semantic.embedder.queries == [ABOUT_TEA]


async def test_a_session_of_another_generation_keeps_it_and_goes_without(
    semantic: SemanticWorld, newer: SemanticWorld
) -> None:
    await semantic.indexed(TEA)
    answer = await newer.answer("kettles")
    assert found_ids(answer) == ["a"]
    assert answer.degradation is not None
    assert answer.degradation.reason is DegradationReason.GENERATION_NOT_SERVED
    for mode in (RecallMode.SEMANTIC, RecallMode.HYBRID):
        with refused(Reason.SEMANTIC_UNAVAILABLE, cause="GENERATION_NOT_SERVED"):
            await newer.answer("kettles", mode=mode)
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="GENERATION_NOT_SERVED"):
        await newer.refresh()
    assert found_ids(await semantic.answer(ABOUT_TEA)) == ["a"]


# What is not indexed yet


async def test_an_answer_says_how_many_active_memories_have_no_vector_yet(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA, RAIN)

    async def unindexed() -> tuple[int, int]:
        answer = await semantic.answer(ABOUT_TEA)
        assert answer.semantic is not None
        return answer.semantic.unindexed_active, (await semantic.status()).unindexed_active_count

    assert await unindexed() == (0, 0)
    await semantic.remember(MONEY, "c")
    assert await unindexed() == (1, 1)
    assert (await semantic.answer(ABOUT_MONEY)).hits == ()
    await semantic.put("b", "Boots stay dry.")
    assert await unindexed() == (2, 2)
    await semantic.retire(await semantic.node("b"))
    assert await unindexed() == (1, 1)
    await semantic.refresh()
    assert await unindexed() == (0, 0)
    assert found_ids(await semantic.answer(ABOUT_MONEY)) == ["c"]


# Admission and explanation


async def test_a_repeated_admission_keeps_what_the_semantic_branch_said(
    semantic: SemanticWorld, backing: Backing
) -> None:
    await semantic.indexed(TEA, RAIN)
    context_id = (await semantic.begin()).run.context_id

    async def admitted() -> Any:
        return await semantic.app.recall.active_admitted(
            semantic.request("ActiveRecall", "k"), "assistant", context_id, ABOUT_TEA
        )

    first = await admitted()
    (hit,) = first.answer.hits
    assert hit.semantic is not None
    assert hit.semantic.rank == 1
    assert hit.semantic.score == pytest.approx(1.0)
    assert first.answer.semantic.vectors_searched == 2
    calls = semantic.provider_calls()
    backing.lose_index()
    again = await admitted()
    assert (again.answer, again.next_context_id) == (first.answer, first.next_context_id)
    assert semantic.provider_calls() == calls


async def test_an_explanation_says_what_the_index_holds_of_a_memory(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA, RAIN)
    await semantic.remember(MONEY, "c")
    explain = semantic.app.recall.explain
    found = await explain(semantic.call, "assistant", "a", ABOUT_TEA)
    assert (found.rank, found.recalled, found.mode) == (1, True, RecallMode.HYBRID)
    assert found.semantic == SemanticStanding(state=VectorState.CURRENT, score=BranchScore(1, 1.0))
    missed = await explain(semantic.call, "assistant", "b", ABOUT_TEA)
    assert (missed.rank, missed.recalled) == (None, False)
    assert missed.semantic == SemanticStanding(
        state=VectorState.CURRENT, score=BranchScore(2, 0.0), cut=SemanticCut.MIN_SIMILARITY
    )
    new = await explain(semantic.call, "assistant", "c", ABOUT_TEA)
    assert new.semantic == SemanticStanding(state=VectorState.MISSING)
    await semantic.put("a", "Coffee is ground.")
    stale = await explain(semantic.call, "assistant", "a", ABOUT_TEA)
    assert (stale.rank, stale.semantic) == (None, SemanticStanding(state=VectorState.OUTDATED))
    words = await explain(semantic.call, "assistant", "a", ABOUT_TEA, mode=RecallMode.LEXICAL)
    assert words.semantic == SemanticStanding(state=VectorState.NOT_USED)
