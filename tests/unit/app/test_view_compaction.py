"""Compaction of views: it goes on beside changes, and no answer tells."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from durable_memory.app.views.cache import ViewCache
from durable_memory.app.views.layers import Compaction
from tests.unit.app.stores import Gate, HookedStore, Rewinder
from tests.unit.app.view_caches import found, settled, view_of
from tests.unit.app.world import World


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
