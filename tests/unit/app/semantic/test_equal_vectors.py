"""A namespace in which very many texts are the same holds up nobody else: what all of them cost is no loop's work."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from durable_memory.app.semantic import nearest, search
from durable_memory.domain.session import RecallMode
from tests.unit.app.semantic.semantic_world import ABOUT_TEA, RAIN, TEA, SemanticWorld, found_ids

COPIES = 40


@pytest.fixture
async def repeated(semantic: SemanticWorld) -> SemanticWorld:
    """Many memories with the same vector, which differ in their content, and one of something else."""
    await semantic.open()
    await semantic.remember(RAIN, "rain")
    vector = semantic.embedder._vectors[TEA]
    for number in range(COPIES):
        content = f"{TEA} {number}"
        semantic.embedder._vectors[content] = vector
        await semantic.remember(content, f"tea-{number:02}")
    await semantic.refresh()
    return semantic


async def test_a_long_search_among_equals_is_done_by_another_thread_and_comes_out_the_same(
    repeated: SemanticWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    in_thread = asyncio.to_thread

    async def noted(function: Any, *arguments: Any, **named: Any) -> Any:
        threads.append(function.__name__)
        return await in_thread(function, *arguments, **named)

    monkeypatch.setattr(asyncio, "to_thread", noted)
    here = await repeated.answer(ABOUT_TEA, mode=RecallMode.SEMANTIC)
    threads.clear()  # the namespace view was loaded by one
    here = await repeated.answer(ABOUT_TEA, mode=RecallMode.SEMANTIC)
    assert threads == []
    monkeypatch.setattr(nearest, "_INLINE_NUMBERS", COPIES)
    monkeypatch.setattr(search, "_INLINE_RANKED", COPIES - 1)
    there = await repeated.answer(ABOUT_TEA, mode=RecallMode.SEMANTIC)
    assert threads == ["_best", "_cut"]
    assert found_ids(there) == found_ids(here) == [f"tea-{number:02}" for number in range(5)]
