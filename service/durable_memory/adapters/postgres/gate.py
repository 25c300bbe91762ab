"""A queue per namespace before the connection pool, so that a busy one cannot hold every connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from durable_memory.adapters.postgres.errors import overloaded
from durable_memory.ports.store import Lock


class _Lane:
    def __init__(self, width: int) -> None:
        self.slots = asyncio.Semaphore(width)
        self.inside = 0


class NamespaceGate:
    """First come, first served. NAMESPACE plans, which are serial in the database anyway, enter one at a time."""

    def __init__(self, *, nodes_width: int, queue: int) -> None:
        self._widths = {Lock.NAMESPACE: 1, Lock.NODES: nodes_width}
        self._queue = queue
        self._lanes: dict[tuple[bytes, Lock], _Lane] = {}

    @asynccontextmanager
    async def enter(self, key: bytes, lock: Lock) -> AsyncIterator[None]:
        """Wait for this namespace's turn.

        Raises: OVERLOADED if too many wait already.
        """
        lane = self._lanes.get((key, lock))
        if lane is None:
            lane = self._lanes[key, lock] = _Lane(self._widths[lock])
        if lane.inside >= self._widths[lock] + self._queue:
            raise overloaded("too many calls wait for this namespace")
        lane.inside += 1
        try:
            async with lane.slots:
                yield
        finally:
            lane.inside -= 1
            if not lane.inside:
                del self._lanes[key, lock]
