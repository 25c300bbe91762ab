"""How many ACTIVE memories have no vector, kept up as the namespace moves on."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from durable_memory.app.semantic.unindexed import is_outdated
from durable_memory.app.semantic.vector_view import VectorKey, VectorView
from durable_memory.app.views.view import View, ViewKey
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.store import Store

_PAGE: Final = 1_000
_PARTITIONS_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Count:
    """`outdated` are the nodes whose vector does not count any more."""

    view: ViewKey
    vectors: VectorKey
    outdated: frozenset[str]


class UnindexedCounts:
    """Reads what changed since it last looked, and not what changed since the index was made.

    One look at a time for each partition, as a task of its own: a recall that gives up does not make the next one begin
    again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, _Count] = OrderedDict()
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def of(self, partition: Partition, view: View, vectors: VectorView) -> int:
        """As of the view: all but those whose vector counts.

        A publication covers its source, but for texts that the provider refuses, so only what came later is looked at.
        """
        manifest, token, name = vectors.manifest, view.key.token, partition.name
        if manifest.source_history_id != token.history_id:
            return len(view.index)
        if manifest.source_revision >= token.namespace_revision:
            return len(view.index) - len(vectors)
        while True:
            known = self._known.get(name)
            if known is not None and (known.view, known.vectors) == (view.key, vectors.key):
                return len(view.index) - (len(vectors) - len(known.outdated))
            looking = self._looking.get(name)
            # One that is done may be there still, until `_looked` has its turn: to await it would never give it one.
            if looking is None or looking.done():
                looking = asyncio.create_task(self._look(partition, view.key, vectors), name="count unindexed")
                looking.add_done_callback(lambda done: self._looked(name, done))
                self._looking[name] = looking
            await asyncio.shield(looking)

    async def close(self) -> None:
        """Stop looking."""
        tasks = list(self._looking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self, partition: Partition, key: ViewKey, vectors: VectorView) -> None:
        known = self._known.get(partition.name)
        outdated: set[str] = set()
        after = vectors.manifest.source_revision
        if known is not None and known.vectors == vectors.key and await self._extends(partition, known.view, key):
            outdated, after = set(known.outdated), known.view.revision
        after_node_id = ""
        while True:
            nodes = await self._store.changed_nodes(
                partition.namespace,
                after_revision=after,
                at_revision=key.revision,
                after_node_id=after_node_id,
                limit=_PAGE,
            )
            for node in nodes:
                outdated.discard(node.node_id)
                if is_outdated(node, vectors):
                    outdated.add(node.node_id)
            if len(nodes) < _PAGE:
                break
            after_node_id = nodes[-1].node_id
        self._known[partition.name] = _Count(key, vectors.key, frozenset(outdated))
        self._known.move_to_end(partition.name)
        if len(self._known) > _PARTITIONS_REMEMBERED:
            self._known.popitem(last=False)

    async def _extends(self, partition: Partition, then: ViewKey, now: ViewKey) -> bool:
        """Whether `now` was built on `then`: its change set is still the one that made its revision."""
        if then.history_id != now.history_id or not 0 < then.revision < now.revision:
            return False
        found = await self._store.list_change_sets(partition.namespace, after_revision=then.revision - 1, limit=1)
        return any((item.namespace_revision, item.chain_digest) == (then.revision, then.chain_digest) for item in found)

    def _looked(self, name: str, task: asyncio.Task[None]) -> None:
        if self._looking.get(name) is task:
            del self._looking[name]
        if not task.cancelled():
            task.exception()  # every waiter gets it; where all have left, it is not "never retrieved"
