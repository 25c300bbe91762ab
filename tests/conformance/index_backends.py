"""The places that vector indexes and leases are kept in, each with a way to lose all of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from durable_memory.adapters.memory.leases import MemoryLeaseStore
from durable_memory.adapters.memory.vector_index import MemoryVectorIndex
from durable_memory.adapters.redis import (
    RedisConnection,
    RedisLeaseStore,
    RedisSettings,
    RedisVectorIndex,
    parse_redis_url,
)
from durable_memory.adapters.runtime import SystemClock, SystemIds
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.adapters.sqlite.leases import SqliteLeaseStore
from durable_memory.adapters.sqlite.vector_index import SqliteVectorIndex
from durable_memory.ports.leases import LeaseStore
from durable_memory.ports.vector_index import VectorIndex
from tests.conformance.index_samples import PATIENT
from tests.processes.redis import RedisProcess

GRACE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Opened:
    """What one process has of a backend."""

    index: VectorIndex
    leases: LeaseStore


class IndexBackend(ABC):
    """`opened` is an open index with its leases, over what the backend holds."""

    @abstractmethod
    def opened(self, *, grace_seconds: float = GRACE_SECONDS) -> AbstractAsyncContextManager[Opened]: ...

    @abstractmethod
    async def lose_everything(self) -> None:
        """Forget all, as after the loss of a disk. Nothing is open."""


class MemoryBackend(IndexBackend):
    def __init__(self) -> None:
        self._make()

    def _make(self) -> None:
        self._leases = MemoryLeaseStore(SystemClock())
        self._index = MemoryVectorIndex(self._leases, SystemClock())

    @asynccontextmanager
    async def opened(self, *, grace_seconds: float = GRACE_SECONDS) -> AsyncIterator[Opened]:
        self._index.replaced_grace_seconds = grace_seconds
        await self._index.open()
        yield Opened(self._index, self._leases)
        await self._index.close()

    async def lose_everything(self) -> None:
        self._make()


class SqliteBackend(IndexBackend):
    def __init__(self, path: Path) -> None:
        self._path = path

    @asynccontextmanager
    async def opened(self, *, grace_seconds: float = GRACE_SECONDS) -> AsyncIterator[Opened]:
        store = SqliteStore(self._path, SystemIds())
        await store.open()
        try:
            index = SqliteVectorIndex(store, SystemClock(), replaced_grace_seconds=grace_seconds)
            await index.open()
            yield Opened(index, SqliteLeaseStore(store, SystemClock()))
            await index.close()
        finally:
            await store.close()

    async def lose_everything(self) -> None:
        for path in self._path.parent.glob(f"{self._path.name}*"):
            path.unlink()


class RedisBackend(IndexBackend):
    """`servers` keep what is behind the URL."""

    def __init__(self, url: str, servers: Sequence[RedisProcess]) -> None:
        self._url = url
        self._servers = servers

    @asynccontextmanager
    async def opened(self, *, grace_seconds: float = GRACE_SECONDS) -> AsyncIterator[Opened]:
        settings = RedisSettings(**PATIENT, replaced_grace_seconds=grace_seconds)
        connection = RedisConnection(parse_redis_url(self._url), settings)
        index = RedisVectorIndex(connection)
        await index.open()
        try:
            yield Opened(index, RedisLeaseStore(connection))
        finally:
            await index.close()

    async def lose_everything(self) -> None:
        for server in self._servers:
            with server.client() as client:
                client.flushall()


ALL: Final = ("memory", "sqlite", "redis", "redis-8", "valkey", "sentinel", "cluster")
"""Every adapter; that of Redis on three servers, by way of a sentinel, and on a cluster of three shards."""
