"""A PostgreSQL primary and a synchronous standby, each behind a proxy of its own, that can swap their roles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

import asyncpg

from durable_memory.adapters.postgres.migrations import migrate
from tests.processes.polling import wait_until_async
from tests.processes.postgres import SUPERUSER, PostgresProcess
from tests.processes.proxy import TcpProxy
from tests.qualification.cluster.to_the_end import in_thread_to_the_end

DATABASE = "memory"

_PROMOTE_SECONDS = 60
_CALL_SECONDS = 60.0
_SETTINGS = {
    "wal_level": "replica",
    "hot_standby": "on",
    "synchronous_commit": "on",
    # What pg_rewind needs, should somebody want to look at a data folder with it.
    "wal_log_hints": "on",
    # A standby that was away for a while finds what it missed.
    "wal_keep_size": "512MB",
    # Peers that fall silent are noticed by both sides after three seconds.
    "wal_sender_timeout": "3s",
    "wal_receiver_timeout": "3s",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "200ms",
}
_IN_SYNC = """
SELECT EXISTS (SELECT FROM pg_stat_replication
               WHERE application_name = $1 AND state = 'streaming' AND sync_state = 'sync')
"""
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
_SYNCHRONOUS = "synchronous_standby_names"


class PostgresNode(PostgresProcess):
    """One server of the pair. It stays the same whatever its role is."""

    def __init__(self, name: str) -> None:
        super().__init__(settings=_SETTINGS)
        self.name = name
        self.proxy = TcpProxy(self.port)
        """Where the service connects."""
        self.replication = TcpProxy(self.port)
        """Where the other node connects when it is the standby of this one."""


class PostgresPair:
    """Two servers, a database `memory` with the current schema, and what may happen to them.

    Open it as an asynchronous context manager: its proxies live on the event loop. Every server waits for its disk,
    and the primary for the standby as well, until `without_standby`. Nothing here is for several tasks at a time.
    """

    def __init__(self) -> None:
        self.nodes = (PostgresNode("postgres-1"), PostgresNode("postgres-2"))
        self._primary, self._standby = self.nodes
        self._synchronous = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for node in self.nodes:
                stack.push_async_callback(in_thread_to_the_end, _discard, node)
                await stack.enter_async_context(node.proxy)
                await stack.enter_async_context(node.replication)
            await in_thread_to_the_end(self._primary.start)
            # What nobody relies on yet need not wait for the disk, which others may keep busy.
            await self._set("fsync", "off")
            await self._primary.create_database(DATABASE)
            await migrate(self.direct_dsn())
            await self._set("fsync", "on")
            await self._build_standby()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def primary(self) -> PostgresNode:
        """The node that takes writes, or did until it was killed."""
        return self._primary

    @property
    def standby(self) -> PostgresNode:
        """The other one. After a promotion that is the old primary, which is no standby before `rejoin`."""
        return self._standby

    @property
    def dsn(self) -> str:
        """Of both servers by way of their proxies, for the service. It is the same for the life of the pair."""
        hosts = ",".join(f"127.0.0.1:{node.proxy.port}" for node in self.nodes)
        return f"postgresql://{SUPERUSER}@{hosts}/{DATABASE}"

    def direct_dsn(self) -> str:
        """Of the present primary, past its proxy, for observers."""
        return self._primary.dsn(DATABASE)

    @property
    def waits_for_standby(self) -> bool:
        """Whether everything acknowledged is on the standby too: a promotion loses nothing."""
        return self._synchronous

    async def in_sync(self) -> bool:
        """Whether the primary answers and the standby streams from it synchronously."""
        try:
            async with _connected(self.direct_dsn()) as primary:
                return bool(await primary.fetchval(_IN_SYNC, self._standby.name))
        except (OSError, TimeoutError, asyncpg.PostgresError):
            return False

    async def wait_in_sync(self, timeout: float = 120.0) -> None:
        """Wait until the standby has everything and commits wait for it; `timeout` is in seconds."""
        await wait_until_async(self.in_sync, timeout, what=f"{self._standby.name} is in sync")

    async def kill9_primary(self) -> None:
        """Kill the primary and all its processes with SIGKILL; return when they are gone."""
        await in_thread_to_the_end(self._primary.kill9)

    async def recover_primary(self) -> None:
        """Start the killed primary again; return when its crash recovery is over and it takes connections."""
        await in_thread_to_the_end(self._primary.start)

    async def kill9_standby(self) -> None:
        """Kill the standby. Commits wait until it is back, or until `without_standby`."""
        await in_thread_to_the_end(self._standby.kill9)

    async def restart_standby(self) -> None:
        """Start the killed standby again; return when it is in sync, or streams if commits do not wait for it."""
        await in_thread_to_the_end(self._standby.start)
        if self._synchronous:
            await self.wait_in_sync()

    async def waiting_commits(self) -> int:
        """How many commits are on the primary, and wait for the standby."""
        async with _connected(self.direct_dsn()) as primary:
            return int(await primary.fetchval(_WAITING))

    async def without_standby(self) -> None:
        """What an operator does when the standby is away: commits wait for the primary's disk alone.

        Those that wait for the standby are acknowledged. A promotion would lose what is acknowledged from now on.
        """
        self._synchronous = False
        await self._set(_SYNCHRONOUS, "")

    async def with_standby(self) -> None:
        """Let commits wait for the standby again; return when it has everything that was acknowledged before."""
        await self._set(_SYNCHRONOUS, "*")
        await self.wait_in_sync()
        self._synchronous = True

    def cut_replication(self, *, silently: bool = True) -> None:
        """Let nothing pass between the two. Commits wait, or what has been committed is on the primary alone.

        Silently, both sides need three seconds to notice; otherwise they are told.
        """
        line = self._primary.replication
        if silently:
            line.go_silent()
        else:
            line.refuse()

    def mend_replication(self) -> None:
        """Let the standby connect again; `wait_in_sync` waits until it has caught up."""
        self._primary.replication.mend()

    async def promote(self) -> None:
        """Kill the primary unless it is dead, and make the standby the primary; return when it takes writes.

        It commits without a standby, until `rejoin`. Raises: RuntimeError if the standby is not there or may lack
        something that was acknowledged: losing that would be this harness's doing.
        """
        if not self._synchronous or not self._standby.is_running:
            raise RuntimeError("there is no standby that has everything")
        if self._primary.is_running:
            await self.kill9_primary()
        async with _connected(self._standby.dsn(DATABASE), timeout=_PROMOTE_SECONDS) as standby:
            if not await standby.fetchval("SELECT pg_promote(true, $1)", _PROMOTE_SECONDS):
                raise RuntimeError(f"{self._standby.name} was not promoted in {_PROMOTE_SECONDS} s")
            # A transaction with an id is a write, which is committed when this returns.
            await standby.fetchval("SELECT pg_current_xact_id()")
        self._primary, self._standby = self._standby, self._primary
        self._synchronous = False

    async def revive_old_primary(self, *, takes_writes: bool = True) -> None:
        """After a promotion, start the killed primary as it was: reachable, read-write, on the old timeline.

        With `takes_writes` it acknowledges them by itself; otherwise it waits for its standby, and never does.
        `rejoin` ends it.
        """
        self._standby.keep_setting(_SYNCHRONOUS, "" if takes_writes else "*")
        await in_thread_to_the_end(self._standby.start)

    async def rejoin(self) -> None:
        """Make a new standby of the present primary out of the other node, whatever that is; return when in sync."""
        if self._standby.is_running:
            await in_thread_to_the_end(self._standby.kill9)
        await self._build_standby()

    async def _build_standby(self) -> None:
        primary, standby = self._primary, self._standby
        primary.replication.mend()
        await in_thread_to_the_end(standby.copy_from, primary.port)
        upstream = f"host=127.0.0.1 port={primary.replication.port} user={SUPERUSER} application_name={standby.name}"
        standby.keep_setting("primary_conninfo", upstream)
        # For the time after its promotion, when it is alone.
        standby.keep_setting(_SYNCHRONOUS, "")
        standby.become_standby()
        await in_thread_to_the_end(standby.start)
        await self.with_standby()

    async def _set(self, name: str, value: str) -> None:
        async with _connected(self._primary.dsn()) as primary:
            await primary.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            await primary.execute("SELECT pg_reload_conf()")


@asynccontextmanager
async def _connected(dsn: str, *, timeout: float = _CALL_SECONDS) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn, timeout=timeout, command_timeout=timeout)
    try:
        yield connection
    finally:
        connection.terminate()


def _discard(node: PostgresNode) -> None:
    # Nobody needs its data any more: an orderly end would wait for a standby that may be cut off.
    if node.is_running:
        node.kill9()
    node.close()
