"""What PostgreSQL says about the connections of the servers under test."""

from __future__ import annotations

import asyncpg

from tests.processes.polling import wait_until_async

_BUSY = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND (xact_start IS NOT NULL OR state <> 'idle')
"""
_LOCKS = """
SELECT count(*) FROM pg_locks
WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()
"""
_CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


async def connections(dsn: str) -> int:
    """How many connections there are beside the one that asks."""
    return await _ask(dsn, _CONNECTIONS)


async def nothing_is_held(dsn: str, timeout: float = 5.0) -> None:
    """Return when no connection has a transaction, a statement or a lock."""

    async def is_quiet() -> bool:
        return not await _ask(dsn, _BUSY) and not await _ask(dsn, _LOCKS)

    await wait_until_async(is_quiet, timeout, what="no transaction and no lock is left")


async def _ask(dsn: str, question: str) -> int:
    connection = await asyncpg.connect(dsn)
    try:
        return int(await connection.fetchval(question))
    finally:
        await connection.close()
