"""Why there is no semantic branch, in words that are true, wherever it is said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from durable_memory.app.recall_result import NOT_USED, DegradationReason
from durable_memory.app.semantic import runtime
from durable_memory.app.services import build_services
from durable_memory.app.sessions import PolicyRequest
from durable_memory.domain.errors import DomainError, Reason, dependency_unavailable
from durable_memory.domain.session import RecallMode
from tests.processes.polling import wait_until_async
from tests.unit.app.semantic.semantic_world import (
    ABOUT_TEA,
    TEA,
    Backing,
    SemanticWorld,
    semantic_process,
)
from tests.unit.app.semantic.test_runtime import SlowToOpen
from tests.unit.app.semantic.test_semantic_recall import TROUBLES, UNREACHABLE, fails_always
from tests.unit.app.world import PLENTY, CountingIds, World, refused

EXPLICIT = pytest.mark.parametrize("mode", [RecallMode.SEMANTIC, RecallMode.HYBRID])


@pytest.fixture
async def wordy(backing: Backing) -> World:
    """A process over the same store whose settings name no provider."""
    ids, store = CountingIds("wordy"), backing.store
    typed: Any = store
    app = build_services(
        typed,
        backing.clock,
        ids,
        view_budget_bytes=PLENTY,
        view_max_bytes=PLENTY,
        revision_cache_bytes=PLENTY,
        no_vectors="the vectors have no place",
    )
    return World(store=typed, clock=backing.clock, ids=ids, app=app)


async def said(world: World, session_id: str = "assistant", query: str = "kettles") -> tuple[DegradationReason, str]:
    """Of a recall in AUTO, and of the explanation of it, which say the same."""
    answer = await world.app.recall.active(world.call, session_id, query)
    why = await world.app.recall.explain(world.call, session_id, "a", query)
    assert answer.degradation is not None
    assert (why.mode, why.degradation, why.semantic) == (RecallMode.LEXICAL, answer.degradation, NOT_USED)
    return answer.degradation.reason, answer.degradation.message


@TROUBLES
async def test_an_explanation_says_why_it_knows_nothing_of_the_vector(
    semantic: SemanticWorld, trouble: Callable[[SemanticWorld], Awaitable[None]], reason: DegradationReason
) -> None:
    await trouble(semantic)
    why = await semantic.app.recall.explain(semantic.call, "assistant", "a", ABOUT_TEA)
    assert why.degradation is not None
    assert (why.degradation.reason, why.mode, why.semantic) == (reason, RecallMode.LEXICAL, NOT_USED)


async def test_an_index_that_goes_away_in_the_middle_of_an_explanation_is_named(
    semantic: SemanticWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await semantic.indexed(TEA)
    standing = semantic.runtime.search.standing

    async def too_late(*asked: Any) -> Any:
        semantic.backing.index.before["manifest"] = fails_always(UNREACHABLE)
        semantic.backing.lose_index()
        semantic.runtime.vectors.drop(semantic.partition)
        return await standing(*asked)

    monkeypatch.setattr(semantic.runtime.search, "standing", too_late)
    why = await semantic.app.recall.explain(semantic.call, "assistant", "a", ABOUT_TEA)
    assert why.degradation is not None
    assert (why.degradation.reason, why.semantic) == (DegradationReason.INDEX_UNAVAILABLE, NOT_USED)


@EXPLICIT
async def test_an_explicit_mode_has_recalled_nothing_and_says_nothing_else(
    semantic: SemanticWorld, mode: RecallMode
) -> None:
    await semantic.indexed(TEA)
    semantic.backing.index.before["manifest"] = fails_always(UNREACHABLE)
    with pytest.raises(DomainError) as caught:
        await semantic.answer("kettles", mode=mode)
    assert caught.value.message == f"mode {mode.name} is not possible: the vector index cannot be read"


async def test_a_repository_that_cannot_say_what_was_published_is_not_taken_for_the_index(
    semantic: SemanticWorld, successor: SemanticWorld
) -> None:
    await semantic.indexed(TEA)
    semantic.backing.records.before["last_receipt"] = fails_always(dependency_unavailable("the store does not answer"))
    assert await said(successor) == (
        DegradationReason.INDEX_UNAVAILABLE,
        "what is published could not be checked: the store does not answer; lexical recall only",
    )


async def test_a_bound_session_is_told_that_the_server_has_no_provider_and_why(
    semantic: SemanticWorld, wordy: World
) -> None:
    await semantic.indexed(TEA)
    assert await said(wordy) == (
        DegradationReason.SEMANTIC_NOT_CONFIGURED,
        "the session is bound to fixture, but the vectors have no place; lexical recall only",
    )


async def test_who_needs_vectors_where_there_are_none_is_told_why_there_are_none(wordy: World) -> None:
    await wordy.remember(TEA, "a")
    await wordy.open()
    assert await said(wordy) == (
        DegradationReason.SEMANTIC_NOT_CONFIGURED,
        "the vectors have no place; lexical recall only",
    )
    with pytest.raises(DomainError, match=r"mode HYBRID is not possible: the vectors have no place$"):
        await wordy.app.recall.active(wordy.call, "assistant", "kettles", mode=RecallMode.HYBRID)
    with pytest.raises(DomainError, match=r"the vectors have no place$"):
        await wordy.open("other", mode=RecallMode.HYBRID)


async def test_a_session_from_before_there_was_a_generation_is_told_how_it_gets_one(
    wordy: World, semantic: SemanticWorld
) -> None:
    await wordy.open()
    await wordy.remember(TEA, "a")
    reason, message = await said(semantic)
    assert reason is DegradationReason.SEMANTIC_NOT_CONFIGURED
    assert "RebindSession binds it to fixture" in message
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="SEMANTIC_NOT_CONFIGURED"):
        await semantic.refresh()
    with pytest.raises(DomainError, match="RebindSession"):
        await semantic.refresh()


async def test_a_session_of_another_model_is_told_of_both_and_how_it_moves(
    semantic: SemanticWorld, newer: SemanticWorld
) -> None:
    await semantic.indexed(TEA)
    reason, message = await said(newer)
    assert reason is DegradationReason.GENERATION_NOT_SERVED
    assert "bound to fixture, and this server makes another configuration of it; RebindSession" in message


async def test_while_a_provider_has_never_answered_it_is_that_which_is_said_also_to_who_has_no_session(
    backing: Backing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_START_SECONDS", 0.01)
    embedder = SlowToOpen()
    async with semantic_process(backing, "a", embedder) as world:
        await world.open()
        await world.remember(TEA, "a")
        reason, message = await said(world)
        assert (reason, "has not answered since the server started" in message) == (
            DegradationReason.PROVIDER_FAILED,
            True,
        )
        preview = await world.app.recall.preview(world.call, "kettles", PolicyRequest())
        assert preview.degradation is not None
        assert preview.degradation.message == message
        embedder.released.set()
        await wait_until_async(lambda: world.runtime.generation is not None, what="the generation")


async def test_a_repeated_admission_says_in_the_same_words_what_it_went_without(
    semantic: SemanticWorld, newer: SemanticWorld
) -> None:
    await semantic.indexed(TEA)
    context_id = (await semantic.begin()).run.context_id

    async def admitted(world: SemanticWorld) -> Any:
        return await world.app.recall.active_admitted(
            semantic.request("ActiveRecall", "k"), "assistant", context_id, "kettles"
        )

    first = await admitted(newer)
    assert "another configuration" in first.answer.degradation.message
    assert (await admitted(semantic)).answer.degradation == first.answer.degradation
