"""Commits that take long, for the disk or anything else: nobody takes them for lost, and no more are made meanwhile."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import asyncpg
import pytest

from durable_memory.adapters.postgres import PostgresSettings, stall
from durable_memory.adapters.postgres.connecting import Connector
from durable_memory.adapters.postgres.errors import overloaded
from durable_memory.adapters.postgres.primary import Primary
from durable_memory.adapters.postgres.sql import statement
from durable_memory.adapters.postgres.stall import Stall
from durable_memory.domain.errors import DomainError, Reason
from tests.integration.postgres.conftest import OpenStore
from tests.integration.postgres.plans import NAMESPACE, create
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import Fate, TcpProxy, Way, always, when

# A session that is at its commit and does not wait for a standby, as while the disk is slow: until it is let go. As
# little as then it notices that its client has gone.
_SLOW_DISK = """
CREATE TABLE public.disk (slow boolean);
INSERT INTO public.disk VALUES (true);
ALTER FUNCTION pg_catalog.pg_logical_emit_message(boolean, text, text) RENAME TO emit_at_once;
CREATE FUNCTION durable_memory.pg_logical_emit_message(transactional boolean, prefix text, message text)
RETURNS pg_lsn LANGUAGE plpgsql SET client_connection_check_interval = 0 AS $$
BEGIN
    WHILE (SELECT slow FROM public.disk) LOOP PERFORM pg_sleep(0.01); END LOOP;
    RETURN pg_catalog.emit_at_once(transactional, prefix, message);
END $$
"""
_AT_IT = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND query = $1 AND pid <> pg_backend_pid()
"""
_LAST_LOOK = "SELECT max(query_start) FROM pg_stat_activity WHERE datname = current_database() AND query = $1"


class Server:
    """What somebody who looks at the server sees of a process's commits."""

    def __init__(self, observer: asyncpg.Connection, looker: asyncpg.Connection) -> None:
        self._observer = observer
        self._looker = looker
        self.looks = 0
        self.is_busy = False

    async def have_commits_wait(self) -> None:
        await self._observer.execute(_SLOW_DISK)

    async def let_them_go(self) -> None:
        await self._observer.execute("UPDATE public.disk SET slow = false")

    async def commits(self) -> set[int]:
        """The sessions that are at one."""
        return {row["pid"] for row in await self._observer.fetch(_AT_IT, statement("vouch"))}

    async def is_executing(self, process: int, began: datetime) -> bool:
        self.looks += 1
        if self.is_busy:
            raise overloaded("no database connection is free")
        return bool(await self._looker.fetchval(statement("session_is_executing"), process, began))

    async def looked(self, times: int) -> None:
        already = self.looks
        await wait_until_async(lambda: self.looks >= already + times, what="it is looked for the commit")

    async def last_look(self) -> datetime | None:
        last: datetime | None = await self._observer.fetchval(_LAST_LOOK, statement("session_is_executing"))
        return last


@pytest.fixture
async def server(postgres_database: str) -> AsyncIterator[Server]:
    # The test looks while the stall does, and neither waits for the other.
    observer, looker = await asyncpg.connect(postgres_database), await asyncpg.connect(postgres_database)
    try:
        yield Server(observer, looker)
    finally:
        await observer.close()
        await looker.close()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(stall, "_LAST_PAUSE_SECONDS", 0.1)


@asynccontextmanager
async def _stalled(dsn: str, server: Server) -> AsyncIterator[Stall]:
    settings = PostgresSettings()
    connector = Connector(dsn, settings, Primary(lambda: None), lambda: 1.0)
    stall = Stall(connector, settings, server.is_executing, lambda: 1.0)
    stall.begin()
    try:
        yield stall
    finally:
        await stall.close()
        await server.let_them_go()
        await connector.close()


async def _one_commit(server: Server) -> set[int]:
    async def commits() -> set[int]:
        return await server.commits()

    return await wait_until_async(commits, what="a commit is made")


async def _are_answered(stall: Stall) -> bool:
    try:
        await stall.require_commits()
    except DomainError as error:
        assert error.reason is Reason.DEPENDENCY_UNAVAILABLE  # noqa: PT017 - nothing else may come
        return False
    return True


async def test_a_commit_that_waits_for_something_else_than_a_standby_is_waited_for(
    postgres_database: str, server: Server
):
    await server.have_commits_wait()
    async with _stalled(postgres_database, server) as stall:
        session = await _one_commit(server)
        await server.looked(4)
        assert await server.commits() == session
        assert not await _are_answered(stall)
        await server.let_them_go()
        await wait_until_async(lambda: _are_answered(stall), what="commits are answered")


async def test_a_commit_is_waited_for_while_nobody_can_look(postgres_database: str, server: Server):
    await server.have_commits_wait()
    server.is_busy = True
    async with _stalled(postgres_database, server) as stall:
        session = await _one_commit(server)
        await server.looked(4)
        assert await server.commits() == session
        await server.let_them_go()
        await wait_until_async(lambda: _are_answered(stall), what="commits are answered")


async def test_a_commit_whose_connection_is_lost_is_waited_for_before_the_next_is_made(
    postgres: PostgresProcess, postgres_database: str, server: Server
):
    await server.have_commits_wait()
    async with TcpProxy(postgres.port) as proxy, _stalled(proxy.dsn(postgres_database), server) as stall:
        session = await _one_commit(server)
        proxy.cut()
        await server.looked(4)
        server.is_busy = True
        await server.looked(4)
        assert await server.commits() == session
        server.is_busy = False
        await server.let_them_go()
        await wait_until_async(lambda: _are_answered(stall), what="commits are answered")


async def test_a_commit_that_never_arrived_is_made_again(
    postgres: PostgresProcess, postgres_database: str, server: Server
):
    await server.have_commits_wait()
    await server.let_them_go()
    async with TcpProxy(postgres.port) as proxy:
        proxy.rule = when(Way.TO_SERVER, b"pg_logical_emit_message", Fate.SWALLOW)
        async with _stalled(proxy.dsn(postgres_database), server) as stall:
            await wait_until_async(lambda: proxy.struck > 1, what="another is made")
            proxy.rule = always
            await wait_until_async(lambda: _are_answered(stall), what="commits are answered")


async def test_a_store_waits_for_its_own_slow_commit_and_writes_as_soon_as_that_is_answered(
    open_store: OpenStore, postgres: PostgresProcess, postgres_database: str, server: Server
):
    async with TcpProxy(postgres.port) as proxy:
        store = await open_store(proxy.dsn(postgres_database), commit_timeout_seconds=1.0)
        await server.have_commits_wait()
        proxy.rule = when(Way.TO_SERVER, b"COMMIT", Fate.SWALLOW)
        with pytest.raises(DomainError) as caught:
            await store.transact(NAMESPACE, create("a", key="k"))
        assert caught.value.reason is Reason.OUTCOME_UNKNOWN
        proxy.rule = always
        session = await _one_commit(server)
        seen: set[datetime | None] = set()

        async def looked_often() -> bool:
            seen.add(await server.last_look())
            return len(seen) > 5

        await wait_until_async(looked_often, what="the store looks for its commit")
        assert await server.commits() == session
        with pytest.raises(DomainError) as caught:
            await store.transact(NAMESPACE, create("a", key="k"))
        assert caught.value.reason is Reason.DEPENDENCY_UNAVAILABLE
        await server.let_them_go()

        async def is_written() -> bool:
            try:
                return (await store.transact(NAMESPACE, create("a", key="k"))).head.revision == 1
            except DomainError:
                return False

        await wait_until_async(is_written, what="the write is made")
        await store.close()
