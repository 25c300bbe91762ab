"""Vector views of hot partitions, under a byte budget; each is brought to the manifest that the caller has read."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from typing import Final

from durable_memory.app.semantic.health import SemanticHealth
from durable_memory.app.semantic.vector_view import VectorKey, VectorView, missing_segments, next_view
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import Manifest
from durable_memory.ports.vector_index import VectorIndex

_INLINE_BYTES: Final = 256 * 1024
_VIEW_BYTES: Final = 4_096
"""What a view takes beside its blocks: manifest, and its places in tables. One of an emptied index is nothing else."""


class VectorCache:
    """Loads are single-flight for each partition; the least recently used view leaves first."""

    def __init__(self, index: VectorIndex, health: SemanticHealth, *, budget_bytes: int) -> None:
        self._index = index
        self._health = health
        self._budget = budget_bytes
        self._views: OrderedDict[str, VectorView] = OrderedDict()
        self._bytes = 0
        self._loading: dict[str, tuple[VectorKey, asyncio.Task[VectorView]]] = {}

    @property
    def nbytes(self) -> int:
        """Estimated bytes of memory; counted as views come and go, for there may be very many."""
        return self._bytes

    @property
    def views(self) -> Collection[VectorView]:
        """What is in memory now."""
        return self._views.values()

    async def load(self, partition: Partition, manifest: Manifest) -> VectorView:
        """The view of exactly `manifest`.

        A segment may expire between the read of a manifest and that of its segments: then the manifest has changed.

        Raises: DATA_CORRUPTED if a segment is missing or damaged although the manifest is unchanged,
        INDEX_REVISION_CONFLICT if it has changed: read it again.
        """
        wanted = VectorKey.of(manifest)
        held = self._views.get(partition.name)
        if held is not None and held.key == wanted:
            self._views.move_to_end(partition.name)
            return held
        loading = self._loading.get(partition.name)
        if loading is None or loading[0] != wanted:
            task = asyncio.create_task(self._load(partition, manifest), name="load vector view")
            loading = self._loading[partition.name] = (wanted, task)
            task.add_done_callback(lambda done: self._loaded(partition.name, done))
        return await asyncio.shield(loading[1])

    def drop(self, partition: Partition) -> None:
        """Forget a view whose index is not to be trusted."""
        self._let_go(partition.name)

    async def close(self) -> None:
        tasks = [task for _, task in self._loading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._views.clear()
        self._bytes = 0

    async def _load(self, partition: Partition, manifest: Manifest) -> VectorView:
        previous = self._views.get(partition.name)
        missing = missing_segments(manifest, previous)
        encoded = await self._index.segments(partition, missing) if missing else {}
        try:
            if sum(map(len, encoded.values())) <= _INLINE_BYTES:
                view = next_view(manifest, previous, encoded.get)
            else:
                view = await asyncio.to_thread(next_view, manifest, previous, encoded.get)
        except DomainError as error:
            latest = await self._index.manifest(partition)
            if latest is None or VectorKey.of(latest) != VectorKey.of(manifest):
                raise DomainError(
                    Reason.INDEX_REVISION_CONFLICT,
                    "the index moved while it was read",
                    expected=manifest.index_revision,
                    actual=0 if latest is None else latest.index_revision,
                ) from error
            self._health.damaged(partition, manifest)
            raise
        self._hold(partition.name, view)
        return view

    def _hold(self, name: str, view: VectorView) -> None:
        held = self._views.get(name)
        if held is not None and _age(held) > _age(view):
            return  # an older manifest was slow to load
        self._let_go(name)
        self._views[name] = view
        self._bytes += _size(view)
        while self._bytes > self._budget and len(self._views) > 1:
            self._let_go(next(iter(self._views)))

    def _let_go(self, name: str) -> None:
        view = self._views.pop(name, None)
        if view is not None:
            self._bytes -= _size(view)

    def _loaded(self, name: str, task: asyncio.Task[VectorView]) -> None:
        loading = self._loading.get(name)
        if loading is not None and loading[1] is task:
            del self._loading[name]
        if not task.cancelled():
            task.exception()  # every waiter gets it; where all have left, it is not "never retrieved"


def _size(view: VectorView) -> int:
    return view.nbytes + _VIEW_BYTES


def _age(view: VectorView) -> tuple[int, int]:
    """Fences rise even where the index was lost and counts its revisions from 1 again."""
    return view.manifest.fence, view.manifest.index_revision
