"""The stores that the suite runs against, each with a way to open another one over the same data."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.postgres import PostgresStore
from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.ports.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """`new` makes a closed store over the backend's data, as a process does that has just started."""

    name: str
    new: Callable[[], Store]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        store = self.new()
        await store.open()
        try:
            yield store
        finally:
            await store.close()


def memory_backend() -> Backend:
    """Its data ends with the object, so it takes no part in tests of durability: `DURABLE` leaves it out."""
    store = MemoryStore(SystemIds())
    return Backend(name="memory", new=lambda: store)


def sqlite_backend(path: Path) -> Backend:
    return Backend(name="sqlite", new=lambda: SqliteStore(path, SystemIds()))


def postgres_backend(dsn: str) -> Backend:
    return Backend(name="postgres", new=lambda: PostgresStore(dsn, ids=SystemIds()))


ALL = ("memory", "sqlite", "postgres")
DURABLE = ("sqlite", "postgres")
