"""The world that a test acts in, and caches of views over its store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from durable_memory.adapters.runtime import ManualClock
from durable_memory.app.views.cache import ViewCache
from tests.unit.app.stores import HookedStore
from tests.unit.app.world import PLENTY, START, CountingIds, World, opened_store, process


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


@pytest.fixture
def hooked(world: World) -> HookedStore:
    """The world's store, for a cache alone."""
    return HookedStore(world.store)


@pytest.fixture
async def make_cache(hooked: HookedStore) -> Any:
    """Caches over the hooked store, closed with the test."""
    made: list[ViewCache] = []

    def make(**more: Any) -> ViewCache:
        made.append(ViewCache(hooked, **{"budget_bytes": PLENTY, "view_max_bytes": PLENTY, **more}))
        return made[-1]

    yield make
    for one in made:
        await one.close()


@pytest.fixture
def views(make_cache: Any) -> ViewCache:
    cache: ViewCache = make_cache()
    return cache
