"""The file migrates itself, and refuses what this version does not understand."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.adapters.sqlite.connection import connect
from durable_memory.adapters.sqlite.migrations import Migration, load_migrations, migrate
from durable_memory.domain.errors import DomainError, Reason

LAST = len(load_migrations())


def _next(name: str, text: str) -> Migration:
    """A migration after all that this version has."""
    return Migration(version=LAST + 1, name=f"{LAST + 1:04}_{name}.sql", text=text)


def _schema(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").fetchall()


async def _refusal(path) -> DomainError:
    with pytest.raises(DomainError) as refusal:
        await SqliteStore(path, SystemIds()).open()
    return refusal.value


async def test_a_fresh_file_has_the_schema_of_all_migrations(store, path, tmp_path):
    by_hand = tmp_path / "by-hand.db"
    with closing(sqlite3.connect(by_hand, isolation_level=None)) as plain, closing(connect(path, writer=False)) as own:
        for migration in load_migrations():
            plain.executescript(migration.text)
        expected = [row for row in _schema(own) if "schema_migrations" not in row[1]]
        assert _schema(plain) == expected
        applied = own.execute("SELECT version, name, checksum FROM schema_migrations").fetchall()
    assert applied == [(item.version, item.name, item.checksum) for item in load_migrations()]


async def test_opening_again_changes_nothing(path):
    schemas = []
    for _ in range(2):
        store = SqliteStore(path, SystemIds())
        await store.open()
        await store.close()
        with closing(connect(path, writer=False)) as connection:
            schemas.append(_schema(connection))
    assert schemas[0] == schemas[1]


def test_later_migrations_are_applied_to_an_older_file(path):
    later = _next("more", "CREATE TABLE more (id INTEGER);")
    with closing(connect(path, writer=True)) as connection:
        migrate(connection)
        migrate(connection, [*load_migrations(), later])
        assert connection.execute("SELECT count(*) FROM more").fetchone() == (0,)


def test_a_migration_that_fails_leaves_nothing(path):
    broken = _next("broken", "CREATE TABLE more (id INTEGER);\nSELECT nonsense;")
    with closing(connect(path, writer=True)) as connection:
        migrate(connection)
        before = _schema(connection)
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, [*load_migrations(), broken])
        assert _schema(connection) == before
        migrate(connection)


async def test_a_file_of_a_newer_version_is_refused(path):
    newer = _next("newer", "CREATE TABLE newer (id INTEGER);")
    with closing(connect(path, writer=True)) as connection:
        migrate(connection, [*load_migrations(), newer])
    refusal = await _refusal(path)
    assert refusal.reason is Reason.NOT_SERVING
    assert refusal.metadata == {"state": "schema", "have": str(LAST + 1), "want": str(LAST)}


async def test_a_file_with_another_text_of_a_known_migration_is_refused(path):
    first = load_migrations()[0]
    with closing(connect(path, writer=True)) as connection:
        migrate(connection, [replace(first, text=first.text + "\n-- edited after it was released\n;")])
    refusal = await _refusal(path)
    assert (refusal.reason, refusal.metadata["state"]) == (Reason.NOT_SERVING, "schema")


async def test_a_database_of_another_application_is_refused_and_left_as_it_is(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (id INTEGER)")
    before = path.read_bytes()
    refusal = await _refusal(path)
    assert (refusal.reason, refusal.metadata["state"]) == (Reason.NOT_SERVING, "schema")
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path):
    path.write_bytes(b"something else entirely\n" * 100)
    before = path.read_bytes()
    assert (await _refusal(path)).reason is Reason.DATA_CORRUPTED
    assert path.read_bytes() == before


async def test_a_file_in_a_folder_that_does_not_exist_is_refused(tmp_path):
    refusal = await _refusal(tmp_path / "absent" / "store.db")
    assert (refusal.reason, refusal.metadata["state"]) == (Reason.NOT_SERVING, "file")


def test_a_migration_that_ends_within_a_statement_is_a_defect():
    with pytest.raises(ValueError, match="within a statement"):
        list(Migration(version=1, name="0001.sql", text="CREATE TABLE half (").statements())
