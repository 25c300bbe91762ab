"""SQLite connections: how they are set up, what they answer, and what their errors mean."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from durable_memory.adapters.sqlite.statements import SQL
from durable_memory.domain.errors import DomainError, Reason, dependency_unavailable, not_serving

BUSY_TIMEOUT_SECONDS: Final = 5.0
"""How long to wait for a tool that holds the file, such as a backup; this process never waits for itself."""

OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with STRICT tables."""

_CORRUPT: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_PRIMARY_CODE: Final = 0xFF

Parameters = Mapping[str, Any]


def connect(path: Path, *, writer: bool) -> sqlite3.Connection:
    """A connection with full durability, in autocommit mode: transactions are begun by name and nowhere else.

    Only one thread uses it at a time, which is for the caller to see to.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise not_serving("sqlite", f"SQLite {sqlite3.sqlite_version} is older than {wanted}")
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        for name in ("synchronous", "foreign_keys", "journal_size_limit"):
            connection.execute(SQL[name])
        if not writer:
            connection.execute(SQL["query_only"])
    except BaseException:
        connection.close()
        raise
    return connection


def use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Raises: NOT_SERVING where the file cannot have one."""
    (mode,) = connection.execute(SQL["journal_mode"]).fetchone()
    if mode != "wal":
        raise not_serving("sqlite", "the database's folder does not allow a write-ahead log")


def fetch(connection: sqlite3.Connection, name: str, parameters: Parameters) -> list[dict[str, Any]]:
    """All rows of a named query, by column."""
    cursor = connection.execute(SQL[name], parameters)
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def fetch_one(connection: sqlite3.Connection, name: str, parameters: Parameters) -> dict[str, Any] | None:
    """The row of a named query that has at most one."""
    rows = fetch(connection, name, parameters)
    return rows[0] if rows else None


def run(connection: sqlite3.Connection, name: str, parameters: Parameters) -> int:
    """Run a named statement; how many rows it changed."""
    return connection.execute(SQL[name], parameters).rowcount


def run_each(connection: sqlite3.Connection, name: str, rows: Iterable[Parameters]) -> None:
    """Run a named statement once for each of many rows."""
    connection.executemany(SQL[name], rows)


def domain_error(error: sqlite3.Error) -> DomainError:
    """What a failure before any commit means to a caller."""
    code = primary_code(error)
    if code in _CORRUPT or "Could not decode" in str(error):
        return DomainError(Reason.DATA_CORRUPTED, "the database file is damaged", what="database")
    if code == sqlite3.SQLITE_CONSTRAINT:
        return DomainError(Reason.INTERNAL, "the decision breaks an invariant of the store")
    if code is None or code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISUSE):
        return DomainError(Reason.INTERNAL, "the store ran a statement that SQLite refuses")
    if code == sqlite3.SQLITE_FULL:
        return dependency_unavailable("the disk is full")
    return dependency_unavailable("the database file cannot be read or written")


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's result code without its details; `None` for what Python itself found."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY_CODE
