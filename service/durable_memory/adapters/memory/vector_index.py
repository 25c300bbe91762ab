"""The vector index in the process's memory: the executable reference that the other adapters are compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from durable_memory.adapters.memory.leases import MemoryLeaseStore
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, Manifest, SegmentEntry
from durable_memory.domain.semantic.refusals import lease_fenced, segment_id_reused, segment_missing, stage_expired
from durable_memory.domain.semantic.segment import checksum
from durable_memory.ports.leases import Lease
from durable_memory.ports.runtime import Clock
from durable_memory.ports.vector_index import Consistency, Publication

REPLACED_GRACE_SECONDS: Final = 120.0


@dataclass(slots=True)
class _Stored:
    """`expires_at` is on the monotonic clock; `None` for what is published."""

    encoded: bytes
    expires_at: float | None


@dataclass(slots=True)
class _Index:
    manifest: Manifest | None = None
    segments: dict[str, _Stored] = field(default_factory=dict)


class MemoryVectorIndex:
    """`VectorIndex` that lives and ends with the object. Nothing here awaits, so each call is atomic on its loop."""

    consistency: Final = Consistency.INDEX_REVISION_CAS
    connections: Final = 0

    def __init__(
        self, leases: MemoryLeaseStore, clock: Clock, *, replaced_grace_seconds: float = REPLACED_GRACE_SECONDS
    ) -> None:
        self._leases = leases
        self._clock = clock
        self.replaced_grace_seconds = replaced_grace_seconds
        self._indexes: dict[str, _Index] = {}

    async def open(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        """What is held stays, so that it can be opened again."""

    async def check(self) -> None:
        """It is there."""

    async def manifest(self, partition: Partition) -> Manifest | None:
        return self._index(partition).manifest

    async def segments(self, partition: Partition, segment_ids: Collection[str]) -> Mapping[str, bytes]:
        held = self._index(partition).segments
        return {segment_id: held[segment_id].encoded for segment_id in segment_ids if segment_id in held}

    async def stage(self, partition: Partition, segment_id: str, encoded: bytes, *, ttl_seconds: float) -> None:
        held = self._index(partition).segments
        if segment_id not in held:
            held[segment_id] = _Stored(encoded, self._clock.monotonic() + ttl_seconds)
        elif held[segment_id].encoded != encoded:
            raise segment_id_reused()

    async def keep_staged(self, partition: Partition, segment_ids: Collection[str], *, ttl_seconds: float) -> None:
        held = self._index(partition).segments
        if any(segment_id not in held for segment_id in segment_ids):
            raise stage_expired()
        for segment_id in segment_ids:
            if held[segment_id].expires_at is not None:
                held[segment_id].expires_at = self._clock.monotonic() + ttl_seconds

    async def publish(self, publication: Publication) -> Manifest:
        self._require_own(publication.partition, publication.lease)
        index = self._index(publication.partition)
        published = index.manifest
        if published is not None and published.nonce == publication.nonce:
            return published
        self._leases.require_live(publication.lease)
        publication.require_follows(published)
        for entry in publication.segments:
            if not _is_listed(index.segments.get(entry.segment_id), entry):
                raise segment_missing(staged=entry.segment_id in publication.staged_ids)
        listed = {entry.segment_id for entry in publication.segments}
        for segment_id in listed:
            index.segments[segment_id].expires_at = None
        for entry in () if published is None else published.segments:
            if entry.segment_id not in listed and entry.segment_id in index.segments:
                index.segments[entry.segment_id].expires_at = self._clock.monotonic() + self.replaced_grace_seconds
        previous = INDEX_HISTORY_START if published is None else published.history_digest
        index.manifest = publication.manifest(previous)
        return index.manifest

    async def clear(self, partition: Partition, lease: Lease) -> None:
        self._require_own(partition, lease)
        self._leases.require_live(lease)
        index = self._index(partition)
        index.manifest = None
        index.segments = {name: stored for name, stored in index.segments.items() if stored.expires_at is not None}

    def _require_own(self, partition: Partition, lease: Lease) -> None:
        if lease.name != partition.name:
            raise lease_fenced(lease.fence, self._leases.highest_fence(partition.name))

    def _index(self, partition: Partition) -> _Index:
        """The partition's index, without the segments that have expired."""
        index = self._indexes.setdefault(partition.name, _Index())
        now = self._clock.monotonic()
        expired = [
            segment_id
            for segment_id, stored in index.segments.items()
            if stored.expires_at is not None and stored.expires_at <= now
        ]
        for segment_id in expired:
            del index.segments[segment_id]
        return index


def _is_listed(stored: _Stored | None, entry: SegmentEntry) -> bool:
    return stored is not None and len(stored.encoded) == entry.nbytes and checksum(stored.encoded) == entry.checksum
