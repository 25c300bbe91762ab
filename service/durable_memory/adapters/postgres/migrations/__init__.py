"""The schema, as the sum of the numbered files in this folder. They only ever go forward, and never change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import asyncpg

from durable_memory.adapters.postgres.connecting import Connector
from durable_memory.adapters.postgres.errors import domain_errors
from durable_memory.adapters.postgres.pool import SCHEMA
from durable_memory.adapters.postgres.primary import Primary
from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.sql import statement
from durable_memory.domain.errors import not_serving

_FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")
_CONNECT_TIMEOUT_SECONDS: Final = 10.0
_LOCK: Final = 7236829140
"""Whoever holds this advisory lock migrates; the others wait, and find nothing left to do."""

_BOOKKEEPING: Final = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS schema_migration (
    version integer PRIMARY KEY CHECK (version >= 1),
    name text COLLATE "C" NOT NULL,
    checksum bytea NOT NULL CHECK (octet_length(checksum) = 32),
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


class MigrationRefusedError(Exception):
    """The database is not one that these migrations made. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file; `checksum` is the SHA-256 of its bytes."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> bytes:
        return hashlib.sha256(self.text.encode()).digest()


def _load() -> tuple[Migration, ...]:
    found = sorted(
        (
            Migration(int(match[1]), file.name.removesuffix(".sql"), file.read_text("utf-8"))
            for file in files(__name__).iterdir()
            if (match := _FILE.fullmatch(file.name))
        ),
        key=lambda migration: migration.version,
    )
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise RuntimeError("the migrations are not numbered without gaps")
    return tuple(found)


MIGRATIONS: Final = _load()
"""In order; the version of each is its place, from 1."""

CURRENT_VERSION: Final = len(MIGRATIONS)


async def migrate(dsn: str) -> list[str]:
    """Bring a database to the current version, and return the names of what was applied, in order.

    Each migration is a transaction together with its record. Processes that migrate at once take turns.

    Raises: MigrationRefusedError for a database that a newer version made, or whose applied migrations differ from
    these; DEPENDENCY_UNAVAILABLE if it cannot be reached; ValueError for a URL that cannot be used.
    """
    settings = PostgresSettings(connect_timeout_seconds=_CONNECT_TIMEOUT_SECONDS)
    connector = Connector(dsn, settings, Primary(lambda: None), lambda: 1.0)
    with domain_errors():
        try:
            connection = await connector.connect(
                server_settings={"search_path": SCHEMA, "client_min_messages": "warning"}
            )
        finally:
            await connector.close()
        try:
            await connection.execute(f"SELECT pg_advisory_lock({_LOCK})")
            await connection.execute(_BOOKKEEPING)
            applied = await connection.fetch(statement("schema_migrations"))
            return [await _apply(connection, migration) for migration in _outstanding(applied)]
        finally:
            await connection.close(timeout=_CONNECT_TIMEOUT_SECONDS)


def _outstanding(applied: Sequence[asyncpg.Record]) -> tuple[Migration, ...]:
    have = len(applied)
    if have > CURRENT_VERSION:
        raise MigrationRefusedError(
            f"the database is at schema version {have}; this version of the service knows {CURRENT_VERSION}"
        )
    for row, migration in zip(applied, MIGRATIONS, strict=False):
        if row["version"] != migration.version or row["checksum"] != migration.checksum:
            raise MigrationRefusedError(f"the database was made by another {migration.name}")
    return MIGRATIONS[have:]


async def _apply(connection: asyncpg.Connection[asyncpg.Record], migration: Migration) -> str:
    async with connection.transaction():
        await connection.execute(migration.text)
        await connection.execute(
            "INSERT INTO schema_migration (version, name, checksum) VALUES ($1, $2, $3)",
            migration.version,
            migration.name,
            migration.checksum,
        )
    return migration.name


async def check_schema(connector: Connector) -> None:
    """Raises: NOT_SERVING (have, want) unless the database is at exactly the current version."""
    with domain_errors():
        connection = await connector.connect(
            command_timeout=_CONNECT_TIMEOUT_SECONDS, server_settings={"search_path": SCHEMA}
        )
        try:
            applied = await connection.fetch(statement("schema_migrations"))
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
            applied = []
        finally:
            await connection.close(timeout=_CONNECT_TIMEOUT_SECONDS)
    require_version(len(applied))
    if any(row["checksum"] != migration.checksum for row, migration in zip(applied, MIGRATIONS, strict=True)):
        raise not_serving("schema", "the database was made by other migrations than this version has")


def require_version(have: int) -> None:
    """Raises: NOT_SERVING (have, want)."""
    if have != CURRENT_VERSION:
        raise not_serving(
            "schema",
            f"the database is at schema version {have}, and this version of the service needs {CURRENT_VERSION}",
            have=have,
            want=CURRENT_VERSION,
        )
