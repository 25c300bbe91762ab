"""What a recall waits for: AUTO no longer than its budget, explicit modes until there is just time to say why not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from durable_memory.app.recall_result import DegradationReason, RecallAnswer
from durable_memory.domain.errors import Reason
from durable_memory.domain.session import RecallMode
from tests.unit.app.semantic.semantic_world import (
    ABOUT_TEA,
    RAIN,
    TEA,
    Backing,
    SemanticWorld,
    found_ids,
    semantic_process,
)
from tests.unit.app.stores import Gate
from tests.unit.app.world import refused

pytestmark = pytest.mark.usefixtures("idle_time")

BUDGET_SECONDS = 0.05
EXPLICIT = pytest.mark.parametrize("mode", [RecallMode.SEMANTIC, RecallMode.HYBRID])


@pytest.fixture
async def hurried(backing: Backing) -> AsyncIterator[SemanticWorld]:
    async with semantic_process(backing, "h", search_budget_seconds=BUDGET_SECONDS) as world:
        await world.indexed(TEA, RAIN)
        yield world


async def within(world: SemanticWorld, seconds: float, query: str, mode: RecallMode | None = None) -> RecallAnswer:
    """As a caller who waits for so long, and no longer."""
    async with asyncio.timeout(seconds):
        call = replace(world.call, ends_at=asyncio.get_running_loop().time() + seconds)
        return await world.app.recall.active(call, "assistant", query, mode=mode)


async def slow_provider(world: SemanticWorld) -> None:
    world.embedder.query_gate.clear()


async def slow_manifest(world: SemanticWorld) -> None:
    world.backing.index.before["manifest"] = Gate()


async def slow_segments(world: SemanticWorld) -> None:
    world.runtime.vectors.drop(world.partition)
    world.backing.index.before["segments"] = Gate()


@pytest.mark.parametrize("trouble", [slow_provider, slow_manifest, slow_segments])
async def test_auto_answers_by_words_when_its_budget_is_spent_and_says_so(
    hurried: SemanticWorld, trouble: object
) -> None:
    await trouble(hurried)  # type: ignore[operator]
    async with asyncio.timeout(BUDGET_SECONDS * 1.01):
        answer = await hurried.answer("kettles")
    assert (found_ids(answer), answer.mode) == (["a"], RecallMode.LEXICAL)
    assert answer.degradation is not None
    assert answer.degradation.reason is DegradationReason.DEADLINE


async def test_auto_waits_for_half_of_what_its_caller_has_left_at_most(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    semantic.embedder.query_gate.clear()
    began = asyncio.get_running_loop().time()
    answer = await within(semantic, 0.4, "kettles")
    assert asyncio.get_running_loop().time() == pytest.approx(began + 0.2)
    assert answer.degradation is not None
    assert answer.degradation.reason is DegradationReason.DEADLINE


@EXPLICIT
async def test_an_explicit_mode_waits_beyond_the_budget(hurried: SemanticWorld, mode: RecallMode) -> None:
    hurried.embedder.query_gate.clear()
    waiting = asyncio.create_task(hurried.answer(ABOUT_TEA, mode=mode))
    done, _ = await asyncio.wait([waiting], timeout=3 * BUDGET_SECONDS)
    assert not done
    hurried.embedder.query_gate.set()
    assert found_ids(await waiting) == ["a"]


@EXPLICIT
async def test_an_explicit_mode_says_in_time_that_its_caller_would_wait_in_vain(
    hurried: SemanticWorld, mode: RecallMode
) -> None:
    hurried.embedder.query_gate.clear()
    with refused(Reason.SEMANTIC_UNAVAILABLE, cause="DEADLINE"):
        await within(hurried, 0.5, ABOUT_TEA, mode)


async def test_what_was_given_up_is_there_for_who_asks_again(hurried: SemanticWorld) -> None:
    hurried.embedder.query_gate.clear()
    assert (await hurried.answer(ABOUT_TEA)).mode is RecallMode.LEXICAL
    hurried.embedder.query_gate.set()
    answer = await hurried.answer(ABOUT_TEA, mode=RecallMode.HYBRID)
    assert found_ids(answer) == ["a"]
    assert hurried.embedder.queries == [ABOUT_TEA]


async def test_words_are_searched_while_the_question_is_embedded(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    semantic.embedder.query_gate.clear()
    searched = asyncio.Event()
    queue = semantic.app.recall._ranker._queue
    search = queue.search

    async def noticed(*arguments: object) -> object:
        found = await search(*arguments)  # type: ignore[arg-type]
        searched.set()
        return found

    queue.search = noticed  # type: ignore[method-assign, assignment]
    answering = asyncio.create_task(semantic.answer("kettles"))
    await searched.wait()
    assert not answering.done()
    semantic.embedder.query_gate.set()
    assert (await answering).mode is RecallMode.HYBRID


async def test_the_manifest_is_read_while_the_head_is(semantic: SemanticWorld) -> None:
    await semantic.indexed(TEA)
    await semantic.answer(ABOUT_TEA)
    head, manifest = Gate(), Gate()
    semantic.backing.store.before["head"], semantic.backing.index.before["manifest"] = head, manifest
    answering = asyncio.create_task(semantic.answer(ABOUT_TEA))
    await head.reached.wait()
    await manifest.reached.wait()
    head.open()
    manifest.open()
    assert found_ids(await answering) == ["a"]
