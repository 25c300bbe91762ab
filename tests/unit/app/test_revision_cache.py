"""Texts of hits: read once, kept within their bytes, never those of another history."""

from __future__ import annotations

from durable_memory.app.views.revisions import RevisionCache
from durable_memory.domain.errors import Reason
from durable_memory.domain.node import NodeRef
from tests.unit.app.stores import HookedStore
from tests.unit.app.world import World, refused


async def test_a_revision_is_read_once_and_answers_come_in_order(world: World, hooked: HookedStore) -> None:
    cache = RevisionCache(hooked, budget_bytes=1_000_000)
    one, other = await world.remember("tea", "a"), await world.remember("coffee", "b")
    refs = [other.ref, one.ref]
    for _ in range(2):
        assert [node.content for node in await cache.get(world.namespace, "h", refs)] == ["coffee", "tea"]
    assert hooked.calls["revisions"] == 1
    third = await world.put("a", "green tea")
    assert [node.content for node in await cache.get(world.namespace, "h", [one.ref, third.ref])] == [
        "tea",
        "green tea",
    ]
    assert hooked.calls["revisions"] == 2


async def test_another_history_has_texts_of_its_own(world: World, hooked: HookedStore) -> None:
    cache = RevisionCache(hooked, budget_bytes=1_000_000)
    node = await world.remember("tea", "a")
    await cache.get(world.namespace, "before", [node.ref])
    await cache.get(world.namespace, "after", [node.ref])
    assert hooked.calls["revisions"] == 2


async def test_the_oldest_texts_leave_and_one_that_is_too_large_never_enters(world: World, hooked: HookedStore) -> None:
    cache = RevisionCache(hooked, budget_bytes=10_000)
    nodes = [await world.remember(f"{number} " * 500) for number in range(8)]
    for node in nodes:
        await cache.get(world.namespace, "h", [node.ref])
        assert 0 < cache.nbytes <= 10_000
    await cache.get(world.namespace, "h", [nodes[-1].ref])
    assert hooked.calls["revisions"] == 8
    await cache.get(world.namespace, "h", [nodes[0].ref])
    assert hooked.calls["revisions"] == 9
    held = cache.nbytes
    large = await world.remember("x " * 20_000)
    await cache.get(world.namespace, "h", [large.ref])
    assert cache.nbytes == held


async def test_an_indexed_revision_that_the_store_lacks_is_corruption(world: World, hooked: HookedStore) -> None:
    cache = RevisionCache(hooked, budget_bytes=10_000)
    with refused(Reason.DATA_CORRUPTED):
        await cache.get(world.namespace, "h", [NodeRef("missing", 1)])
