"""Store URLs: where the memories are kept, in one line that people type and log files may show."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_FORMS: Final = (
    "sqlite:///relative/path.db, sqlite:////absolute/path.db, postgresql://user@host:5432/database, or memory:"
)


@dataclass(frozen=True, slots=True)
class MemoryUrl:
    """Nothing is kept after the process: for trying things out, and for tests."""

    def __str__(self) -> str:
        return "memory:"


@dataclass(frozen=True, slots=True)
class SqliteUrl:
    """One file, made when it is missing, with one server process."""

    path: Path

    def __str__(self) -> str:
        return f"sqlite:///{self.path}"


@dataclass(frozen=True, slots=True)
class PostgresUrl:
    """A database for any number of server processes. `str` shows neither password nor options."""

    dsn: str = field(repr=False)

    def __str__(self) -> str:
        scheme, _, rest = self.dsn.partition("://")
        location, _, _ = rest.partition("?")
        credentials, at, place = location.rpartition("@")
        user = credentials.partition(":")[0]
        return f"{scheme}://{user}{at}{place}"


StoreUrl = MemoryUrl | SqliteUrl | PostgresUrl


def parse_store_url(text: str) -> StoreUrl:
    """Raises: ValueError, which says what the forms are and never quotes the text: it may hold a password."""
    scheme, colon, rest = text.partition(":")
    if colon and "\x00" not in text:
        match scheme:
            case "memory" if not rest:
                return MemoryUrl()
            case "sqlite" if rest.startswith("///") and len(rest) > len("///"):
                return SqliteUrl(Path(rest.removeprefix("///")))
            case "postgresql" | "postgres" if rest.startswith("//") and len(rest) > len("//"):
                return PostgresUrl(text)
    raise ValueError(f"is no store URL: give {_FORMS}")
