"""The vector index: published segments of each partition, and how a new state replaces the old one.

It is derived state: everything here can be lost and rebuilt. Promises that every adapter keeps:

- **Compare and swap.** `publish` changes nothing unless all hold at one moment: the publisher's lease lives and is its
  own, its fence is not below the highest seen, the index revision is the expected one, the descriptor is the same (or
  nothing was published yet), and every segment listed is there with its length. Then the segment list, revision
  (plus one), history digest, fence and source are replaced together; a reader sees the old or the new state, never
  half of one.
- **Repeatable.** A publication carries a nonce; repeating one that happened returns its manifest, for as long as it is
  the published one. Staging a segment again changes nothing; nor does any repeat that arrives late.
- **Staged segments expire** unless renewed or published. Replaced segments stay readable for a grace period.
- Partitions never meet: a conflict in one is invisible to every other.

Errors: DomainError with INDEX_REVISION_CONFLICT (expected, actual), LEASE_FENCED, DIMENSION_MISMATCH (another
descriptor), DATA_CORRUPTED (a listed segment is missing or damaged; `staged` says whether it was a new one, which may
have expired), DEPENDENCY_UNAVAILABLE, and for `publish` and `clear` OUTCOME_UNKNOWN: no answer came, and a repeat
settles it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import (
    INDEX_HISTORY_START,
    Descriptor,
    Manifest,
    SegmentEntry,
    index_history,
)
from durable_memory.domain.semantic.refusals import another_descriptor, index_revision_conflict
from durable_memory.ports.leases import Lease


class Consistency(StrEnum):
    """What a backend can promise of publications."""

    INDEX_REVISION_CAS = "INDEX_REVISION_CAS"
    """All of the module's docstring, across processes."""

    LAST_WRITER_WINS = "LAST_WRITER_WINS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A new state of a partition. `segments` lists all of it: kept, changed and staged ones, in order."""

    partition: Partition
    lease: Lease
    expected_index_revision: int
    descriptor: Descriptor
    segments: tuple[SegmentEntry, ...]
    staged_ids: frozenset[str]
    source_history_id: str
    source_revision: int
    nonce: str

    def require_follows(self, published: Manifest | None) -> None:
        """Raises: INDEX_REVISION_CONFLICT, DIMENSION_MISMATCH if this is not what may follow `published`."""
        actual = 0 if published is None else published.index_revision
        if actual != self.expected_index_revision:
            raise index_revision_conflict(self.expected_index_revision, actual)
        if published is not None and published.descriptor != self.descriptor:
            raise another_descriptor(published.descriptor, self.descriptor)

    def manifest(self, previous_history_digest: str = INDEX_HISTORY_START) -> Manifest:
        """The state that this publication makes of the one with the previous history digest."""
        index_revision = self.expected_index_revision + 1
        return Manifest(
            descriptor=self.descriptor,
            index_revision=index_revision,
            history_digest=index_history(previous_history_digest, index_revision, self.segments),
            fence=self.lease.fence,
            nonce=self.nonce,
            source_history_id=self.source_history_id,
            source_revision=self.source_revision,
            segments=self.segments,
        )


class VectorIndex(Protocol):
    """See the module's docstring."""

    @property
    def consistency(self) -> Consistency: ...

    @property
    def connections(self) -> int:
        """How many connections were made to where the index is; 0 if it needs none.

        What is published there goes back in time only by a restart or a failover, which ends connections: as long as
        the number stays, a state that was verified to be the last one, and is still there, still is the last one.
        """
        ...

    async def open(self) -> None:
        """Connect, load scripts, and refuse a backend that would evict what was published.

        Raises: DEPENDENCY_UNAVAILABLE, NOT_SERVING (maxmemory-policy).
        """
        ...

    async def close(self) -> None: ...

    async def check(self) -> None:
        """One cheap round trip, for readiness."""
        ...

    async def manifest(self, partition: Partition) -> Manifest | None:
        """The published state, `None` if there is none. One read."""
        ...

    async def segments(self, partition: Partition, segment_ids: Collection[str]) -> Mapping[str, bytes]:
        """Encoded segments of those that are there; a missing one is simply missing (read the manifest again)."""
        ...

    async def stage(self, partition: Partition, segment_id: str, encoded: bytes, *, ttl_seconds: float) -> None:
        """Put one segment beside the published state, under an id that nobody has used. Whole values only."""
        ...

    async def keep_staged(self, partition: Partition, segment_ids: Collection[str], *, ttl_seconds: float) -> None:
        """Let staged segments live for another while. Raises: LEASE_FENCED if one is gone: the stage took too long."""
        ...

    async def publish(self, publication: Publication) -> Manifest:
        """Replace the published state; see the module's docstring."""
        ...

    async def clear(self, partition: Partition, lease: Lease) -> None:
        """Forget the partition, manifest and listed segments, but not its highest fence.

        Segments that are not listed, because they were staged or replaced, stay until they expire; where the manifest
        cannot be read, they may go at once.

        Raises: LEASE_FENCED.
        """
        ...
