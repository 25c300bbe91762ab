"""The schema, as numbered SQL files that are applied in order and recorded with their checksums."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from durable_memory.domain.errors import DomainError, not_serving

APPLICATION_ID: Final = 0x444D_454D
"""`DMEM` in the file's header: what tells this store's files from other SQLite databases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file: `0001_initial.sql` has version 1."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def statements(self) -> Iterator[str]:
        """The file's statements one by one, so that all of them fit into one transaction."""
        statement = ""
        for line in self.text.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                yield statement
                statement = ""
        if statement.strip():
            raise ValueError(f"{self.name} ends within a statement")


def load_migrations() -> Sequence[Migration]:
    """All that this version knows, in order, without gaps."""
    names = sorted(file.name for file in files(__name__).iterdir() if file.name.endswith(".sql"))
    migrations = [
        Migration(version=int(name[:4]), name=name, text=files(__name__).joinpath(name).read_text("utf-8"))
        for name in names
    ]
    if [migration.version for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise ValueError("migrations are not numbered 0001, 0002, ...")
    return migrations


def refuse_foreign(connection: sqlite3.Connection) -> None:
    """Raises: NOT_SERVING if the file belongs to another application; then it was not touched."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application_id != APPLICATION_ID and (objects or application_id):
        raise not_serving("schema", "the file is a database of another application")


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] | None = None) -> None:
    """Bring the file to the schema of this version, in one transaction.

    Raises: NOT_SERVING (have, want) for one that a newer version has migrated, or whose applied migrations are not
    those of this version.
    """
    known = load_migrations() if migrations is None else migrations
    connection.execute("BEGIN IMMEDIATE")
    try:
        applied = _applied(connection)
        if len(applied) > len(known):
            raise _schema_error("the database was migrated by a newer version", len(applied), len(known))
        for (version, checksum), migration in zip(applied, known, strict=False):
            if (version, checksum) != (migration.version, migration.checksum):
                raise _schema_error(f"migration {migration.name} is not the applied one", len(applied), len(known))
        for migration in known[len(applied) :]:
            for statement in migration.statements():
                connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_migrations (version, name, checksum) VALUES (?, ?, ?)",
                (migration.version, migration.name, migration.checksum),
            )
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _applied(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(
            "CREATE TABLE schema_migrations (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, "
            "checksum TEXT NOT NULL) STRICT"
        )
    return connection.execute("SELECT version, checksum FROM schema_migrations ORDER BY version").fetchall()


def _schema_error(problem: str, have: int, want: int) -> DomainError:
    return not_serving("schema", problem, have=have, want=want)
