"""What the repository keeps for semantic recall, in the plainest way, beside the namespaces of a `MemoryStore`."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from durable_memory.adapters.memory.partition import Partition as NamespaceState
from durable_memory.adapters.memory.store import MemoryStore
from durable_memory.adapters.semantic_codec import require_own
from durable_memory.domain.canonical import EPOCH
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.semantic.refusals import lease_fenced
from durable_memory.domain.session import SessionState
from durable_memory.ports.semantic_records import (
    RECEIPTS_KEPT,
    RUNS_KEPT,
    DueRefresh,
    Intent,
    MaintenanceRun,
    Receipt,
    Schedule,
)

_NOTHING: Final[Mapping[str, bytes]] = {}

PartitionKey = tuple[Namespace, str]
"""(namespace, authority digest)"""


@dataclass(slots=True)
class _Kept:
    """Of one partition. Receipts are in the order of their positions, the newest run comes first."""

    fence: int = 0
    intent: Intent | None = None
    receipts: list[Receipt] = field(default_factory=list)
    runs: deque[MaintenanceRun] = field(default_factory=lambda: deque(maxlen=RUNS_KEPT))

    def require_highest(self, fence: int) -> None:
        if fence != self.fence:
            raise lease_fenced(fence, self.fence)


class MemorySemanticRecords:
    """`SemanticRecords` that live and end with the object; served for as long as `store` is open."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._vectors: dict[tuple[Namespace, str], dict[str, bytes]] = {}
        self._kept: dict[PartitionKey, _Kept] = {}
        self._schedules: dict[PartitionKey, Schedule] = {}
        self._generations: dict[str, Generation] = {}

    async def served_generation(self, configuration_digest: str) -> Generation | None:
        self._store.require_serving()
        return self._generations.get(configuration_digest)

    async def record_generation(self, configuration_digest: str, generation: Generation, at: datetime) -> None:
        self._store.require_serving()
        self._generations[configuration_digest] = generation

    async def cached_vectors(
        self, namespace: Namespace, model_digest: str, text_digests: Collection[str]
    ) -> Mapping[str, bytes]:
        self._store.require_serving()
        held = self._vectors.get((namespace, model_digest), _NOTHING)
        return {digest: held[digest] for digest in text_digests if digest in held}

    async def cache_vectors(self, namespace: Namespace, model_digest: str, vectors: Mapping[str, bytes]) -> None:
        self._store.require_serving()
        held = self._vectors.setdefault((namespace, model_digest), {})
        for digest, vector in vectors.items():
            held.setdefault(digest, vector)

    async def highest_fence(self, partition: Partition) -> int:
        return self._of(partition).fence

    async def record_fence(self, partition: Partition, fence: int) -> bool:
        kept = self._of(partition)
        if fence <= kept.fence:
            return False
        kept.fence = fence
        return True

    async def write_intent(self, partition: Partition, intent: Intent) -> None:
        kept = self._of(partition)
        kept.require_highest(intent.fence)
        kept.intent = intent

    async def pending_intent(self, partition: Partition) -> Intent | None:
        return self._of(partition).intent

    async def write_receipt(self, partition: Partition, receipt: Receipt) -> None:
        require_own(partition, receipt)
        kept = self._of(partition)
        kept.require_highest(receipt.fence)
        if all(held.position != receipt.position for held in kept.receipts):
            kept.receipts.append(receipt)
            kept.receipts.sort(key=lambda held: held.position)
            del kept.receipts[:-RECEIPTS_KEPT]
        if kept.receipts[-1].position == receipt.position:
            kept.intent = None

    async def last_receipt(self, partition: Partition) -> Receipt | None:
        receipts = self._of(partition).receipts
        return receipts[-1] if receipts else None

    async def list_receipts(
        self, partition: Partition, *, before: tuple[int, int, int] | None, limit: int
    ) -> Sequence[Receipt]:
        newest_first = reversed(self._of(partition).receipts)
        return [receipt for receipt in newest_first if before is None or receipt.position < before][:limit]

    async def set_schedule(self, namespace: Namespace, schedule: Schedule) -> None:
        self._store.require_serving()
        self._schedules[namespace, schedule.authority_digest] = schedule

    async def schedule(self, namespace: Namespace, authority_digest: str) -> Schedule | None:
        self._store.require_serving()
        return self._schedules.get((namespace, authority_digest))

    async def add_run(self, partition: Partition, run: MaintenanceRun) -> None:
        kept = self._of(partition)
        if run.fence:
            kept.require_highest(run.fence)
        kept.runs.appendleft(run)

    async def runs(self, partition: Partition) -> Sequence[MaintenanceRun]:
        return list(self._of(partition).runs)

    async def due(
        self, authority_digest: str, now: datetime, default_delay_seconds: float, limit: int
    ) -> Sequence[DueRefresh]:
        waiting = [
            (due_at, namespace)
            for namespace, state in self._store.namespaces()
            for due_at in [min(self._due_at(namespace, state, authority_digest, default_delay_seconds), default=None)]
            if due_at is not None and due_at <= now
        ]
        waiting.sort(key=lambda item: (item[0], item[1].key))
        return [DueRefresh(namespace=namespace, authority_digest=authority_digest) for _, namespace in waiting[:limit]]

    def _due_at(
        self, namespace: Namespace, state: NamespaceState, authority_digest: str, default_delay_seconds: float
    ) -> Iterator[datetime]:
        """When the partition's next refreshes are due, on change and by interval."""
        kept = self._of(Partition(namespace, authority_digest))
        last_run = kept.runs[0].started_at if kept.runs else None
        schedule = self._schedules.get((namespace, authority_digest))
        delay = default_delay_seconds if schedule is None else schedule.on_change_delay_seconds
        if delay is not None and _is_bound(state, authority_digest):
            changed_at = _uncovered_since(state, kept.receipts[-1] if kept.receipts else None)
            if changed_at is not None:
                yield max(changed_at, last_run or EPOCH) + timedelta(seconds=delay)
        if schedule is not None and schedule.interval_seconds is not None and state.head.revision > 0:
            yield last_run + timedelta(seconds=schedule.interval_seconds) if last_run else schedule.set_at

    def _of(self, partition: Partition) -> _Kept:
        self._store.require_serving()
        return self._kept.setdefault((partition.namespace, partition.authority_digest), _Kept())


def _is_bound(state: NamespaceState, authority_digest: str) -> bool:
    """Whether an open session is bound to the generation."""
    return any(
        session.state is SessionState.OPEN
        and session.binding.policy.semantic is not None
        and session.binding.policy.semantic.authority_digest == authority_digest
        for session in state.sessions.values()
    )


def _uncovered_since(state: NamespaceState, receipt: Receipt | None) -> datetime | None:
    """When the oldest change set was committed that the receipt does not cover; `None` if there is nothing to do."""
    head = state.head
    if receipt is None and head.active_count == 0:
        return None
    same_history = receipt is not None and receipt.source_history_id == head.history_id
    covered = receipt.source_revision if receipt is not None and same_history else 0
    if same_history and covered == head.revision:
        return None
    return next((record.committed_at for record in state.change_sets if record.namespace_revision > covered), EPOCH)
