"""Servers that die, come back, or are not the primary."""

import asyncio
import itertools

import asyncpg
import pytest

from durable_memory.adapters.postgres import feed
from durable_memory.adapters.postgres.migrations import migrate
from durable_memory.domain.errors import DomainError, Reason
from tests.integration.postgres.conftest import OpenStore, answers
from tests.integration.postgres.plans import NAMESPACE, create
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess

_NEVER_SECONDS = 1_000.0
"""Longer than any test lasts."""


async def test_a_killed_server_loses_nothing_acknowledged_and_the_store_recovers_by_itself(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess
):
    store = await open_store(postgres_database)
    acknowledged: list[str] = []
    unknown: list[str] = []

    async def write(prefix: str) -> None:
        for number in itertools.count():
            name = f"{prefix}-{number}"
            try:
                await store.transact(NAMESPACE, create(name, key=name))
            except DomainError as error:
                if error.reason is Reason.OUTCOME_UNKNOWN:
                    unknown.append(name)
                else:
                    assert error.reason is Reason.DEPENDENCY_UNAVAILABLE  # noqa: PT017 - definite, and the end
                return
            acknowledged.append(name)

    writers = [asyncio.ensure_future(write(str(number))) for number in range(4)]
    waiter = asyncio.ensure_future(store.wait_for_change(NAMESPACE, 1_000_000))
    await wait_until_async(lambda: len(acknowledged) > 20, what="some writes")
    await asyncio.to_thread(postgres.kill9)
    await asyncio.gather(*writers)
    with pytest.raises(DomainError) as caught:
        await store.head(NAMESPACE)
    assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
    await asyncio.wait_for(waiter, 60)

    await asyncio.to_thread(postgres.restart)
    await wait_until_async(lambda: answers(store), what="the server is found again")
    nodes = await store.current_nodes(NAMESPACE, [*acknowledged, *unknown])
    assert set(acknowledged) <= set(nodes)
    head = await store.head(NAMESPACE)
    # Every unknown one is there or not, and a repeat finds out.
    for name in unknown:
        outcome = await store.transact(NAMESPACE, create(name, key=name))
        assert outcome.replayed == (name in nodes)
    assert (await store.head(NAMESPACE)).revision == head.revision + sum(name not in nodes for name in unknown)


async def test_a_waiter_in_another_process_wakes_before_the_poll(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database, change_poll_seconds=_NEVER_SECONDS) for _ in range(2)]
    for writer, waiting in (stores, stores[::-1]):
        revision = (await waiting.head(NAMESPACE)).revision
        waiter = asyncio.ensure_future(waiting.wait_for_change(NAMESPACE, revision))
        await waiting.check()
        await writer.transact(NAMESPACE, create(f"n{revision}"))
        await asyncio.wait_for(waiter, 60)


async def test_the_feed_comes_back_after_its_connection_was_lost(
    open_store: OpenStore, postgres_database: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(feed, "_SILENCE_SECONDS", _NEVER_SECONDS)
    stores = [await open_store(postgres_database, change_poll_seconds=_NEVER_SECONDS) for _ in range(2)]
    observer = await asyncpg.connect(postgres_database)

    async def feeds():
        # A connection's last statement: the feeds' is LISTEN, until they send.
        return await observer.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"
        )

    try:
        waiter = asyncio.ensure_future(stores[1].wait_for_change(NAMESPACE, 0))
        assert await feeds() == 2
        await observer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN%' AND datname = current_database()"
        )
        # Coming back, it wakes everybody: what was missed meanwhile is not known.
        await asyncio.wait_for(waiter, 60)

        async def both_listen():
            return await feeds() == 2

        await wait_until_async(both_listen, what="both listen again")
        waiter = asyncio.ensure_future(stores[1].wait_for_change(NAMESPACE, 0))
        await stores[1].check()
        await stores[0].transact(NAMESPACE, create("a"))
        await asyncio.wait_for(waiter, 60)
    finally:
        await observer.close()


async def test_a_wait_that_nobody_ends_is_over_after_the_poll_time(open_store: OpenStore, postgres_database: str):
    store = await open_store(postgres_database, change_poll_seconds=0.05)
    await asyncio.wait_for(store.wait_for_change(NAMESPACE, 0), 60)


async def test_a_standby_is_refused_until_it_is_promoted(open_store: OpenStore):
    with PostgresProcess() as server:
        dsn = await server.create_database("durable")
        await migrate(dsn)
        server.stop()
        server.become_standby()
        server.start()
        with pytest.raises(DomainError) as caught:
            await open_store(dsn)
        assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE

        administrator = await asyncpg.connect(dsn)
        assert await administrator.fetchval("SELECT pg_promote()")
        await administrator.close()
        store = await open_store(dsn)
        assert (await store.transact(NAMESPACE, create("a"))).head == await store.head(NAMESPACE)
        await store.close()
