"""A file that a service of schema version 1 wrote is brought forward with everything in it.

`version_1.sql` is what such a service wrote: nodes with revisions and relations, evidence, requests, a session without
and two with a semantic generation (one of them closed), a run with contexts, and an event.
"""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.adapters.sqlite.connection import connect
from durable_memory.adapters.sqlite.migrations import load_migrations, migrate
from durable_memory.adapters.sqlite.semantic_records import SqliteSemanticRecords
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.semantic_records import DueRefresh
from tests.conformance.samples import NOW, apply, create, everything
from tests.conformance.semantic_records.samples import generation, receipt

GENERATION = generation("version-1")
BOUND = GENERATION.authority_digest


@pytest.fixture
def old(path: Path) -> Path:
    """The file as version 1 left it."""
    with closing(connect(path, writer=True)) as connection:
        migrate(connection, load_migrations()[:1])
        connection.executescript((Path(__file__).parent / "version_1.sql").read_text())
    return path


def columns_of(path: Path) -> dict[str, str]:
    """The columns of all tables, as a list for SQL."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'schema_migrations'"
        )
        return {
            table: ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
            for (table,) in tables.fetchall()
        }


def rows_of(path: Path, columns: dict[str, str]) -> dict[str, list[tuple]]:
    """All rows by table, of these columns."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: connection.execute(f"SELECT {names} FROM {table} ORDER BY {names}").fetchall()  # noqa: S608
            for table, names in columns.items()
        }


async def test_nothing_of_a_version_1_file_is_lost(old, namespace):
    columns = columns_of(old)
    before = rows_of(old, columns)
    assert all(before.values())
    store = SqliteStore(old, SystemIds())
    await store.open()
    try:
        assert rows_of(old, columns) == before
        held = await everything(store, namespace)
        assert {node.content for node in held.revisions} == {"one", "two", "a memory", "naïve 记忆"}
        assert [session.session_id for session in held.sessions] == ["bound", "bound-closed", "s"]
        assert (len(held.bindings), len(held.requests), len(held.runs), len(held.contexts)) == (3, 4, 1, 2)
        replay = await apply(store, namespace, create("a"), key="k1")
        assert replay.replayed
    finally:
        await store.close()


async def test_sessions_of_version_1_drive_refreshes(old, namespace):
    store = SqliteStore(old, SystemIds())
    await store.open()
    try:
        records = SqliteSemanticRecords(store)
        later = NOW + timedelta(seconds=10)
        assert await records.due(BOUND, later, 2.0, 10) == [DueRefresh(namespace=namespace, authority_digest=BOUND)]
        head = await store.head(namespace)
        partition = Partition(namespace, BOUND)
        assert await records.record_fence(partition, 1)
        covering = receipt(partition, 1, source_revision=head.revision, history_id=head.history_id)
        await records.write_receipt(partition, covering)
        assert await records.due(BOUND, later, 2.0, 10) == []
    finally:
        await store.close()
