"""What PostgreSQL says about the connections of those under test."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from tests.processes.polling import wait_until_async

# Clients alone: the server's own workers come and go in every database, with transactions and locks.
_BUSY = """
SELECT pid, application_name, state, wait_event_type, wait_event, backend_start, xact_start,
       ARRAY(SELECT coalesce(relation::regclass::text, locktype) || ' ' || mode
             FROM pg_locks WHERE pg_locks.pid = activity.pid) AS locks, query
FROM pg_stat_activity AS activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND (xact_start IS NOT NULL OR state IS DISTINCT FROM 'idle'
       OR EXISTS (SELECT FROM pg_locks WHERE pg_locks.pid = activity.pid))
"""
_WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND backend_type = 'client backend'
"""
_CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


async def connections(dsn: str) -> int:
    """How many connections there are beside the one that asks."""
    async with _observer(dsn) as observer:
        return int(await observer.fetchval(_CONNECTIONS))


async def busy(observer: asyncpg.Connection) -> Sequence[asyncpg.Record]:
    """The connections to the observer's database that have a transaction, a statement or a lock, now."""
    return await observer.fetch(_BUSY)


async def waits_for_a_lock(observer: asyncpg.Connection) -> bool:
    """Whether a connection to the observer's database waits for a lock that another has, now."""
    return bool(await observer.fetchval(_WAITING))


async def nothing_is_held(dsn: str) -> None:
    """Return when no connection has a transaction, a statement or a lock."""
    seen: Sequence[asyncpg.Record] = []

    def held() -> str:
        return "no transaction, statement or lock is left:" + "".join(f"\n  {dict(row)}" for row in seen)

    async with _observer(dsn) as observer:

        async def is_quiet() -> bool:
            nonlocal seen
            seen = await busy(observer)
            return not seen

        await wait_until_async(is_quiet, what=held)


@asynccontextmanager
async def _observer(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()
