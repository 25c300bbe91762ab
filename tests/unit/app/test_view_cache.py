"""Views: as new as the call, shared while they load, within their bytes, and never of a history that is gone."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from durable_memory.app.views import cache as cache_module
from durable_memory.app.views.cache import ViewCache
from durable_memory.app.views.layers import Compaction
from durable_memory.app.views.view import View
from durable_memory.domain.change_set import SetStatus
from durable_memory.domain.errors import DomainError, Reason, dependency_unavailable
from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeStatus
from tests.processes.polling import wait_until_async
from tests.unit.app.stores import Gate, HookedStore, Rewinder, fails_once
from tests.unit.app.world import PLENTY, World, refused


@pytest.fixture
def hooked(world: World) -> HookedStore:
    """The world's store, for the cache alone."""
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


async def view_of(views: ViewCache, world: World) -> View:
    return await views.view(world.namespace, await world.store.head(world.namespace))


def found(view: View, query: str, profile: str = BM25F_PROFILE) -> list[tuple[str, int, float]]:
    return [(hit.node_id, hit.revision, hit.score) for hit in view.index.search(query, profile, limit=50)]


def ids(view: View, query: str) -> list[str]:
    return sorted(node_id for node_id, _, _ in found(view, query))


async def settled(views: ViewCache) -> None:
    """Nothing goes on in the cache any more."""

    async def is_idle() -> bool:
        return not views._tasks

    await wait_until_async(is_idle, what="loads and compactions are over")


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


# Sharing loads


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


# Budgets


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


# Compaction


class HeldCompaction:
    """Compactions off the event loop, which wait until they may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.count = 0
        run = Compaction.run

        def held_up(work: Compaction) -> Any:
            if threading.current_thread() is not threading.main_thread():
                self.count += 1
                self.begun.set()
                assert self.go_on.wait(10)
            return run(work)

        monkeypatch.setattr(Compaction, "run", held_up)

    async def reached(self, views: ViewCache, world: World) -> int:
        """Write until one is under way; returns how many changes that took."""
        step = 0
        while not self.begun.is_set():
            step += 1
            assert step < 2_000, "no compaction was due"
            await world.put(f"n{step % 97}", f"{'tea' if step % 2 else 'coffee'} {step}")
            await view_of(views, world)
            await asyncio.sleep(0)
        return step


async def test_a_compaction_changes_no_answer_while_changes_go_on(
    views: ViewCache, world: World, make_cache: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compaction = HeldCompaction(monkeypatch)

    async def same_as_loaded() -> None:
        view, loaded = await view_of(views, world), await view_of(make_cache(), world)
        for query in ("tea", "tea 7", "coffee 3"):
            assert found(view, query) == found(loaded, query)

    step = await compaction.reached(views, world)
    for more in range(20):
        if more % 4 == 0:
            await world.retire(await world.node(f"n{(step - more) % 97}"))
        else:
            await world.put(f"n{more}", f"tea again {more}")
        await same_as_loaded()
    compaction.go_on.set()
    await settled(views)
    await same_as_loaded()
    await world.put("n1", "tea at last")
    await same_as_loaded()
    assert views.statistics().loads == 1


async def test_a_compaction_that_ends_during_a_delta_is_not_lost(
    views: ViewCache, world: World, hooked: HookedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))
    compaction = HeldCompaction(monkeypatch)
    await compaction.reached(views, world)
    gate = hooked.before["changed_nodes"] = Gate()
    await world.put("n1", "tea during a compaction")
    extending = asyncio.create_task(view_of(views, world))
    await gate.reached.wait()
    compaction.go_on.set()
    await asyncio.to_thread(int)  # on the one thread there is: the compaction is over, and its task knows
    for _ in range(3):
        await asyncio.sleep(0)
    gate.open()
    await extending
    await settled(views)
    view = await view_of(views, world)
    assert (compaction.count, view.index.needs_compaction) == (1, False)


async def test_a_compaction_of_a_view_that_was_loaded_again_is_dropped(
    views: ViewCache, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    compaction = HeldCompaction(monkeypatch)
    await compaction.reached(views, world)
    Rewinder(world.store, world.namespace).rename_history("restored")  # type: ignore[arg-type]
    loaded = await view_of(views, world)
    compaction.go_on.set()
    await settled(views)
    assert found(await view_of(views, world), "tea") == found(loaded, "tea")


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


async def test_a_tombstone_leaves_the_view(views: ViewCache, world: World) -> None:
    await world.remember("tea", "a")
    await view_of(views, world)
    await world.apply(SetStatus(node_id="a", expected_revision=1, status=NodeStatus.TOMBSTONED))
    assert ids(await view_of(views, world), "tea") == []
    assert views.statistics().deltas == 1
