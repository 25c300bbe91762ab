"""What PostgreSQL has on record of indexes: receipts, intents, fences and runs, read as its superuser."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg

_SCHEMA: Final = "durable_memory"
_STATEMENTS: Final = {path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "sql").glob("*.sql")}


def partition_name(namespace_key: bytes, authority_digest: str) -> str:
    """A partition's name by its definition, written a second time: SHA-256 over parts with their lengths."""
    return _digest("durablememory.dev/partition/v1", namespace_key, authority_digest.encode()).hex()


def namespace_key(tenant: str, principal: str, scope: str) -> bytes:
    """What stands for a namespace in every table, by its definition."""
    return _digest("durablememory.dev/namespace/v1", tenant.encode(), principal.encode(), scope.encode())


def _digest(domain: str, *parts: bytes) -> bytes:
    hasher = hashlib.sha256()
    for part in (domain.encode(), *parts):
        hasher.update(len(part).to_bytes(8, "big") + part)
    return hasher.digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReceipt:
    """One row. `at` is in seconds since 1970 by the clock of the server that wrote it, `work` its counts by name."""

    partition: str
    fence: int
    index_revision: int
    source_revision: int
    source_history_id: str
    history_digest: str
    active_count: int
    indexed_count: int
    work: Mapping[str, int]
    at: float
    completed_by_successor: bool

    @property
    def position(self) -> tuple[int, int, int]:
        """What receipts are ordered by, and told apart."""
        return (self.fence, self.index_revision, self.source_revision)

    @property
    def published(self) -> bool:
        """Whether it is of a change of the index; otherwise it found that none was needed."""
        return any(self.work.get(name, 0) for name in ("added", "replaced", "removed", "staged_bytes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedIntent:
    partition: str
    pending: bool
    fence: int
    nonce: str
    expected_index_revision: int
    history_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    partition: str
    number: int
    started_at: float
    ended_at: float
    outcome: int
    error: str
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The highest fence on record: every grant from then on is above it. `covered` is (history id, revision)."""

    partition: str
    fence: int
    covered: tuple[str, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All of it at one moment, of some namespaces."""

    receipts: Sequence[RecordedReceipt]
    intents: Sequence[RecordedIntent]
    floors: Mapping[str, Floor]
    """By partition."""
    runs: Sequence[RecordedRun]


class Repository:
    """Reads the database with this DSN. Each call has a connection of its own, because the primary may become another.

    Raises: what asyncpg raises.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    async def read(self, namespaces: Collection[bytes]) -> Record:
        """What is on record of the namespaces with these keys, in one snapshot."""
        connection = await asyncpg.connect(self._dsn, server_settings={"search_path": _SCHEMA})
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                keys = list(namespaces)
                receipts = await connection.fetch(_STATEMENTS["receipts"], keys)
                intents = await connection.fetch(_STATEMENTS["intents"], keys)
                fences = await connection.fetch(_STATEMENTS["fences"], keys)
                runs = await connection.fetch(_STATEMENTS["runs"], keys)
        finally:
            await connection.close()
        return Record(
            receipts=[_receipt(row) for row in receipts],
            intents=[_intent(row) for row in intents],
            floors={floor.partition: floor for floor in map(_floor, fences)},
            runs=[_run(row) for row in runs],
        )

    async def namespaces(self, tenant_prefix: str) -> Mapping[bytes, str]:
        """By key, the tenant of each namespace whose tenant's name begins so."""
        rows = await self._fetch("namespaces", tenant_prefix)
        return {row["namespace_key"]: row["tenant_id"] for row in rows}

    async def partitions(self) -> Mapping[str, bytes]:
        """By name, the namespace of every partition that a fence was ever granted for."""
        rows = await self._fetch("authorities")
        return {_name(row): row["namespace_key"] for row in rows}

    async def node_ids(self, namespace: bytes) -> frozenset[str]:
        """Of all nodes that the namespace ever had."""
        return frozenset(row["node_id"] for row in await self._fetch("nodes", namespace))

    async def requests(self, namespace: bytes) -> frozenset[tuple[str, str]]:
        """Method and request id of every command of the namespace that is on record."""
        return frozenset((row["method"], row["key"]) for row in await self._fetch("requests", namespace))

    async def vectors(self, namespace: bytes) -> Mapping[str, bytes]:
        """By the digest of their text, the vectors that the namespace has cached."""
        return {row["text_digest"]: row["vector"] for row in await self._fetch("vectors", namespace)}

    async def _fetch(self, name: str, *arguments: object) -> list[Any]:
        connection = await asyncpg.connect(self._dsn, server_settings={"search_path": _SCHEMA})
        try:
            return list(await connection.fetch(_STATEMENTS[name], *arguments))
        finally:
            await connection.close()


def _name(row: Any) -> str:
    return partition_name(row["namespace_key"], row["authority_digest"])


def _receipt(row: Any) -> RecordedReceipt:
    return RecordedReceipt(
        partition=_name(row),
        fence=row["fence"],
        index_revision=row["index_revision"],
        source_revision=row["source_revision"],
        source_history_id=row["source_history_id"],
        history_digest=row["history_digest"],
        active_count=row["active_count"],
        indexed_count=row["indexed_count"],
        work=json.loads(row["work"]),
        at=row["at"],
        completed_by_successor=row["completed_by_successor"],
    )


def _intent(row: Any) -> RecordedIntent:
    return RecordedIntent(
        partition=_name(row),
        pending=row["pending"],
        fence=row["fence"],
        nonce=row["nonce"],
        expected_index_revision=row["expected_index_revision"],
        history_digest=row["history_digest"],
    )


def _floor(row: Any) -> Floor:
    history_id = row["covered_history_id"]
    covered = None if history_id is None else (history_id, row["covered_revision"])
    return Floor(partition=_name(row), fence=row["fence"], covered=covered)


def _run(row: Any) -> RecordedRun:
    return RecordedRun(
        partition=_name(row),
        number=row["run_number"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        outcome=row["outcome"],
        error=row["error"],
        fence=row["fence"],
    )
