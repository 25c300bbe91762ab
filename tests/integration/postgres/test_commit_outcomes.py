"""What a caller is told when the connection fails around the commit, and that a repeat settles it."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from structlog.testing import capture_logs

from durable_memory.adapters.runtime import ManualClock
from durable_memory.domain.errors import DomainError, Reason
from tests.integration.postgres.conftest import OpenStore
from tests.integration.postgres.plans import NAMESPACE, create, no_op
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import Fate, TcpProxy, Way, always, when
from tests.unit.app.world import START, CountingIds, opened_store, process

_OF_AN_OPEN_STORE = 3
"""The connections of one that has been written to: for writes, heads, and notifications."""


@pytest.fixture
async def proxy(postgres: PostgresProcess) -> AsyncIterator[TcpProxy]:
    async with TcpProxy(postgres.port) as proxy:
        yield proxy


async def reason_of(call) -> Reason:
    with pytest.raises(DomainError) as caught:
        await call
    return caught.value.reason


async def test_a_connection_cut_after_the_commit_was_sent_is_an_unknown_outcome_that_a_replay_settles(
    open_store: OpenStore, postgres_database: str, proxy: TcpProxy
):
    store = await open_store(proxy.dsn(postgres_database))
    proxy.rule = when(Way.TO_SERVER, b"COMMIT", Fate.CUT_AFTER)
    assert await reason_of(store.transact(NAMESPACE, create("a", key="k"))) is Reason.OUTCOME_UNKNOWN

    proxy.rule = always
    # The server may still be committing; the replay waits for the lock that it holds.
    outcome = await store.transact(NAMESPACE, create("a", key="k"))
    assert outcome.replayed
    assert outcome.head.revision == 1


async def test_a_commit_that_never_arrived_is_unknown_and_the_repeat_is_the_first_attempt(
    open_store: OpenStore, postgres_database: str, proxy: TcpProxy
):
    store = await open_store(proxy.dsn(postgres_database))
    proxy.rule = when(Way.TO_SERVER, b"COMMIT", Fate.CUT_BEFORE)
    assert await reason_of(store.transact(NAMESPACE, create("a", key="k"))) is Reason.OUTCOME_UNKNOWN

    proxy.rule = always
    outcome = await store.transact(NAMESPACE, create("a", key="k"))
    assert not outcome.replayed
    assert outcome.head.revision == 1


async def test_a_replay_whose_own_commit_is_lost_vouches_for_nothing(
    open_store: OpenStore, postgres_database: str, proxy: TcpProxy
):
    store = await open_store(proxy.dsn(postgres_database))
    await store.transact(NAMESPACE, create("a", key="k"))
    proxy.rule = when(Way.TO_SERVER, b"COMMIT", Fate.CUT_AFTER)
    assert await reason_of(store.transact(NAMESPACE, create("a", key="k"))) is Reason.OUTCOME_UNKNOWN


async def test_nor_does_a_repeat_of_an_admitting_recall_or_of_an_import(
    open_store: OpenStore, postgres_database: str, proxy: TcpProxy
):
    elsewhere = process(await opened_store(CountingIds("b")), ManualClock(START), CountingIds("b"))
    await elsewhere.remember("tea, not coffee")
    export = [record async for record in elsewhere.app.transfer.export(elsewhere.call)]
    world = process(await open_store(proxy.dsn(postgres_database)), ManualClock(START), CountingIds("a"))
    app = world.app
    importing, recalling = world.request("ImportNamespace", "k"), world.request("ActiveRecall", "k")
    first = await app.transfer.import_(importing, export)
    await world.open()
    context_id = (await world.begin()).run.context_id
    admitted = await app.recall.active_admitted(recalling, "assistant", context_id, "tea")
    assert [outcome.error for outcome in admitted.admissions] == [None]

    proxy.rule = when(Way.TO_SERVER, b"COMMIT", Fate.CUT_AFTER)
    assert await reason_of(app.transfer.import_(importing, export)) is Reason.OUTCOME_UNKNOWN
    repeat = app.recall.active_admitted(recalling, "assistant", context_id, "tea")
    assert await reason_of(repeat) is Reason.OUTCOME_UNKNOWN

    proxy.rule = always
    assert await app.transfer.import_(importing, export) == first
    assert await app.recall.active_admitted(recalling, "assistant", context_id, "tea") == admitted
    await elsewhere.app.close()
    await app.close()


async def test_a_commit_without_an_answer_is_given_up_and_its_connection_not_used_again(
    open_store: OpenStore, postgres_database: str, proxy: TcpProxy
):
    store = await open_store(proxy.dsn(postgres_database), commit_timeout_seconds=1.0, write_connections=1)
    proxy.rule = when(Way.TO_SERVER, b"COMMIT", Fate.SWALLOW)
    assert await reason_of(store.transact(NAMESPACE, create("a", key="k"))) is Reason.OUTCOME_UNKNOWN

    proxy.rule = always

    async def is_written() -> bool:
        try:
            outcome = await store.transact(NAMESPACE, create("a", key="k"))
        except DomainError as error:
            # Until commits are known to be answered; or this one took long as well.
            assert error.reason in (Reason.DEPENDENCY_UNAVAILABLE, Reason.OUTCOME_UNKNOWN)  # noqa: PT017
            return False
        return outcome.head.revision == 1

    # With the swallowed connection the server still has the lock until it notices that its client is gone.
    await wait_until_async(is_written, what="the repeat is answered on another connection")


async def test_a_commit_that_is_given_up_during_the_close_starts_nothing_and_one_after_the_next_open_does(
    open_store: OpenStore, postgres_database: str, proxy: TcpProxy
):
    store = await open_store(proxy.dsn(postgres_database), commit_timeout_seconds=0.5)
    for closes in (True, False):
        proxy.rule = when(Way.TO_SERVER, b"BEGIN", Fate.HOLD)
        with capture_logs() as logs:
            writing = asyncio.ensure_future(reason_of(store.transact(NAMESPACE, create("a", key="k"))))
            await wait_until_async(lambda: proxy.held, what="the write has begun")
            proxy.rule = when(Way.TO_SERVER, b"COMMIT", Fate.SWALLOW)
            if closes:
                await wait_until_async(lambda: proxy.connections == _OF_AN_OPEN_STORE, what="all are there")
                closing = asyncio.ensure_future(store.close())
                # That of notifications ends first, and before it waits for the write all else has been told as well.
                await wait_until_async(lambda: proxy.connections < _OF_AN_OPEN_STORE, what="the close has begun")
            proxy.held[0].let_go()
            assert await writing is Reason.OUTCOME_UNKNOWN
            if closes:
                await closing
            # Whoever would ask for commits to be answered finds nobody, and does not end.
            proxy.refuse()
        assert ("commits_stalled" in [log["event"] for log in logs]) is not closes
        proxy.mend()
        if closes:
            await store.open()
    await store.close()


async def test_a_connection_cut_before_the_commit_leaves_nothing_and_the_call_is_made_again(
    open_store: OpenStore, postgres_database: str, proxy: TcpProxy
):
    store = await open_store(proxy.dsn(postgres_database))
    cuts = iter([Fate.CUT_BEFORE])

    def rule(way: Way, chunk: bytes) -> Fate:
        if (way is Way.TO_SERVER and b"write_change" in chunk) or b"INSERT INTO change_set" in chunk:
            return next(cuts, Fate.PASS)
        return Fate.PASS

    proxy.rule = rule
    outcome = await store.transact(NAMESPACE, create("a", key="k"))
    assert proxy.struck == 1
    assert not outcome.replayed
    assert outcome.head.revision == 1


async def test_a_connection_that_is_cut_every_time_before_the_commit_is_an_unavailable_dependency(
    open_store: OpenStore, postgres_database: str, proxy: TcpProxy
):
    store = await open_store(proxy.dsn(postgres_database))
    proxy.rule = when(Way.TO_SERVER, b"BEGIN", Fate.CUT_BEFORE)
    assert await reason_of(store.transact(NAMESPACE, create("a", key="k"))) is Reason.DEPENDENCY_UNAVAILABLE
    proxy.rule = always
    assert (await store.head(NAMESPACE)).revision == 0


async def test_a_cancelled_wait_for_the_standby_counts_as_unknown(
    open_store: OpenStore, postgres_database: str, postgres: PostgresProcess
):
    store = await open_store(postgres_database)
    await store.transact(NAMESPACE, create("first", key="k0"))
    administrator = await asyncpg.connect(postgres.dsn())
    try:
        await _have_commits_wait(administrator, postgres.dsn())
        writing = asyncio.ensure_future(reason_of(store.transact(NAMESPACE, create("a", key="k"))))
        waiting = await wait_until_async(lambda: _waiting_for_standby(administrator), what="a commit waits")
        await administrator.fetchval("SELECT pg_cancel_backend($1)", waiting)
        assert await writing is Reason.OUTCOME_UNKNOWN

        # A repeat must not say that the change is safe while no standby has it: it waits as well.
        for plan in (create("a", key="k"), no_op()):
            repeating = asyncio.ensure_future(reason_of(store.transact(NAMESPACE, plan)))
            waiting = await wait_until_async(lambda: _waiting_for_standby(administrator), what="a repeat waits")
            await administrator.fetchval("SELECT pg_cancel_backend($1)", waiting)
            assert await repeating is Reason.OUTCOME_UNKNOWN
    finally:
        await _set_standbys(administrator, "''")
        await administrator.close()
    assert (await store.transact(NAMESPACE, create("a", key="k"))).replayed


async def _have_commits_wait(administrator: asyncpg.Connection, dsn: str) -> None:
    """Have every commit of the server wait for a standby that there is not.

    That a session shows the new setting proves nothing: commits go by what the checkpointer has taken over, and that
    may be busy. So some are made until one waits.
    """
    await _set_standbys(administrator, "'nobody'")
    writer = await asyncpg.connect(dsn)
    pid = writer.get_server_pid()

    async def is_waiting() -> bool:
        waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep'"
        return bool(await administrator.fetchval(waits, pid))

    async def a_commit_waits() -> bool:
        writing = asyncio.ensure_future(writer.execute("SELECT pg_logical_emit_message(true, 'test', '')"))

        async def waits_or_is_over() -> bool:
            return writing.done() or await is_waiting()

        await wait_until_async(waits_or_is_over, what="a commit waits or is over")
        if waits := not writing.done():
            await administrator.fetchval("SELECT pg_cancel_backend($1)", pid)
        await writing
        return waits

    try:
        await wait_until_async(a_commit_waits, what="commits wait")
    finally:
        await writer.close()


async def _set_standbys(connection: asyncpg.Connection, names: str) -> None:
    await connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = {names}")
    await connection.execute("SELECT pg_reload_conf()")
    expected = names.strip("'")

    async def is_set():
        return await connection.fetchval("SHOW synchronous_standby_names") == expected

    await wait_until_async(is_set, what="the setting is in force")


async def _waiting_for_standby(connection: asyncpg.Connection):
    return await connection.fetchval(
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'durable-memory'"
    )
