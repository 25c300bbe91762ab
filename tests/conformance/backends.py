"""The stores that the suite runs against, each with a way to open another one over the same data."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.postgres import PostgresSettings, PostgresStore
from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.ports.store import Store

_PATIENT = PostgresSettings(
    connect_timeout_seconds=60.0,
    acquire_timeout_seconds=60.0,
    lock_timeout_seconds=60.0,
    statement_timeout_seconds=60.0,
    silence_timeout_seconds=90.0,
    head_timeout_seconds=90.0,
    idle_in_transaction_timeout_seconds=60.0,
    commit_timeout_seconds=60.0,
    rollback_timeout_seconds=60.0,
)
"""What a server that is well may take, on a machine that has other things to do: no bound is tested here."""


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
    return Backend(name="postgres", new=lambda: PostgresStore(dsn, ids=SystemIds(), settings=_PATIENT))


ALL = ("memory", "sqlite", "postgres")
DURABLE = ("sqlite", "postgres")
