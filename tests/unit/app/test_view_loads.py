"""Loads of views: shared by those who wait together, and neither lost nor repeated when a caller or a load fails."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from durable_memory.app.views.cache import ViewCache
from durable_memory.domain.errors import DomainError, Reason, dependency_unavailable
from tests.unit.app.stores import Gate, HookedStore, fails_once
from tests.unit.app.view_caches import ids, settled, view_of
from tests.unit.app.world import World, refused


async def test_callers_that_wait_together_share_one_load(views: ViewCache, world: World, hooked: HookedStore) -> None:
    await world.remember("tea", "a")
    gate = hooked.before["list_nodes"] = Gate()
    callers = [asyncio.create_task(view_of(views, world)) for _ in range(8)]
    await gate.reached.wait()
    gate.open()
    seen = await asyncio.gather(*callers)
    assert len({id(view) for view in seen}) == 1
    assert (views.statistics().loads, hooked.calls["list_nodes"]) == (1, 1)


async def test_a_caller_that_gives_up_does_not_stop_the_load_of_others(
    views: ViewCache, world: World, hooked: HookedStore
) -> None:
    await world.remember("tea", "a")
    gate = hooked.before["list_nodes"] = Gate()
    first, second = (asyncio.create_task(view_of(views, world)) for _ in range(2))
    await gate.reached.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    gate.open()
    assert ids(await second, "tea") == ["a"]


async def test_a_load_that_everybody_left_is_there_for_the_next(
    views: ViewCache, world: World, hooked: HookedStore
) -> None:
    await world.remember("tea", "a")
    gate = hooked.before["list_nodes"] = Gate()
    caller = asyncio.create_task(view_of(views, world))
    await gate.reached.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    gate.open()
    await settled(views)
    assert ids(await view_of(views, world), "tea") == ["a"]
    assert views.statistics().loads == 1


async def test_a_caller_that_needs_more_than_the_running_load_gets_it(
    views: ViewCache, world: World, hooked: HookedStore
) -> None:
    await world.remember("tea", "a")
    gate = hooked.before["list_nodes"] = Gate()
    first = asyncio.create_task(view_of(views, world))
    await gate.reached.wait()
    await world.remember("green tea", "b")
    second = asyncio.create_task(view_of(views, world))
    gate.open()
    assert ids(await second, "tea") == ["a", "b"]
    await first


async def test_a_failed_load_fails_its_callers_and_the_next_one_succeeds(
    views: ViewCache, world: World, hooked: HookedStore
) -> None:
    await world.remember("tea", "a")
    hooked.before["list_nodes"] = fails_once(dependency_unavailable("the database cannot be reached"))
    results = await asyncio.gather(*(view_of(views, world) for _ in range(3)), return_exceptions=True)
    assert [isinstance(result, DomainError) for result in results] == [True, True, True]
    assert views.statistics().views == 0
    assert ids(await view_of(views, world), "tea") == ["a"]


async def test_a_failed_delta_leaves_the_view_for_the_next_attempt(
    views: ViewCache, world: World, hooked: HookedStore
) -> None:
    await world.remember("tea", "a")
    await view_of(views, world)
    await world.remember("green tea", "b")
    hooked.before["changed_nodes"] = fails_once(dependency_unavailable("the database cannot be reached"))
    with refused(Reason.DEPENDENCY_UNAVAILABLE):
        await view_of(views, world)
    assert ids(await view_of(views, world), "tea") == ["a", "b"]
    assert views.statistics().loads == 1


async def test_a_failure_that_nobody_waits_for_is_not_reported_as_forgotten(
    views: ViewCache, world: World, hooked: HookedStore, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()

    async def fail() -> None:
        await gate()
        raise dependency_unavailable("the database cannot be reached")

    await world.remember("tea", "a")
    hooked.before["list_nodes"] = fail
    caller = asyncio.create_task(view_of(views, world))
    await gate.reached.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    gate.open()
    await settled(views)
    gc.collect()
    assert caplog.text == ""


async def test_a_load_has_a_deadline_of_its_own(make_cache: Any, world: World, hooked: HookedStore) -> None:
    views = make_cache(load_timeout_seconds=0.01)
    await world.remember("tea", "a")
    hooked.before["list_nodes"] = Gate()
    with refused(Reason.DEPENDENCY_UNAVAILABLE):
        await view_of(views, world)
    del hooked.before["list_nodes"]
    views._load_timeout = 60.0  # a busy machine may need longer than the deadline that had to pass
    assert ids(await view_of(views, world), "tea") == ["a"]


async def test_closing_ends_what_is_under_way(make_cache: Any, world: World, hooked: HookedStore) -> None:
    views = make_cache()
    await world.remember("tea", "a")
    gate = hooked.before["list_nodes"] = Gate()
    caller = asyncio.create_task(view_of(views, world))
    await gate.reached.wait()
    await views.close()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert views.statistics().bytes == 0
