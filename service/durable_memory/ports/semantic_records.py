"""What the repository keeps for semantic recall: cached vectors, fences, intents, receipts, schedules, run history.

Implemented by the stores beside `Store`, in the same database. With the cached vectors a total loss of the index costs
no provider call. Everything here is written in short transactions of its own; none of it moves a namespace's revision.

Promises that every adapter keeps:

- **One fence, one holder.** `record_fence` is a strict compare: it says no unless the fence is above every recorded
  one. Receipts, intents and schedule runs demand that their fence is the recorded highest (LEASE_FENCED otherwise), in
  the transaction that writes them.
- **Receipts are ordered** by (fence, index revision); an older one never replaces a newer.
- Everything is kept by namespace; nothing of one is found from another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Protocol

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What a publisher is about to publish, written before it does: `history_digest` is that of the result."""

    fence: int
    nonce: str
    expected_index_revision: int
    history_digest: str
    source_history_id: str
    source_revision: int
    active_count: int
    work: RefreshWork
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshWork:
    """What a refresh did. Bytes are of vectors and of texts sent to the provider."""

    added: int = 0
    replaced: int = 0
    removed: int = 0
    cache_hits: int = 0
    provider_calls: int = 0
    provider_inputs: int = 0
    provider_bytes: int = 0
    staged_bytes: int = 0
    milliseconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The record of one publication or verified no-op: what the index covers. No content, ids or credentials."""

    authority_digest: str
    fence: int
    index_revision: int
    history_digest: str
    source_history_id: str
    source_revision: int
    active_count: int
    indexed_count: int
    consistency: str
    work: RefreshWork
    at: datetime
    completed_by_successor: bool = False


class RunOutcome(IntEnum):
    """How a scheduled refresh ended. Numbers equal the contract's and the stores'."""

    PUBLISHED = 1
    UNCHANGED = 2
    FAILED = 3
    CANCELLED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceRun:
    """One scheduled refresh. `error` is out of a closed list, at most 200 characters, without content."""

    started_at: datetime
    ended_at: datetime
    outcome: RunOutcome
    error: str = ""
    index_revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a namespace's partition is refreshed. `None` is off; both off disables the default as well."""

    authority_digest: str
    interval_seconds: float | None
    on_change_delay_seconds: float | None
    set_by: str
    set_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRefresh:
    """A partition that wants a refresh now."""

    namespace: Namespace
    authority_digest: str


class SemanticRecords(Protocol):
    """See the module's docstring."""

    async def cached_vectors(
        self, namespace: Namespace, model_digest: str, text_digests: Collection[str]
    ) -> Mapping[str, bytes]:
        """Vectors by text digest, of those that are there."""
        ...

    async def cache_vectors(self, namespace: Namespace, model_digest: str, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors by text digest; one that is there already stays."""
        ...

    async def highest_fence(self, partition: Partition) -> int:
        """The floor of the next grant; 0 if there was none."""
        ...

    async def record_fence(self, partition: Partition, fence: int) -> bool:
        """True and durable if `fence` is above every recorded one; False and nothing written otherwise."""
        ...

    async def write_intent(self, partition: Partition, intent: Intent) -> None:
        """Replace the partition's pending intent. Raises: LEASE_FENCED."""
        ...

    async def pending_intent(self, partition: Partition) -> Intent | None: ...

    async def write_receipt(self, partition: Partition, receipt: Receipt) -> None:
        """Add a receipt and, if it is the newest, end the pending intent. Raises: LEASE_FENCED."""
        ...

    async def last_receipt(self, partition: Partition) -> Receipt | None:
        """The newest by (fence, index revision)."""
        ...

    async def list_receipts(
        self, partition: Partition, *, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Receipt]:
        """Newest first; those older than (fence, index revision) `before`."""
        ...

    async def set_schedule(self, namespace: Namespace, schedule: Schedule) -> None: ...

    async def schedule(self, namespace: Namespace, authority_digest: str) -> Schedule | None: ...

    async def add_run(self, partition: Partition, run: MaintenanceRun) -> None:
        """Keep the last 64 of a partition."""
        ...

    async def runs(self, partition: Partition) -> Sequence[MaintenanceRun]:
        """Newest first, at most 64."""
        ...

    async def due(
        self, authority_digest: str, now: datetime, default_delay_seconds: float, limit: int
    ) -> Sequence[DueRefresh]:
        """Partitions to refresh, longest waiting first.

        Due on change: the namespace has an open session of this generation, its last receipt is of an older revision
        (or there is none and something is ACTIVE), and the newest change set is at least the delay ago. Due by
        interval: the last run began at least the interval ago.
        """
        ...
