"""A database that a service of schema version 1 wrote is brought forward with everything in it.

`version_1.sql` is what such a service wrote: nodes with revisions and relations, evidence, requests, a session without
and two with a semantic generation (one of them closed), a run with contexts, and an event.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from durable_memory.adapters.postgres import migrations as module
from durable_memory.adapters.postgres.migrations import MIGRATIONS, migrate
from durable_memory.adapters.postgres.pool import SCHEMA
from durable_memory.adapters.postgres.semantic_records import PostgresSemanticRecords
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.semantic_records import DueRefresh
from tests.conformance.samples import NOW, apply, create, everything
from tests.conformance.semantic_records.samples import generation, receipt

NAMESPACE = Namespace("acme", "user-1", "assistant")
BOUND = generation("version-1").authority_digest


@pytest.fixture
async def old(postgres_empty_database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The database as version 1 left it."""
    with monkeypatch.context() as version_1:
        version_1.setattr(module, "MIGRATIONS", MIGRATIONS[:1])
        version_1.setattr(module, "CURRENT_VERSION", 1)
        await migrate(postgres_empty_database)
    connection = await connect(postgres_empty_database)
    try:
        await connection.execute((Path(__file__).parent / "version_1.sql").read_text())
    finally:
        await connection.close()
    return postgres_empty_database


@pytest.fixture
async def connection(old: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(old)
    yield connection
    await connection.close()


async def connect(dsn: str) -> asyncpg.Connection:
    return await asyncpg.connect(dsn, server_settings={"search_path": SCHEMA})


async def columns_of(connection: asyncpg.Connection) -> dict[str, str]:
    """The columns of all tables, as a list for SQL."""
    rows = await connection.fetch(
        "SELECT attrelid::regclass::text AS table, string_agg(attname, ', ' ORDER BY attnum) AS columns "
        "FROM pg_attribute JOIN pg_class AS relation ON relation.oid = attrelid "
        "WHERE relation.relnamespace = $1::regnamespace AND relation.relkind IN ('r', 'p') "
        "AND NOT relation.relispartition AND relation.relname <> 'schema_migration' AND attnum > 0 "
        "GROUP BY attrelid",
        SCHEMA,
    )
    return {row["table"]: row["columns"] for row in rows}


async def rows_of(connection: asyncpg.Connection, columns: Mapping[str, str]) -> dict[str, Sequence[asyncpg.Record]]:
    """All rows by table, of these columns, as text."""
    return {
        table: await connection.fetch(f"SELECT ({names})::text AS row FROM {table} ORDER BY 1")  # noqa: S608
        for table, names in columns.items()
    }


async def test_nothing_of_a_version_1_database_is_lost(old, connection, open_store):
    columns = await columns_of(connection)
    before = await rows_of(connection, columns)
    assert all(before.values())
    assert await migrate(old) == [migration.name for migration in MIGRATIONS[1:]]
    assert await rows_of(connection, columns) == before
    store = await open_store(old)
    held = await everything(store, NAMESPACE)
    assert {node.content for node in held.revisions} == {"one", "two", "a memory", "naïve 记忆"}
    assert [session.session_id for session in held.sessions] == ["bound", "bound-closed", "s"]
    assert (len(held.bindings), len(held.requests), len(held.runs), len(held.contexts)) == (3, 4, 1, 2)
    replay = await apply(store, NAMESPACE, create("a"), key="k1")
    assert replay.replayed


async def test_sessions_of_version_1_drive_refreshes(old, open_store):
    await migrate(old)
    store = await open_store(old)
    records = PostgresSemanticRecords(store)
    later = NOW + timedelta(seconds=10)
    assert await records.due(BOUND, later, 2.0, 10) == [DueRefresh(namespace=NAMESPACE, authority_digest=BOUND)]
    head, partition = await store.head(NAMESPACE), Partition(NAMESPACE, BOUND)
    assert await records.record_fence(partition, 1)
    covering = receipt(partition, 1, source_revision=head.revision, history_id=head.history_id)
    await records.write_receipt(partition, covering)
    assert await records.due(BOUND, later, 2.0, 10) == []
