"""One write transaction on one connection: what is known of its outcome, and that nothing of it is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import structlog

from durable_memory.adapters.postgres.errors import CONTENDED, LOST
from durable_memory.adapters.postgres.pool import Connection, ConnectionPool
from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.sql import statement
from durable_memory.adapters.postgres.stall import Stall
from durable_memory.domain.errors import DomainError, outcome_unknown
from durable_memory.tasks import completed

_log = structlog.stdlib.get_logger(__name__)

_VOUCH = statement("vouch")


class WriteTransaction:
    """READ COMMITTED: each statement sees what was committed before it began, so locks come before reads."""

    def __init__(self, pool: ConnectionPool, connection: Connection, stall: Stall, settings: PostgresSettings) -> None:
        self._pool = pool
        self._connection = connection
        self._settings = settings
        self._stall = stall
        self._over = False
        self._warned = False

    async def fetch(self, name: str, *arguments: Any) -> Sequence[asyncpg.Record]:
        return await self._connection.fetch(statement(name), *arguments)

    async def fetch_row(self, name: str, *arguments: Any) -> asyncpg.Record | None:
        return await self._connection.fetchrow(statement(name), *arguments)

    async def execute(self, name: str, *arguments: Any) -> None:
        await self._connection.execute(statement(name), *arguments)

    async def begin(self) -> None:
        self._connection.add_log_listener(self._on_message)
        await self._connection.execute("BEGIN")

    async def vouch(self) -> None:
        """Make the commit wait for the standby although nothing is written.

        An answer that repeats or finds what another transaction committed may be ahead of the standby otherwise.
        """
        await self._connection.execute(_VOUCH)

    async def commit(self) -> None:
        """Commit, and find out whether that happened.

        A caller that goes away does not stop it; the cancellation is let through when the outcome is known. The
        connection is ended if the answer does not come in time.

        Raises: OUTCOME_UNKNOWN; what the server says if it rolled back instead.
        """
        self._warned = False
        commit = asyncio.ensure_future(self._connection.execute("COMMIT", timeout=None))
        cancelled: asyncio.CancelledError | None = None
        try:
            await asyncio.wait({commit}, timeout=self._settings.commit_timeout_seconds)
        except asyncio.CancelledError as error:
            cancelled = error
            await self._grace(commit)
        if not commit.done():
            self._abandon()
            self._stall.begin()  # which finds out whether it is the server or this connection
            await completed(_ended(commit))
            raise _unknown("silence")
        try:
            tag = commit.result()
        except (*CONTENDED, asyncpg.IntegrityConstraintViolationError):  # said by the server in place of committing
            if cancelled is not None:
                raise cancelled from None  # nobody is there for whom it could be tried again
            raise
        except (asyncpg.PostgresError, asyncio.CancelledError, *LOST) as error:
            self._abandon()
            raise _unknown(type(error).__name__) from error
        if self._warned:
            # For example that the wait for the standby was cancelled: committed here, and perhaps only here.
            self._abandon()
            raise _unknown("warning")
        if tag != "COMMIT":
            raise RuntimeError(f"COMMIT was answered by {tag}")
        self._over = True
        if cancelled is not None:
            raise cancelled

    async def _grace(self, commit: asyncio.Future[str]) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.commit_grace_seconds
        while not commit.done() and (left := deadline - loop.time()) > 0:
            try:
                await asyncio.wait({commit}, timeout=left)
            except asyncio.CancelledError:
                continue  # cancelled already; saying it again changes nothing

    async def end(self) -> None:
        """Roll back unless it was committed; a connection that cannot do that in time is ended."""
        try:
            if not self._over:
                await self._connection.execute("ROLLBACK", timeout=self._settings.rollback_timeout_seconds)
            self._connection.remove_log_listener(self._on_message)
        except (asyncpg.PostgresError, *LOST) as error:
            self._abandon(silent=isinstance(error, TimeoutError))

    def _abandon(self, *, silent: bool = False) -> None:
        """End the connection; the server rolls back what it has not committed."""
        self._pool.abandon(self._connection, silent=silent)

    def _on_message(self, connection: Any, message: asyncpg.PostgresLogMessage) -> None:
        self._warned = True


def _unknown(cause: str) -> DomainError:
    _log.warning("commit_outcome_unknown", cause=cause)
    return outcome_unknown()


async def _ended(commit: asyncio.Future[str]) -> None:
    await asyncio.wait({commit})
    if not commit.cancelled():
        commit.exception()  # seen: it is why the outcome is unknown


@asynccontextmanager
async def write_transaction(
    pool: ConnectionPool, stall: Stall, settings: PostgresSettings
) -> AsyncIterator[WriteTransaction]:
    """A transaction that is over when the block is left: committed by the block, or rolled back.

    Raises: DEPENDENCY_UNAVAILABLE, also while the database finishes no commit; as `ConnectionPool.connection`.
    """
    await stall.require_commits()
    async with pool.connection() as connection:
        await stall.require_commits()  # a connection may be long in coming while those that have one find out
        transaction = WriteTransaction(pool, connection, stall, settings)
        try:
            await transaction.begin()
            yield transaction
        finally:
            await completed(transaction.end())
