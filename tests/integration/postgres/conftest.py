"""Stores over fresh databases of the session's server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from durable_memory.adapters.postgres import PostgresSettings, PostgresStore
from durable_memory.adapters.runtime import SystemIds
from durable_memory.domain.errors import DomainError

OpenStore = Callable[..., Awaitable[PostgresStore]]


async def answers(store: PostgresStore) -> bool:
    """Whether the store does; it finds a database that comes back by itself, within a moment."""
    try:
        await store.check()
    except DomainError:
        return False
    return True


@pytest.fixture
async def open_store(postgres_database: str) -> AsyncIterator[OpenStore]:
    """Open a store over a DSN, with settings by name. All are closed with the test, before its database goes."""
    async with AsyncExitStack() as stack:

        async def opened(dsn: str, **settings) -> PostgresStore:
            store = PostgresStore(dsn, ids=SystemIds(), settings=PostgresSettings(**settings))
            stack.push_async_callback(store.close)
            await store.open()
            return store

        yield opened


@pytest.fixture
async def store(open_store: OpenStore, postgres_database: str) -> PostgresStore:
    return await open_store(postgres_database)
