"""Many processes write to a namespace for the first time, all at the same moment: it gets one row."""

import asyncio

import asyncpg

from durable_memory.adapters.postgres.sql import statement
from durable_memory.domain.change_set import CHAIN_START
from durable_memory.domain.namespace import Namespace

_PROCESSES = 16
# The moment at which two of them can be in each other's way is short: it was met in one namespace of twenty.
_NAMESPACES = 200


async def test_first_writers_of_a_namespace_at_the_same_moment_make_one_row_of_it(postgres_database: str):
    settings = {"search_path": "durable_memory"}
    connections = [await asyncpg.connect(postgres_database, server_settings=settings) for _ in range(_PROCESSES)]
    try:
        for number in range(_NAMESPACES):
            namespace = Namespace("acme", "user-1", f"scope-{number}")
            await asyncio.gather(*(_add(connection, namespace) for connection in connections))
        assert await connections[0].fetchval("SELECT count(*) FROM namespace") == _NAMESPACES
    finally:
        await asyncio.gather(*(connection.close() for connection in connections))


async def _add(connection: asyncpg.Connection, namespace: Namespace) -> None:
    parts = namespace.tenant_id, namespace.principal_id, namespace.scope_id
    async with connection.transaction():
        await connection.execute(statement("add_namespace"), namespace.key, *parts, "history-1", CHAIN_START)
