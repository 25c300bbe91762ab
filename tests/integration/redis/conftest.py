"""Connections, indexes and leases on servers of the tests."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from durable_memory.adapters.redis import (
    RedisConnection,
    RedisLeaseStore,
    RedisSettings,
    RedisVectorIndex,
    parse_redis_url,
)
from durable_memory.domain.semantic.generation import Partition
from tests.conformance.index_samples import fresh, partition_of

REDIS_SERVERS = ("redis_server", "newest_redis_server", "valkey_server")


@dataclass(frozen=True, slots=True)
class Opened:
    index: RedisVectorIndex
    leases: RedisLeaseStore
    connection: RedisConnection


OpenIndex = Callable[..., Awaitable[Opened]]


def made(url: str, **settings) -> Opened:
    """An index that is not open yet, with settings by name."""
    connection = RedisConnection(parse_redis_url(url), RedisSettings(**settings))
    return Opened(RedisVectorIndex(connection), RedisLeaseStore(connection), connection)


@pytest.fixture
async def open_index() -> AsyncIterator[OpenIndex]:
    """Open an index on a URL, with settings by name. All are closed with the test."""
    async with AsyncExitStack() as stack:

        async def opened(url: str, **settings) -> Opened:
            opened = made(url, **settings)
            await opened.index.open()
            stack.push_async_callback(opened.index.close)
            return opened

        yield opened


@pytest.fixture
def partition() -> Partition:
    return partition_of(fresh("scope"))
