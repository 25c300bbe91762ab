"""Vector views in memory stay within their bytes, however many namespaces have been asked."""

from __future__ import annotations

from durable_memory.app.semantic.vector_cache import VectorCache
from durable_memory.domain.namespace import Namespace
from tests.unit.app.semantic.semantic_world import TEA, Backing, SemanticWorld

BUDGET_BYTES = 20_000


async def load(cache: VectorCache, world: SemanticWorld) -> None:
    manifest = await world.backing.index.manifest(world.partition)
    assert manifest is not None
    await cache.load(world.partition, manifest)


async def emptied(world: SemanticWorld, number: int) -> SemanticWorld:
    """A namespace whose index has no vector any more."""
    there: SemanticWorld = world.at(Namespace("acme", "user-1", f"project-{number}"))  # type: ignore[assignment]
    await there.open()
    node = await there.remember(TEA)
    await there.refresh()
    await there.retire(node)
    await there.refresh()
    return there


async def test_views_of_emptied_indexes_take_room_too_and_leave(semantic: SemanticWorld, backing: Backing) -> None:
    cache = VectorCache(backing.index, semantic.runtime.health, budget_bytes=BUDGET_BYTES)
    worlds = [await emptied(semantic, number) for number in range(8)]
    for world in worlds:
        await load(cache, world)
    assert 0 < cache.nbytes <= BUDGET_BYTES
    assert 1 < len(cache.views) < len(worlds)
    kept = set(cache.views)
    await load(cache, worlds[-1])
    assert set(cache.views) == kept, "the last one is there"
    await load(cache, worlds[0])
    assert set(cache.views) != kept, "the first one had to leave"


async def test_what_is_let_go_or_replaced_is_counted_no_more(semantic: SemanticWorld, backing: Backing) -> None:
    cache = VectorCache(backing.index, semantic.runtime.health, budget_bytes=BUDGET_BYTES)
    await semantic.indexed(TEA)
    await load(cache, semantic)
    one = cache.nbytes
    await semantic.refresh(rebuild=True)
    await load(cache, semantic)
    assert cache.nbytes == one
    cache.drop(semantic.partition)
    assert cache.nbytes == 0
    await load(cache, semantic)
    await cache.close()
    assert (cache.nbytes, len(cache.views)) == (0, 0)
