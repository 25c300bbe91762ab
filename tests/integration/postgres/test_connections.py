"""The connections of a store: what a call that fails or is given up leaves on them, and while they are made."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from durable_memory.adapters.change_signal import ChangeSignal
from durable_memory.adapters.postgres import PostgresSettings
from durable_memory.adapters.postgres.connecting import Connector
from durable_memory.adapters.postgres.feed import ChangeFeed
from durable_memory.adapters.postgres.pool import ConnectionPool
from durable_memory.adapters.postgres.primary import Primary
from durable_memory.domain.errors import DomainError, Reason
from tests.integration.postgres.conftest import PATIENT
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import Fate, TcpProxy, Way
from tests.processes.sessions import busy

_COUNT_NODES = "SELECT count(*) FROM node_revision WHERE revision > $1"
_NEVER_SECONDS = 1_000.0
"""Longer than any test lasts: whoever waits for that does not come to an end."""
_PARSE_COMPLETE = b"1\0\0\0\4"


@asynccontextmanager
async def _pool(dsn: str, **settings: Any) -> AsyncIterator[ConnectionPool]:
    bounds = PostgresSettings(**{**PATIENT, **settings})
    connector = Connector(dsn, bounds, Primary(lambda: None), lambda: 1.0)
    pool = ConnectionPool(connector, bounds, size=1)
    await pool.open()
    try:
        yield pool
    finally:
        await pool.close()
        await connector.close()


async def _count_nodes(pool: ConnectionPool, statement: str = _COUNT_NODES) -> int:
    async with pool.connection() as connection:
        return int(await connection.fetchval(statement, 0))


async def test_a_statement_given_up_at_any_moment_leaves_no_transaction_and_no_lock(
    postgres_database: str, postgres: PostgresProcess
):
    observer = await asyncpg.connect(postgres_database)
    try:
        async with TcpProxy(postgres.port) as proxy, _pool(proxy.dsn(postgres_database)) as pool:
            await _count_nodes(pool)
            for turns in range(12):
                described = asyncio.Event()
                proxy.rule = _tell(described, Way.TO_CLIENT, _PARSE_COMPLETE)
                # Another statement each time, because the driver has none described that it knows already.
                call = asyncio.ensure_future(_count_nodes(pool, f"{_COUNT_NODES} AND {turns} = {turns}"))
                await described.wait()
                for _ in range(turns):  # some of these are between the description and the execution
                    await asyncio.sleep(0)
                call.cancel()
                await asyncio.wait({call})
                assert not await busy(observer), turns
            assert await _count_nodes(pool) == 0
    finally:
        await observer.close()


async def test_an_argument_that_does_not_fit_leaves_no_transaction_and_no_lock(postgres_database: str):
    observer = await asyncpg.connect(postgres_database)
    try:
        async with _pool(postgres_database) as pool:
            with pytest.raises(asyncpg.DataError):
                async with pool.connection() as connection:
                    await connection.fetch(_COUNT_NODES, 2**63)
            assert not await busy(observer)
            assert await _count_nodes(pool) == 0
    finally:
        await observer.close()


async def test_a_connection_whose_caller_gives_up_is_made_for_the_next(
    postgres_database: str, postgres: PostgresProcess, left_to_the_loop: list[dict[str, Any]]
):
    async with TcpProxy(postgres.port) as proxy, _pool(proxy.dsn(postgres_database)) as pool:
        made = 0

        def count(way: Way, chunk: bytes) -> Fate:
            nonlocal made
            made += way is Way.TO_SERVER and b"durable-memory" in chunk  # the start-up message names the application
            return Fate.PASS

        proxy.rule = count
        for turns in range(30):
            call = asyncio.ensure_future(_count_nodes(pool))
            for _ in range(turns % 10):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait({call})
        assert await _count_nodes(pool) == 0
        assert made == 1
    gc.collect()
    assert not left_to_the_loop


async def test_a_connection_that_cannot_be_made_for_a_caller_that_gave_up_frees_its_place(
    postgres_database: str, postgres: PostgresProcess, left_to_the_loop: list[dict[str, Any]]
):
    async with TcpProxy(postgres.port) as proxy, _pool(proxy.dsn(postgres_database)) as pool:
        begun = asyncio.Event()
        proxy.rule = _tell(begun, Way.TO_SERVER, b"durable-memory", Fate.CUT_BEFORE)
        call = asyncio.ensure_future(_count_nodes(pool))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(DomainError) as caught:
            await _count_nodes(pool)
        assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
        proxy.rule = _tell(begun, Way.TO_SERVER, b"")

        async def counted() -> bool:
            try:
                return await _count_nodes(pool) == 0
            except DomainError:
                return False  # twice in a row in vain: it is known to be away until it is found again

        await wait_until_async(counted, what="the place is free")
    gc.collect()
    assert not left_to_the_loop


async def test_closing_waits_for_a_connection_whose_caller_gave_up_and_ends_it(
    postgres_database: str, postgres: PostgresProcess
):
    async with TcpProxy(postgres.port) as proxy:
        proxy.delay_seconds = 0.02
        async with _pool(proxy.dsn(postgres_database)) as pool:
            await _give_up_while_connecting(pool, proxy)
            proxy.rule = _tell(farewell := asyncio.Event(), Way.TO_SERVER, b"X\0\0\0\4")
        assert farewell.is_set()


async def test_closing_does_not_wait_for_ever_for_a_connection_whose_caller_gave_up(
    postgres_database: str, postgres: PostgresProcess
):
    async with TcpProxy(postgres.port) as proxy:
        settings = PostgresSettings(connect_timeout_seconds=_NEVER_SECONDS, statement_timeout_seconds=0.1)
        connector = Connector(proxy.dsn(postgres_database), settings, Primary(lambda: None), lambda: 1.0)
        pool = ConnectionPool(connector, settings, size=1)
        await pool.open()
        await _give_up_while_connecting(pool, proxy, Fate.SWALLOW)
        await asyncio.wait_for(pool.close(), 60)
        await wait_until_async(lambda: not proxy.connections, what="the connection is ended")


async def test_a_promotion_seen_while_it_is_asked_to_listen_has_the_feed_listen_elsewhere(
    postgres_database: str, postgres: PostgresProcess
):
    async with TcpProxy(postgres.port) as proxy:
        settings = PostgresSettings(connect_timeout_seconds=_NEVER_SECONDS)
        connector = Connector(proxy.dsn(postgres_database), settings, Primary(lambda: None), lambda: 1.0)
        feed = ChangeFeed(connector, settings, ChangeSignal(1.0), lambda: 1.0)
        await feed.start()
        asked: list[Fate] = []

        def hold_the_first(way: Way, chunk: bytes) -> Fate:
            if way is Way.TO_SERVER and b"LISTEN" in chunk:
                asked.append(Fate.PASS if asked else Fate.HOLD)
                return asked[-1]
            return Fate.PASS

        proxy.rule = hold_the_first
        proxy.cut()
        await wait_until_async(lambda: proxy.held, what="it is asked to listen")
        feed.renew()
        await wait_until_async(lambda: len(asked) == 2, what="another is asked")
        await feed.close()
        await connector.close()


async def _give_up_while_connecting(pool: ConnectionPool, proxy: TcpProxy, fate: Fate = Fate.PASS) -> None:
    begun = asyncio.Event()
    proxy.rule = _tell(begun, Way.TO_SERVER, b"durable-memory", fate)
    call = asyncio.ensure_future(_count_nodes(pool))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.fixture
async def left_to_the_loop() -> AsyncIterator[list[dict[str, Any]]]:
    """What the event loop is told because nobody else is: errors of futures and tasks that are never asked for."""
    told: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context))
    yield told
    loop.set_exception_handler(None)


def _tell(event: asyncio.Event, way: Way, needle: bytes, fate: Fate = Fate.PASS) -> Callable[[Way, bytes], Fate]:
    """Set `event` when `needle` passes this way; that chunk has `fate`."""

    def rule(actual: Way, chunk: bytes) -> Fate:
        if actual is not way or needle not in chunk:
            return Fate.PASS
        event.set()
        return fate

    return rule


@pytest.mark.parametrize("option", ["no_such_setting=secret", "work_mem=secret", "max_connections=50"])
async def test_an_option_that_the_server_refuses_is_told_of_the_url_and_is_no_defect(
    postgres_database: str, option: str
):
    with pytest.raises(DomainError, match="an option of the store's URL") as refusal:
        async with _pool(f"{postgres_database}?{option}") as pool:
            await _count_nodes(pool)
    assert refusal.value.reason is Reason.DEPENDENCY_UNAVAILABLE
    assert "secret" not in refusal.value.message
