"""The view that a cache gives now, what is found in it, and the moment in which nothing goes on in the cache."""

from __future__ import annotations

from durable_memory.app.views.cache import ViewCache
from durable_memory.app.views.view import View
from durable_memory.domain.lexical.profiles import BM25F_PROFILE
from tests.processes.polling import wait_until_async
from tests.unit.app.world import World


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
