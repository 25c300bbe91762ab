"""What is published now, asked once for all recalls that wait for it."""

from __future__ import annotations

import asyncio
from typing import Final

from durable_memory.app.patience import Patience
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import Manifest
from durable_memory.ports.vector_index import VectorIndex

_TOGETHER: Final = 16
"""So many who wait are kept waiting for no others."""


class ManifestReads:
    """One read at a time for each partition. Who comes while it is under way is answered by the next, so that no answer
    is older than its question. A read is a task of its own: a recall that gives up does not stop it for the others.
    """

    def __init__(self, index: VectorIndex) -> None:
        self._index = index
        self._under_way: dict[str, asyncio.Task[Manifest | None]] = {}
        self._next: dict[str, asyncio.Task[Manifest | None]] = {}
        self._askers: dict[str, int] = {}
        self._patience = Patience()

    def begin(self, partition: Partition) -> asyncio.Task[Manifest | None]:
        """A read that has not begun before. Await it shielded. Fails as `VectorIndex.manifest` does."""
        name = partition.name
        task = self._next.get(name)
        if task is None:
            task = asyncio.create_task(self._read(partition, name, self._under_way.get(name)), name="read manifest")
            task.add_done_callback(_retrieve)
            self._next[name] = task
            self._askers[name] = 0
        self._askers[name] += 1
        return task

    async def close(self) -> None:
        """Stop all reads."""
        tasks = {*self._under_way.values(), *self._next.values()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(
        self, partition: Partition, name: str, before: asyncio.Task[Manifest | None] | None
    ) -> Manifest | None:
        task = self._next[name]
        try:
            if before is not None:
                await asyncio.wait([before])
            await self._patience.wait(lambda: self._askers[name], _TOGETHER)
            self._under_way[name] = self._next.pop(name)
            del self._askers[name]
            return await self._index.manifest(partition)
        finally:
            if self._next.get(name) is task:
                del self._next[name], self._askers[name]
            if self._under_way.get(name) is task:
                del self._under_way[name]


def _retrieve(task: asyncio.Task[Manifest | None]) -> None:
    """Every waiter gets the failure itself; where all have left, it must not be reported as never retrieved."""
    if not task.cancelled():
        task.exception()
