"""What the repository keeps for semantic recall, in the store's file: through its one writer and its readers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final

from durable_memory.adapters.semantic_codec import SemanticCodec, require_own
from durable_memory.adapters.sqlite.connection import fetch, fetch_one, run_each
from durable_memory.adapters.sqlite.connection import run as run_statement
from durable_memory.adapters.sqlite.queries import GREATEST_INTEGER, names
from durable_memory.adapters.sqlite.store import SqliteStore
from durable_memory.domain.canonical import from_micros, to_micros
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.semantic.refusals import lease_fenced
from durable_memory.ports.semantic_records import DueRefresh, Intent, MaintenanceRun, Receipt, Schedule

READ_TOGETHER: Final = 2_000
"""Vectors that one snapshot reads."""

WRITE_TOGETHER: Final = 256
"""Vectors that one transaction writes; changes of memories wait no longer than that for the writer."""

_CODEC: Final = SemanticCodec(to_micros, from_micros)
_NEWEST: Final = (GREATEST_INTEGER, GREATEST_INTEGER, GREATEST_INTEGER)


class SqliteSemanticRecords:
    """`SemanticRecords` in the file of `store`, which is opened, checked and closed by its owner."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    # What providers make

    async def served_generation(self, configuration_digest: str) -> Generation | None:
        rows = await self._fetch("served_generation", {"configuration_digest": configuration_digest})
        return _CODEC.generation(rows[0]) if rows else None

    async def record_generation(self, configuration_digest: str, generation: Generation, at: datetime) -> None:
        columns = {"configuration_digest": configuration_digest, **_CODEC.generation_columns(generation, at)}
        await self._store.write_beside(lambda connection: run_statement(connection, "record_generation", columns))

    # Cached vectors

    async def cached_vectors(
        self, namespace: Namespace, model_digest: str, text_digests: Collection[str]
    ) -> Mapping[str, bytes]:
        found: dict[str, bytes] = {}
        digests = iter(text_digests)
        while together := list(islice(digests, READ_TOGETHER)):
            rows = await self._fetch(
                "cached_vectors",
                {"namespace_key": namespace.key, "model_digest": model_digest, "text_digests": names(together)},
            )
            found.update((row["text_digest"], row["vector"]) for row in rows)
        return found

    async def cache_vectors(self, namespace: Namespace, model_digest: str, vectors: Mapping[str, bytes]) -> None:
        rows = (
            {"namespace_key": namespace.key, "model_digest": model_digest, "text_digest": digest, "vector": vector}
            for digest, vector in vectors.items()
        )
        while together := list(islice(rows, WRITE_TOGETHER)):
            await self._store.write_beside(_adding_vectors(together))

    # Fences

    async def highest_fence(self, partition: Partition) -> int:
        return await self._store.read_beside(lambda connection: _highest_fence(connection, partition))

    async def record_fence(self, partition: Partition, fence: int) -> bool:
        parameters = {**_named(partition), "fence": fence}
        return await self._store.write_beside(
            lambda connection: fence > 0 and run_statement(connection, "record_fence", parameters) == 1
        )

    # Intents and receipts

    async def write_intent(self, partition: Partition, intent: Intent) -> None:
        def work(connection: sqlite3.Connection) -> None:
            _require_highest(connection, partition, intent.fence)
            run_statement(connection, "put_intent", {**_named(partition), **_CODEC.intent_columns(intent)})

        await self._store.write_beside(work)

    async def pending_intent(self, partition: Partition) -> Intent | None:
        rows = await self._fetch("pending_intent", _named(partition))
        return _CODEC.intent(rows[0]) if rows else None

    async def write_receipt(self, partition: Partition, receipt: Receipt) -> None:
        require_own(partition, receipt)
        columns = {**_named(partition), **_CODEC.receipt_columns(receipt)}

        def work(connection: sqlite3.Connection) -> None:
            _require_highest(connection, partition, receipt.fence)
            run_statement(connection, "add_receipt", columns)
            run_statement(connection, "cover_newest_receipt", columns)
            run_statement(connection, "end_intent", columns)
            run_statement(connection, "forget_receipts", columns)

        await self._store.write_beside(work)

    async def last_receipt(self, partition: Partition) -> Receipt | None:
        receipts = await self.list_receipts(partition, before=None, limit=1)
        return receipts[0] if receipts else None

    async def list_receipts(
        self, partition: Partition, *, before: tuple[int, int, int] | None, limit: int
    ) -> Sequence[Receipt]:
        fence, index_revision, source_revision = before or _NEWEST
        rows = await self._fetch(
            "list_receipts",
            {
                **_named(partition),
                "before_fence": fence,
                "before_index_revision": index_revision,
                "before_source_revision": source_revision,
                "limit": limit,
            },
        )
        return [_CODEC.receipt(row) for row in rows]

    # Schedules and runs

    async def set_schedule(self, namespace: Namespace, schedule: Schedule) -> None:
        columns = {"namespace_key": namespace.key, **_CODEC.schedule_columns(schedule)}
        await self._store.write_beside(lambda connection: run_statement(connection, "put_schedule", columns))

    async def schedule(self, namespace: Namespace, authority_digest: str) -> Schedule | None:
        rows = await self._fetch("find_schedule", _named(Partition(namespace, authority_digest)))
        return _CODEC.schedule(rows[0]) if rows else None

    async def add_run(self, partition: Partition, run: MaintenanceRun) -> None:
        columns = {**_named(partition), **_CODEC.run_columns(run)}

        def work(connection: sqlite3.Connection) -> None:
            if run.fence:
                _require_highest(connection, partition, run.fence)
            else:
                run_statement(connection, "add_partition", columns)
            run_statement(connection, "count_refresh_run", columns)
            run_statement(connection, "put_refresh_run", columns)

        await self._store.write_beside(work)

    async def runs(self, partition: Partition) -> Sequence[MaintenanceRun]:
        return [_CODEC.run(row) for row in await self._fetch("list_refresh_runs", _named(partition))]

    async def due(
        self, authority_digest: str, now: datetime, default_delay_seconds: float, limit: int
    ) -> Sequence[DueRefresh]:
        rows = await self._fetch(
            "due_refreshes",
            {
                "authority_digest": authority_digest,
                "now": to_micros(now),
                "default_delay_seconds": float(default_delay_seconds),
                "limit": limit,
            },
        )
        return [DueRefresh(namespace=Namespace(**row), authority_digest=authority_digest) for row in rows]

    async def _fetch(self, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        return await self._store.read_beside(lambda connection: fetch(connection, name, parameters))


def _adding_vectors(rows: Sequence[Mapping[str, Any]]) -> Callable[[sqlite3.Connection], None]:
    return lambda connection: run_each(connection, "add_vector", rows)


def _named(partition: Partition) -> dict[str, Any]:
    return {"namespace_key": partition.namespace.key, "authority_digest": partition.authority_digest}


def _highest_fence(connection: sqlite3.Connection, partition: Partition) -> int:
    row = fetch_one(connection, "recorded_fence", _named(partition))
    return 0 if row is None else int(row["fence"])


def _require_highest(connection: sqlite3.Connection, partition: Partition, fence: int) -> None:
    """Raises: LEASE_FENCED, before anything is written."""
    highest = _highest_fence(connection, partition)
    if fence != highest:
        raise lease_fenced(fence, highest)
