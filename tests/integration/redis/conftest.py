"""Connections, indexes and leases on servers of the tests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import pytest

from durable_memory.adapters.redis import (
    RedisConnection,
    RedisLeaseStore,
    RedisSettings,
    RedisVectorIndex,
    parse_redis_url,
)
from durable_memory.domain.errors import DomainError
from durable_memory.domain.semantic.generation import Partition
from tests.conformance.index_samples import PATIENT, fresh, partition_of
from tests.processes.polling import wait_until_async
from tests.processes.redis import RedisProcess

REDIS_SERVERS = ("redis_server", "newest_redis_server", "valkey_server")

NEVER_SECONDS: Final = 3_600.0
"""A bound that no test lives to see the end of: what ends all the same was ended by something else."""

_TURNS: Final = 50


@dataclass(frozen=True, slots=True)
class Opened:
    index: RedisVectorIndex
    leases: RedisLeaseStore
    connection: RedisConnection


OpenIndex = Callable[..., Awaitable[Opened]]


def made(url: str, **settings) -> Opened:
    """An index that is not open yet, with settings by name. A test of a bound states it."""
    connection = RedisConnection(parse_redis_url(url), RedisSettings(**{**PATIENT, **settings}))
    return Opened(RedisVectorIndex(connection), RedisLeaseStore(connection), connection)


async def at_once(call: Coroutine[Any, Any, Any]) -> DomainError:
    """The refusal of a call that waits neither for a server nor for time: some turns of the event loop are enough."""
    asking = asyncio.create_task(call)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    if not asking.done():
        asking.cancel()
        pytest.fail("the call waits for something")
    with pytest.raises(DomainError) as refused:
        await asking
    return refused.value


async def left_by_all(server: RedisProcess) -> None:
    """Wait until the server has no connection of an index any more."""

    def nobody_is_there() -> bool:
        with server.client() as client:
            return "durable-memory" not in [item["name"] for item in client.client_list()]

    await wait_until_async(lambda: asyncio.to_thread(nobody_is_there), what="every connection is closed")


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
