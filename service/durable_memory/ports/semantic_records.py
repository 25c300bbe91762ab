"""What the repository keeps for semantic recall: cached vectors, fences, intents, receipts, schedules, run history.

Implemented by the stores beside `Store`, in the same database. With the cached vectors a total loss of the index costs
no provider call. Everything here is written in short transactions of its own; none of it moves a namespace's revision.

Promises that every adapter keeps:

- **One fence, one holder.** `record_fence` is a strict compare: it says no unless the fence is above every recorded
  one. Receipts, intents and schedule runs demand that their fence is the recorded highest (LEASE_FENCED otherwise), in
  the transaction that writes them.
- **Receipts are ordered** by (fence, index revision); an older one never replaces a newer.
- Everything is kept by namespace; nothing of one is found from another. What is known of providers alone is for all of
  them: it says which vectors are made, and nothing of what they are made from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Final, Protocol

from durable_memory.domain.errors import invalid_field
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Generation, Partition

RECEIPTS_KEPT: Final = 1_000
"""How many receipts of a partition are kept."""

RUNS_KEPT: Final = 64
"""How many runs of a partition are kept."""

RUN_ERROR_MAX_CHARACTERS: Final = 200

SCHEDULE_SECONDS_MAX: Final = 366 * 86_400.0
"""The longest interval or delay of a schedule."""


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
    """What a refresh did. `refused` texts have no vector, because the provider does not take them.

    Bytes are of vectors and of texts sent to the provider.
    """

    added: int = 0
    replaced: int = 0
    removed: int = 0
    refused: int = 0
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

    @property
    def position(self) -> tuple[int, int, int]:
        """What receipts are ordered by, and told apart.

        Whoever completes another's publication and then finds that labels alone have changed since writes two receipts
        of one fence and index revision; they differ in the source revision that they cover.
        """
        return (self.fence, self.index_revision, self.source_revision)


class RunOutcome(IntEnum):
    """How a scheduled refresh ended. Numbers equal the contract's and the stores'."""

    PUBLISHED = 1
    UNCHANGED = 2
    FAILED = 3
    CANCELLED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceRun:
    """One scheduled refresh. `error` is out of a closed list, short and without content; empty if there was none.

    `fence` is that of the grant under which it ran; 0 if it ended before it had one.
    """

    started_at: datetime
    ended_at: datetime
    outcome: RunOutcome
    error: str = ""
    index_revision: int = 0
    fence: int = 0

    def __post_init__(self) -> None:
        if len(self.error) > RUN_ERROR_MAX_CHARACTERS:
            raise ValueError("the error of a run comes out of a list, and is short")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a namespace's partition is refreshed. `None` is off; both off disables the default as well.

    Raises: INVALID_FIELD for an interval that is not above 0, a delay below 0, or either above `SCHEDULE_SECONDS_MAX`.
    """

    authority_digest: str
    interval_seconds: float | None
    on_change_delay_seconds: float | None
    set_by: str
    set_at: datetime

    @property
    def is_off(self) -> bool:
        """Whether the partition moves only when it is told to."""
        return self.interval_seconds is None and self.on_change_delay_seconds is None

    def __post_init__(self) -> None:
        interval, delay = self.interval_seconds, self.on_change_delay_seconds
        if interval is not None and not 0 < interval <= SCHEDULE_SECONDS_MAX:
            raise invalid_field("interval_seconds", f"is not above 0 and at most {SCHEDULE_SECONDS_MAX:.0f}")
        if delay is not None and not 0 <= delay <= SCHEDULE_SECONDS_MAX:
            raise invalid_field("on_change_delay_seconds", f"is not from 0 to {SCHEDULE_SECONDS_MAX:.0f}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRefresh:
    """A partition that wants a refresh now."""

    namespace: Namespace
    authority_digest: str


class SemanticRecords(Protocol):
    """See the module's docstring."""

    async def served_generation(self, configuration_digest: str) -> Generation | None:
        """What a provider with this configuration was last found to make; `None` if it has never answered."""
        ...

    async def record_generation(self, configuration_digest: str, generation: Generation, at: datetime) -> None:
        """Keep what a provider has answered that it makes, in the place of what was recorded before.

        What is recorded already stays as it is, with its time: repeats cost no write.
        """
        ...

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
        """Add a receipt unless its position is taken and, if none is newer, end the pending intent.

        Raises: LEASE_FENCED.
        """
        ...

    async def last_receipt(self, partition: Partition) -> Receipt | None:
        """The newest by position."""
        ...

    async def list_receipts(
        self, partition: Partition, *, before: tuple[int, int, int] | None, limit: int
    ) -> Sequence[Receipt]:
        """Newest first; those whose position is below `before`."""
        ...

    async def set_schedule(self, namespace: Namespace, schedule: Schedule) -> None:
        """Replace the schedule of the namespace's partition in the schedule's generation."""
        ...

    async def schedule(self, namespace: Namespace, authority_digest: str) -> Schedule | None:
        """What was set; `None` where the server's default holds."""
        ...

    async def add_run(self, partition: Partition, run: MaintenanceRun) -> None:
        """Keep the last `RUNS_KEPT` of a partition.

        Raises: LEASE_FENCED if it ran under another fence than the highest.
        """
        ...

    async def runs(self, partition: Partition) -> Sequence[MaintenanceRun]:
        """Those that were added last come first."""
        ...

    async def due(
        self, authority_digest: str, now: datetime, default_delay_seconds: float, limit: int
    ) -> Sequence[DueRefresh]:
        """Partitions to refresh, longest waiting first. The one call that names no namespace: it is for the scheduler.

        Due on change: the namespace has an open session of this generation, its last receipt is of another revision or
        history (or there is none and something is ACTIVE), and both the oldest change set that this receipt does not
        cover and the start of the last run are at least the delay ago. So a namespace whose changes never pause gets
        its turn all the same, and one whose refresh fails lets the others pass. The delay is the schedule's where there
        is one, and `default_delay_seconds` elsewhere.

        Due by interval, which a schedule alone can ask for: the namespace has a change set, and the last run began at
        least the interval ago, or there was none.
        """
        ...
