"""Processes with semantic recall."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.app.semantic.idle_time import IdleTime
from tests.unit.app.semantic.semantic_world import Backing, GatedEmbedder, SemanticWorld, semantic_process
from tests.unit.app.world import START


@pytest.fixture
async def idle_time(monkeypatch: pytest.MonkeyPatch) -> IdleTime:
    """The time of the test's event loop, which passes while there is nothing else to do."""
    return IdleTime.of_this_loop(START, monkeypatch)


@pytest.fixture
async def backing() -> Backing:
    return await Backing.make()


@pytest.fixture
async def semantic(backing: Backing) -> AsyncIterator[SemanticWorld]:
    """One process over an empty store."""
    async with semantic_process(backing, "a") as world:
        yield world


@pytest.fixture
async def successor(backing: Backing, semantic: SemanticWorld) -> AsyncIterator[SemanticWorld]:
    """Another process over the same store, index and leases."""
    async with semantic_process(backing, "b") as world:
        yield world


@pytest.fixture
async def newer(backing: Backing) -> AsyncIterator[SemanticWorld]:
    """Another process over the same store, that makes another generation."""
    async with semantic_process(backing, "n", GatedEmbedder(revision="2")) as world:
        yield world
