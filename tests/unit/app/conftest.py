"""The world that a test acts in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from durable_memory.adapters.runtime import ManualClock
from tests.unit.app.world import START, CountingIds, World, opened_store, process


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """One process over an empty store."""
    ids = CountingIds("a")
    world = process(await opened_store(ids), ManualClock(START), ids)
    yield world
    await world.app.close()


@pytest.fixture
async def replica(world: World) -> AsyncIterator[World]:
    """Another process over the same store."""
    other = process(world.store, world.clock, CountingIds("b"))
    yield other
    await other.app.close()


@pytest.fixture
async def elsewhere(world: World) -> AsyncIterator[World]:
    """A process over a store of its own."""
    ids = CountingIds("c")
    other = process(await opened_store(ids), world.clock, ids)
    yield other
    await other.app.close()
