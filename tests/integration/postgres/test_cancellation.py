"""Calls that are given up leave no transaction, no lock and no connection behind."""

import asyncio
from collections import Counter

import asyncpg
import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeRef
from durable_memory.ports.store import Lock
from tests.integration.postgres.conftest import OpenStore
from tests.integration.postgres.plans import NAMESPACE, admit, corroborate, create, no_op
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import Fate, TcpProxy, Way, when
from tests.processes.sessions import nothing_is_held, waits_for_a_lock


async def test_a_storm_of_cancellations_leaves_no_connection_in_a_transaction(
    open_store: OpenStore, postgres_database: str
):
    store = await open_store(postgres_database, write_connections=4, namespace_connections=2)
    await store.transact(NAMESPACE, create("a"))

    async def one(number: int) -> str:
        kinds = [
            lambda: store.transact(NAMESPACE, create(f"n{number}", key=f"k{number}")),
            lambda: store.transact(NAMESPACE, admit(NodeRef("a", 1), f"e{number}", key=f"k{number}")),
            lambda: store.head(NAMESPACE),
            lambda: store.list_revisions(NAMESPACE, "a", after_revision=0, limit=10),
        ]
        call = asyncio.ensure_future(kinds[number % 4]())
        for _ in range(number % 23):  # a different moment for each
            await asyncio.sleep(0)
        await asyncio.sleep((number % 11) / 1000)
        call.cancel()
        try:
            await call
        except asyncio.CancelledError:
            return "cancelled"
        except DomainError as error:
            return error.reason
        return "done"

    # The first finds no connections, so that it is given up while they are made; the others find them.
    for first in (0, 200, 400):
        answers = Counter(await asyncio.gather(*(one(number) for number in range(first, first + 200))))
        assert answers["cancelled"] > 20, answers
    await nothing_is_held(postgres_database)

    # What was acknowledged or not, the store is whole: every node has its change set, and its head agrees.
    head = await store.head(NAMESPACE)
    records = await store.list_change_sets(NAMESPACE, after_revision=0, limit=1000)
    assert [record.namespace_revision for record in records] == list(range(1, head.revision + 1))
    assert head.chain_digest == records[-1].chain_digest
    # And every connection of the pool can be had.
    await asyncio.gather(*(store.transact(NAMESPACE, no_op(Lock.NODES)) for _ in range(8)))


async def test_cancelling_before_the_commit_leaves_nothing(open_store: OpenStore, postgres_database: str):
    first = await open_store(postgres_database)
    second = await open_store(postgres_database)
    await first.transact(NAMESPACE, create("a"))
    blocker = await asyncpg.connect(postgres_database)
    observer = await asyncpg.connect(postgres_database)
    try:
        transaction = blocker.transaction()
        await transaction.start()
        await blocker.execute("SELECT 1 FROM durable_memory.namespace FOR UPDATE")
        call = asyncio.ensure_future(second.transact(NAMESPACE, corroborate("a", 1, "doc:2", key="k")))
        await wait_until_async(lambda: waits_for_a_lock(observer), what="the call waits for the lock")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        async def waits_no_more() -> bool:
            return not await waits_for_a_lock(observer)

        await wait_until_async(waits_no_more, what="the call waits no more")
        await transaction.rollback()
    finally:
        await blocker.close()
        await observer.close()
    assert (await first.head(NAMESPACE)).revision == 1
    assert await first.find_request(NAMESPACE, "Test", "k") is None


async def test_cancelling_during_the_commit_lets_it_finish(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess
):
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(proxy.dsn(postgres_database))
        committing = asyncio.Event()

        def rule(way: Way, chunk: bytes) -> Fate:
            if way is Way.TO_SERVER and b"COMMIT" in chunk:
                committing.set()
            return Fate.PASS

        proxy.rule = rule
        call = asyncio.ensure_future(store.transact(NAMESPACE, create("a", key="k")))
        await committing.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await store.head(NAMESPACE)).revision == 1


async def test_a_caller_that_gives_up_during_a_commit_without_answer_hears_that_it_is_unknown(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess
):
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(proxy.dsn(postgres_database), commit_grace_seconds=0.1)
        committing = asyncio.Event()

        def rule(way: Way, chunk: bytes) -> Fate:
            if way is not Way.TO_SERVER or b"COMMIT" not in chunk:
                return Fate.PASS
            committing.set()
            return Fate.SWALLOW

        proxy.rule = rule
        call = asyncio.ensure_future(store.transact(NAMESPACE, create("a", key="k")))
        await committing.wait()
        call.cancel()
        with pytest.raises(DomainError) as caught:
            await call
        assert caught.value.reason is Reason.OUTCOME_UNKNOWN


async def test_a_silent_network_is_an_unavailable_dependency_and_holds_nobody_for_ever(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess
):
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(
            proxy.dsn(postgres_database),
            # Enough for a busy machine to open the store in.
            statement_timeout_seconds=4.0,
            silence_timeout_seconds=4.0,
            head_timeout_seconds=4.0,
            connect_timeout_seconds=4.0,
            rollback_timeout_seconds=0.5,
        )
        proxy.rule = when(Way.TO_SERVER, b"", Fate.SWALLOW)
        for call in (store.head(NAMESPACE), store.transact(NAMESPACE, create("a"))):
            with pytest.raises(DomainError) as caught:
                await call
            assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
