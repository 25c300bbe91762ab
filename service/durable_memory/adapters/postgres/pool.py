"""Connections to the primary: bounded, checked when they are made, and given back whatever happens.

Session settings are start-up parameters, which survive everything that a connection goes through; nothing else is
ever set for a session, so that giving a connection back needs no round trip to reset it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from durable_memory.adapters.postgres.connecting import Connector, Session
from durable_memory.adapters.postgres.errors import LOST, domain_errors, overloaded
from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.sql import statement
from durable_memory.domain.errors import DomainError, not_serving
from durable_memory.tasks import completed

if TYPE_CHECKING:
    Connection: TypeAlias = PoolConnectionProxy[asyncpg.Record]
else:
    Connection = PoolConnectionProxy  # generic in the stubs alone

_Acquired: TypeAlias = "tuple[asyncpg.Pool[asyncpg.Record], Connection]"

SCHEMA = "durable_memory"

_SERVER = statement("server")


def connection_settings(settings: PostgresSettings) -> dict[str, str]:
    """Start-up parameters of every connection of the store."""

    def milliseconds(seconds: float) -> str:
        return str(max(1, round(seconds * 1000)))

    return {
        "application_name": "durable-memory",
        "search_path": SCHEMA,
        "statement_timeout": milliseconds(settings.statement_timeout_seconds),
        "lock_timeout": milliseconds(settings.lock_timeout_seconds),
        "idle_in_transaction_session_timeout": milliseconds(settings.idle_in_transaction_timeout_seconds),
        # The server notices while it waits for a lock that nobody waits for its answer any more.
        "client_connection_check_interval": "2000",
        "client_min_messages": "warning",
        "default_transaction_isolation": "read committed",
        "synchronous_commit": "on",
        "jit": "off",
        # Namespaces differ by orders of magnitude, so a plan for the average one is wrong for those that matter.
        "plan_cache_mode": "force_custom_plan",
    }


class ConnectionPool:
    """At most `size` connections; whoever comes later waits in order, and not for ever."""

    def __init__(
        self,
        connector: Connector,
        settings: PostgresSettings,
        *,
        size: int,
        silence_timeout_seconds: float | None = None,
        on_silence: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_silence` is called when a connection brings no answer at all, not even to the simplest question.

        Without `silence_timeout_seconds`, that of `settings` counts.
        """
        self._connector = connector
        self._settings = settings
        self._size = size
        self._silence_timeout_seconds = silence_timeout_seconds or settings.silence_timeout_seconds
        self._on_silence = on_silence
        self._slots = asyncio.Semaphore(size)
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._expiring: asyncio.Task[None] | None = None
        self._unclaimed: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Connections are made when they are needed."""
        self._pool = await asyncpg.create_pool(
            min_size=0,
            max_size=self._size,
            connect=self._connect,
            command_timeout=self._silence_timeout_seconds,
            max_cached_statement_lifetime=0,
            server_settings=connection_settings(self._settings),
            reset=_keep,
        )

    async def close(self) -> None:
        """Wait for what is under way, then close every connection."""
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(self._settings.statement_timeout_seconds):
                    # The driver's pool waits for the connections that it has, and not for those it is making.
                    await _over(self._unclaimed)
                    await pool.close()
            except TimeoutError:
                pool.terminate()
                for unclaimed in self._unclaimed:
                    unclaimed.cancel()
                await _over(self._unclaimed)

    def expire(self) -> None:
        """Use no connection again that was made before now."""
        if self._pool is not None:
            self._expiring = asyncio.ensure_future(self._pool.expire_connections())

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for one call.

        Raises: OVERLOADED if none is free in time, DEPENDENCY_UNAVAILABLE, NOT_SERVING.
        """
        if self._slots.locked():  # those that have one may wait for an answer that does not come
            self._connector.require_reachable()
        try:
            async with asyncio.timeout(self._settings.acquire_timeout_seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise overloaded("no database connection is free") from None
        acquiring = asyncio.ensure_future(self._acquire())
        in_order = False
        try:
            _, connection = await asyncio.shield(acquiring)
            yield connection
            in_order = True
        finally:
            giving_back = self._give_back(acquiring, in_order=in_order)
            if acquiring.done():
                await completed(giving_back)
            else:
                # It is made to its end, for the next caller: those in a hurry would have the server begin connections
                # over and over otherwise, and none would ever be there.
                unclaimed = asyncio.ensure_future(giving_back)
                self._unclaimed.add(unclaimed)
                unclaimed.add_done_callback(self._unclaimed.discard)

    async def _acquire(self) -> _Acquired:
        pool = self._require_open()
        try:
            with domain_errors():
                return pool, await pool.acquire()
        except DomainError:
            self._require_open()
            raise

    def _require_open(self) -> asyncpg.Pool[asyncpg.Record]:
        if self._pool is None:
            raise not_serving("closed", "the store is closed")
        return self._pool

    async def _give_back(self, acquiring: asyncio.Task[_Acquired], *, in_order: bool) -> None:
        """Free the slot, and first the connection if there is one."""
        try:
            with suppress(DomainError):  # there is none; the caller has heard why, unless it had gone
                pool, connection = await acquiring
                if not in_order:
                    await self._settle(connection)
                # A connection that cannot be given back in order has been ended by the driver, which is as good.
                with suppress(*LOST):
                    await pool.release(connection, timeout=self._settings.rollback_timeout_seconds)
        finally:
            self._slots.release()

    async def _settle(self, connection: Connection) -> None:
        """End what the server may still be at, or the connection.

        The driver has a statement described before it executes it, and only the latter ends what the server regards
        as one transaction. A call that is given up between the two leaves that open, with its locks, and the driver
        takes the connection for idle. Any statement that is executed ends it.
        """
        try:
            await connection.execute("SELECT", timeout=self._settings.rollback_timeout_seconds)
        except (asyncpg.PostgresError, *LOST) as error:
            self.abandon(connection, silent=isinstance(error, TimeoutError))

    def abandon(self, connection: Connection, *, silent: bool) -> None:
        """End a connection of this pool, whatever the server is at; `silent` if it brought no answer in time."""
        with suppress(asyncpg.InterfaceError):  # it has ended already
            connection.terminate()
        if silent:
            self._on_silence()

    async def _connect(self, *_: Any, **options: Any) -> Session:
        return await self._connector.connect(look=_SERVER, **options)


async def _over(tasks: Collection[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(list(tasks))


async def _keep(connection: Any) -> None:
    """There is nothing to reset."""
