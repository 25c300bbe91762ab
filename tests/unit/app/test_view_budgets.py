"""Budgets of views: what leaves first, what is refused, and that the books are right."""

from __future__ import annotations

from typing import Any

from durable_memory.domain.errors import Reason
from durable_memory.domain.namespace import Namespace
from tests.unit.app.stores import HookedStore
from tests.unit.app.view_caches import ids, settled, view_of
from tests.unit.app.world import World, refused


async def size_of(world: World, make_cache: Any) -> int:
    cache = make_cache()
    await view_of(cache, world)
    size: int = cache.statistics().bytes
    return size


async def test_the_least_recently_used_view_leaves_first(make_cache: Any, world: World) -> None:
    a, b, c = (world.at(Namespace("acme", "user-1", name)) for name in "abc")
    for one in (a, b, c):
        await one.remember("tea " * 50, "x")
    size = await size_of(a, make_cache)
    views = make_cache(budget_bytes=2 * size + size // 2)
    await view_of(views, a)
    await view_of(views, b)
    await view_of(views, a)
    await view_of(views, c)
    statistics = views.statistics()
    assert (statistics.views, statistics.evictions, statistics.loads) == (2, 1, 3)
    assert statistics.bytes <= 2 * size + size // 2
    await view_of(views, a)
    assert views.statistics().loads == 3
    await view_of(views, b)
    assert views.statistics().loads == 4


async def test_views_of_empty_namespaces_count_too(make_cache: Any, world: World) -> None:
    size = await size_of(world, make_cache)
    assert size > 0
    views = make_cache(budget_bytes=10 * size)
    for number in range(30):
        await view_of(views, world.at(Namespace("acme", "user-1", f"empty {number}")))
    assert views.statistics().views == 10


async def test_a_namespace_over_its_budget_is_refused_without_being_loaded_again(
    make_cache: Any, world: World, hooked: HookedStore
) -> None:
    await world.remember("tea", "a")
    small = await size_of(world, make_cache)
    views = make_cache(view_max_bytes=small + small // 4)
    for number in range(40):
        await world.remember(" ".join(f"word{number}x{place}" for place in range(20)), f"n{number:02}")
    with refused(Reason.NAMESPACE_TOO_LARGE, active_nodes=41, max_view_bytes=small + small // 4):
        await view_of(views, world)
    loads = hooked.calls["list_nodes"]
    await world.put("a", "tea and sugar")
    with refused(Reason.NAMESPACE_TOO_LARGE, active_nodes=41):
        await view_of(views, world)
    assert hooked.calls["list_nodes"] == loads
    assert views.statistics().views == 0
    for number in range(40):
        await world.retire(await world.node(f"n{number:02}"))
    assert ids(await view_of(views, world), "tea") == ["a"]


async def test_a_namespace_that_outgrows_its_budget_gives_its_view_back(make_cache: Any, world: World) -> None:
    await world.remember("tea", "a")
    small = await size_of(world, make_cache)
    views = make_cache(view_max_bytes=small + small // 4)
    await view_of(views, world)
    for number in range(40):
        await world.remember(" ".join(f"word{number}x{place}" for place in range(20)))
    with refused(Reason.NAMESPACE_TOO_LARGE):
        await view_of(views, world)
    assert (views.statistics().views, views.statistics().bytes) == (0, 0)


async def test_the_bytes_on_the_books_are_those_of_the_views(make_cache: Any, world: World) -> None:
    a, b = (world.at(Namespace("acme", "user-1", name)) for name in "ab")
    views = make_cache()
    for number in range(30):
        await a.put(f"n{number % 7}", f"tea {number}")
        await b.put(f"n{number % 5}", f"coffee {number}")
        held = [await view_of(views, a), await view_of(views, b)]
        await settled(views)
        held = [await view_of(views, a), await view_of(views, b)]
        assert views.statistics().bytes == sum(view.nbytes for view in held)
