"""Store URLs: where the memories are kept, in one line that people type and log files may show."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from durable_memory.adapters.postgres.hosts import Target

_FORMS: Final = (
    "sqlite:///relative/path.db, sqlite:////absolute/path.db, postgresql://user@host:5432/database "
    "(or several: host1,host2:5433), or memory:"
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
    """A database for any number of server processes. It may name several hosts, of which the primary is used.

    `str` shows the hosts, and neither password nor options. Raises: ValueError for a URL that cannot be used.
    """

    dsn: str = field(repr=False)

    def __post_init__(self) -> None:
        _parse(self.dsn)

    def __str__(self) -> str:
        scheme, _, rest = _parse(self.dsn).dsn.partition("://")
        location, _, _ = rest.partition("?")
        credentials, at, place = location.rpartition("@")
        user = credentials.partition(":")[0]
        hosts = ",".join(quote(str(host), safe=":[]") for host in _parse(self.dsn).hosts)
        return f"{scheme}://{user}{at}{hosts}{place}"


def _parse(dsn: str) -> Target:
    # Who uses another store has no need of the driver.
    from durable_memory.adapters.postgres.hosts import parse_target

    return parse_target(dsn)


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
                try:
                    return PostgresUrl(text)
                except ValueError as error:
                    raise ValueError(f"{error}. A store URL is {_FORMS}") from None
    raise ValueError(f"is no store URL: give {_FORMS}")
