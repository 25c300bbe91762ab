"""Stores over fresh databases of the session's server."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from types import MappingProxyType
from typing import Any

import pytest

from durable_memory.adapters.postgres import PostgresSettings, PostgresStore
from durable_memory.adapters.runtime import SystemIds
from durable_memory.domain.errors import DomainError

OpenStore = Callable[..., Awaitable[PostgresStore]]

PATIENT: Mapping[str, Any] = MappingProxyType(
    {
        "connect_timeout_seconds": 60.0,
        "host_patience_seconds": 60.0,
        "acquire_timeout_seconds": 60.0,
        "lock_timeout_seconds": 60.0,
        "statement_timeout_seconds": 60.0,
        "silence_timeout_seconds": 90.0,
        "head_timeout_seconds": 90.0,
        "idle_in_transaction_timeout_seconds": 60.0,
        "commit_timeout_seconds": 60.0,
        "commit_grace_seconds": 60.0,
        "rollback_timeout_seconds": 60.0,
    }
)
"""Bounds that no answer of a server which is only slow runs into: a test that is about one of them says how long."""

_TURNS = 5_000
"""Of the event loop: many more than a hundred calls need among each other, and over in a moment."""


async def at_once(*calls: Awaitable[Any]) -> list[Any]:
    """What the calls return or raise, in their order. They have to do so without waiting for time or anybody else."""
    answers = asyncio.gather(*calls, return_exceptions=True)
    for _ in range(_TURNS):
        if answers.done():
            return answers.result()
        await asyncio.sleep(0)
    answers.cancel()
    with suppress(asyncio.CancelledError):
        await answers
    raise AssertionError("they wait for something")


async def answers(store: PostgresStore) -> bool:
    """Whether the store does; it finds a database that comes back by itself, within a moment."""
    try:
        await store.check()
    except DomainError:
        return False
    return True


@pytest.fixture
async def open_store(postgres_database: str) -> AsyncIterator[OpenStore]:
    """Open a store over a DSN, patient but for the settings by name. All are closed before their database goes."""
    async with AsyncExitStack() as stack:

        async def opened(dsn: str, **settings) -> PostgresStore:
            store = PostgresStore(dsn, ids=SystemIds(), settings=PostgresSettings(**{**PATIENT, **settings}))
            stack.push_async_callback(store.close)
            await store.open()
            return store

        yield opened


@pytest.fixture
def refusing_port() -> Iterator[int]:
    """A port that refuses connections, and that nobody else can have meanwhile: bound, and not listened on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
async def store(open_store: OpenStore, postgres_database: str) -> PostgresStore:
    return await open_store(postgres_database)
