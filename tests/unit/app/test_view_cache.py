"""Views: as new as the call, and never of a history that is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from durable_memory.app.views import cache as cache_module
from durable_memory.app.views.cache import ViewCache
from durable_memory.domain.change_set import SetStatus
from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE
from durable_memory.domain.node import NodeStatus
from tests.unit.app.stores import Gate, HookedStore, Rewinder
from tests.unit.app.view_caches import found, ids, view_of
from tests.unit.app.world import World

# Bringing a view up to date


async def test_a_view_is_loaded_once_then_extended_by_what_changed(
    views: ViewCache, world: World, hooked: HookedStore
) -> None:
    await world.remember("tea", "a")
    first = await view_of(views, world)
    assert await view_of(views, world) is first
    await world.remember("green tea", "b")
    second = await view_of(views, world)
    statistics = views.statistics()
    assert (statistics.loads, statistics.deltas, statistics.hits) == (1, 1, 1)
    assert hooked.calls["list_nodes"] == 1
    assert ids(second, "tea") == ["a", "b"]
    assert ids(first, "tea") == ["a"]


async def test_what_was_extended_equals_what_is_loaded(views: ViewCache, world: World, make_cache: Any) -> None:
    words = ["tea", "coffee", "milk", "water", "sugar"]
    for step in range(40):
        node_id = f"n{step % 11}"
        if step % 5 == 4 and step > 11:
            node = await world.node(node_id)
            if node.status is NodeStatus.ACTIVE:
                await world.retire(node)
        else:
            text = " ".join(words[place % len(words)] for place in range(step % 7, step % 7 + 1 + step % 4))
            await world.put(node_id, f"{text} {step}", labels={"step": str(step % 3)})
        extended = await view_of(views, world)
        if step % 8 == 7:
            loaded = await view_of(make_cache(), world)
            for query in (*words, "tea coffee sugar", "water 12"):
                for profile in (BM25F_PROFILE, COVERAGE_PROFILE):
                    assert found(extended, query, profile) == found(loaded, query, profile)
    assert views.statistics().loads == 1


async def test_a_view_that_is_far_behind_is_loaded_again(
    views: ViewCache, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "_DELTA_MAX_CHANGE_SETS", 3)
    await world.remember("tea", "a")
    await view_of(views, world)
    for number in range(3):
        await world.remember(f"tea {number}")
    await view_of(views, world)
    assert (views.statistics().loads, views.statistics().deltas) == (1, 1)
    for number in range(4):
        await world.remember(f"coffee {number}")
    assert len(ids(await view_of(views, world), "coffee")) == 4
    assert (views.statistics().loads, views.statistics().deltas) == (2, 1)


async def test_pages_of_a_load_and_of_a_delta_are_put_together(
    views: ViewCache, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "_PAGE", 2)
    monkeypatch.setattr(cache_module, "_DELTA_MAX_INLINE", 1)
    first = [(await world.remember(f"tea {number}")).node_id for number in range(5)]
    assert ids(await view_of(views, world), "tea") == first
    more = [(await world.remember(f"more tea {number}")).node_id for number in range(5)]
    assert ids(await view_of(views, world), "tea") == first + more
    assert (views.statistics().loads, views.statistics().deltas) == (1, 1)


async def test_a_change_of_much_text_leaves_the_event_loop_to_others(
    views: ViewCache, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    async def in_thread(function: Any, *arguments: Any) -> Any:
        threads.append(function.__name__)
        return function(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", in_thread)
    await view_of(views, world)
    threads.clear()
    await world.remember("tea", "short")
    await view_of(views, world)
    assert threads == []
    await world.remember("tea " + "with milk and sugar " * 1_000, "long")
    assert ids(await view_of(views, world), "tea") == ["long", "short"]
    assert threads == ["extended"]


async def test_what_is_committed_during_a_load_shows_in_the_next_view_only(
    views: ViewCache, world: World, hooked: HookedStore
) -> None:
    await world.remember("tea", "a")
    gate = hooked.before["list_nodes"] = Gate()
    loading = asyncio.create_task(view_of(views, world))
    await gate.reached.wait()
    await world.put("a", "coffee")
    await world.remember("green tea", "b")
    gate.open()
    assert found(await loading, "tea")[0][:2] == ("a", 1)
    assert ids(await view_of(views, world), "tea") == ["b"]


async def test_only_active_nodes_are_loaded(views: ViewCache, world: World) -> None:
    for number in range(3):
        await world.retire(await world.remember(f"tea {number}"))
    node = await world.remember("tea")
    view = await view_of(views, world)
    assert (len(view.index), ids(view, "tea")) == (1, [node.node_id])


async def test_a_tombstone_leaves_the_view(views: ViewCache, world: World) -> None:
    await world.remember("tea", "a")
    await view_of(views, world)
    await world.apply(SetStatus(node_id="a", expected_revision=1, status=NodeStatus.TOMBSTONED))
    assert ids(await view_of(views, world), "tea") == []
    assert views.statistics().deltas == 1


async def test_a_caller_with_an_older_head_gets_the_newer_view(views: ViewCache, world: World) -> None:
    await world.remember("tea", "a")
    before = await world.store.head(world.namespace)
    await world.remember("green tea", "b")
    newer = await view_of(views, world)
    assert await views.view(world.namespace, before) is newer


# Histories


async def test_a_rewritten_history_is_never_taken_for_the_one_that_was_seen(views: ViewCache, world: World) -> None:
    await world.remember("tea", "a")
    rewinder = Rewinder(world.store, world.namespace)  # type: ignore[arg-type]
    await world.remember("coffee", "lost")
    assert ids(await view_of(views, world), "coffee") == ["lost"]
    rewinder.rewind()
    await world.remember("coffee", "other")
    assert ids(await view_of(views, world), "coffee") == ["other"]
    assert views.statistics().loads == 2


async def test_a_view_of_lost_writes_is_not_extended_by_what_came_instead(views: ViewCache, world: World) -> None:
    await world.remember("tea", "a")
    rewinder = Rewinder(world.store, world.namespace)  # type: ignore[arg-type]
    await world.remember("coffee", "lost")
    await view_of(views, world)
    rewinder.rewind()
    for number in range(3):
        await world.remember(f"milk {number}", f"b{number}")
    view = await view_of(views, world)
    assert (ids(view, "coffee"), ids(view, "milk")) == ([], ["b0", "b1", "b2"])


async def test_a_view_of_lost_writes_is_not_served_while_the_store_is_behind_it(views: ViewCache, world: World) -> None:
    await world.remember("tea", "a")
    rewinder = Rewinder(world.store, world.namespace)  # type: ignore[arg-type]
    await world.remember("coffee", "lost")
    await view_of(views, world)
    rewinder.rewind()
    view = await view_of(views, world)
    assert (ids(view, "coffee"), ids(view, "tea")) == ([], ["a"])


async def test_another_history_is_loaded_afresh(views: ViewCache, world: World) -> None:
    await world.remember("tea", "a")
    rewinder = Rewinder(world.store, world.namespace)  # type: ignore[arg-type]
    await view_of(views, world)
    rewinder.rename_history("restored")
    view = await view_of(views, world)
    assert (view.key.history_id, views.statistics().loads) == ("restored", 2)
    rewinder.rename_history("restored again")
    await world.remember("coffee", "b")
    view = await view_of(views, world)
    assert (view.key.history_id, views.statistics().loads) == ("restored again", 3)
