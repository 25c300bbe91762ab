"""What the repository keeps for semantic recall, in the store's database and on its connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from durable_memory.adapters.postgres.rows import GREATEST, as_it_is
from durable_memory.adapters.postgres.store import PostgresStore
from durable_memory.adapters.postgres.transaction import WriteTransaction
from durable_memory.adapters.semantic_codec import SemanticCodec, require_own
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.semantic.refusals import lease_fenced
from durable_memory.ports.semantic_records import DueRefresh, Intent, MaintenanceRun, Receipt, Schedule

TOGETHER: Final = 1_000
"""Vectors that one statement reads or writes, so that messages and transactions stay small."""

_CODEC: Final = SemanticCodec(as_it_is, as_it_is)
_NEWEST: Final = (GREATEST, GREATEST, GREATEST)


class PostgresSemanticRecords:
    """`SemanticRecords` in the database of `store`, which is opened, checked and closed by its owner."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    # What providers make

    async def served_generation(self, configuration_digest: str) -> Generation | None:
        rows = await self._store.fetch("served_generation", configuration_digest)
        return _CODEC.generation(rows[0]) if rows else None

    async def record_generation(self, configuration_digest: str, generation: Generation, at: datetime) -> None:
        columns = _CODEC.generation_columns(generation, at)

        async def work(transaction: WriteTransaction) -> None:
            await transaction.execute("record_generation", configuration_digest, *columns.values())

        await self._store.write_beside(work)

    # Cached vectors

    async def cached_vectors(
        self, namespace: Namespace, model_digest: str, text_digests: Collection[str]
    ) -> Mapping[str, bytes]:
        model = bytes.fromhex(model_digest)
        wanted = [bytes.fromhex(digest) for digest in text_digests]
        found: dict[str, bytes] = {}
        for start in range(0, len(wanted), TOGETHER):
            rows = await self._store.fetch("cached_vectors", namespace.key, model, wanted[start : start + TOGETHER])
            found.update((row["text_digest"].hex(), row["vector"]) for row in rows)
        return found

    async def cache_vectors(self, namespace: Namespace, model_digest: str, vectors: Mapping[str, bytes]) -> None:
        model = bytes.fromhex(model_digest)
        held = [(bytes.fromhex(digest), vector) for digest, vector in vectors.items()]
        for start in range(0, len(held), TOGETHER):
            digests, values = zip(*held[start : start + TOGETHER], strict=True)
            await self._store.write_beside(_caching(namespace.key, model, digests, values))

    # Fences

    async def highest_fence(self, partition: Partition) -> int:
        rows = await self._store.fetch("recorded_fence", *_named(partition))
        return int(rows[0]["fence"]) if rows else 0

    async def record_fence(self, partition: Partition, fence: int) -> bool:
        async def work(transaction: WriteTransaction) -> bool:
            return await transaction.fetch_row("record_fence", *_named(partition), fence) is not None

        return await self._store.write_beside(work)

    # Intents and receipts

    async def write_intent(self, partition: Partition, intent: Intent) -> None:
        columns = _CODEC.intent_columns(intent)

        async def work(transaction: WriteTransaction) -> None:
            await _require_highest(transaction, partition, intent.fence)
            await transaction.execute("write_intent", *_named(partition), *columns.values())

        await self._store.write_beside(work)

    async def pending_intent(self, partition: Partition) -> Intent | None:
        rows = await self._store.fetch("pending_intent", *_named(partition))
        return _CODEC.intent(rows[0]) if rows else None

    async def write_receipt(self, partition: Partition, receipt: Receipt) -> None:
        require_own(partition, receipt)
        columns = _CODEC.receipt_columns(receipt)

        async def work(transaction: WriteTransaction) -> None:
            await _require_highest(transaction, partition, receipt.fence)
            await transaction.execute("add_receipt", *_named(partition), *columns.values())
            await transaction.execute("settle_receipt", *_named(partition), *receipt.position)
            await transaction.execute("forget_receipts", *_named(partition))

        await self._store.write_beside(work)

    async def last_receipt(self, partition: Partition) -> Receipt | None:
        receipts = await self.list_receipts(partition, before=None, limit=1)
        return receipts[0] if receipts else None

    async def list_receipts(
        self, partition: Partition, *, before: tuple[int, int, int] | None, limit: int
    ) -> Sequence[Receipt]:
        rows = await self._store.fetch("list_receipts", *_named(partition), *(before or _NEWEST), limit)
        return [_CODEC.receipt(row) for row in rows]

    # Schedules and runs

    async def set_schedule(self, namespace: Namespace, schedule: Schedule) -> None:
        columns = _CODEC.schedule_columns(schedule)

        async def work(transaction: WriteTransaction) -> None:
            await transaction.execute("set_schedule", namespace.key, *columns.values())

        await self._store.write_beside(work)

    async def schedule(self, namespace: Namespace, authority_digest: str) -> Schedule | None:
        rows = await self._store.fetch("find_schedule", namespace.key, authority_digest)
        return _CODEC.schedule(rows[0]) if rows else None

    async def add_run(self, partition: Partition, run: MaintenanceRun) -> None:
        columns = _CODEC.run_columns(run)

        async def work(transaction: WriteTransaction) -> None:
            if run.fence:
                await _require_highest(transaction, partition, run.fence)
            else:
                await transaction.execute("add_partition", *_named(partition))
            await transaction.execute("add_run", *_named(partition), *columns.values())

        await self._store.write_beside(work)

    async def runs(self, partition: Partition) -> Sequence[MaintenanceRun]:
        return [_CODEC.run(row) for row in await self._store.fetch("list_refresh_runs", *_named(partition))]

    async def due(
        self, authority_digest: str, now: datetime, default_delay_seconds: float, limit: int
    ) -> Sequence[DueRefresh]:
        rows = await self._store.fetch("due_refreshes", authority_digest, now, float(default_delay_seconds), limit)
        return [DueRefresh(namespace=Namespace(**row), authority_digest=authority_digest) for row in rows]


def _caching(
    key: bytes, model: bytes, digests: Sequence[bytes], vectors: Sequence[bytes]
) -> Callable[[WriteTransaction], Awaitable[None]]:
    async def work(transaction: WriteTransaction) -> None:
        row = await transaction.fetch_row("cache_vectors", key, model, digests, vectors)
        if row is None or row["added"] < len(digests):
            await transaction.vouch()

    return work


def _named(partition: Partition) -> tuple[Any, ...]:
    return (partition.namespace.key, partition.authority_digest)


async def _require_highest(transaction: WriteTransaction, partition: Partition, fence: int) -> None:
    """Lock the partition. Raises: LEASE_FENCED, before anything is written."""
    row = await transaction.fetch_row("lock_partition", *_named(partition))
    highest = 0 if row is None else int(row["fence"])
    if fence != highest:
        raise lease_fenced(fence, highest)
