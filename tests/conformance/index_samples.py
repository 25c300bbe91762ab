"""Partitions, segments and publications for tests of indexes."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.embedded_text import text_digest
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import Descriptor, Manifest, SegmentEntry
from durable_memory.domain.semantic.segment import FloatWidth, Segment, VectorRecord, checksum
from durable_memory.ports.leases import Lease, LeaseStore
from durable_memory.ports.vector_index import Publication, VectorIndex

DIMENSION: Final = 4
LONG_SECONDS: Final = 600.0
"""A TTL that no test outlives."""

SHORT_SECONDS: Final = 0.15
"""A TTL that a test waits for the end of."""

GROWING_SECONDS: Final = (0.5, 2.0, 8.0, 30.0)
"""TTLs for what has to be done in time, and is tried again with the next one by a machine that was too slow for it."""

PATIENT: Final[Mapping[str, Any]] = {
    "connect_timeout_seconds": 20.0,
    "acquire_timeout_seconds": 20.0,
    "call_timeout_seconds": 20.0,
    "transfer_timeout_seconds": 30.0,
    "look_timeout_seconds": 20.0,
}
"""What a Redis server that is well may take, on a machine that has other things to do."""

DESCRIPTOR: Final = Descriptor(dimension=DIMENSION, metric="COSINE", normalization="L2", width=FloatWidth.FLOAT32)
AUTHORITY: Final = "a" * 64


def partition_of(scope: str, authority: str = AUTHORITY) -> Partition:
    return Partition(Namespace("acme", "user-1", scope), authority)


def fresh(prefix: str = "id") -> str:
    """An id, nonce or owner that nobody has used."""
    return f"{prefix}-{uuid.uuid4().hex}"


def encoded_segment(node_ids: Sequence[str], *, width: FloatWidth = FloatWidth.FLOAT32, revision: int = 1) -> bytes:
    """A segment with one record per node, whose vectors say which node and revision they are of."""
    floats = [float(number) for row in range(len(node_ids)) for number in (row, revision, 0, 1)]
    code = "f" if width is FloatWidth.FLOAT32 else "e"
    return Segment(
        dimension=DIMENSION,
        width=width,
        records=tuple(VectorRecord(node_id, revision, text_digest(node_id)) for node_id in node_ids),
        vectors=struct.pack(f"<{len(floats)}{code}", *floats),
    ).encode()


def entry_of(encoded: bytes, segment_id: str, record_count: int, removed: bytes = b"") -> SegmentEntry:
    return SegmentEntry(
        segment_id=segment_id,
        checksum=checksum(encoded),
        nbytes=len(encoded),
        record_count=record_count,
        removed=removed,
    )


async def grant(
    leases: LeaseStore, partition: Partition, *, owner: str | None = None, floor: int = 0, ttl: float = LONG_SECONDS
) -> Lease:
    return await leases.acquire(
        partition.name, owner or fresh("owner"), ttl_seconds=ttl, floor=floor, nonce=fresh("nonce")
    )


async def stage(
    index: VectorIndex,
    partition: Partition,
    node_ids: Sequence[str] = ("n1", "n2"),
    *,
    ttl: float = LONG_SECONDS,
    width: FloatWidth = FloatWidth.FLOAT32,
    revision: int = 1,
) -> SegmentEntry:
    """A segment that is staged under an id of its own."""
    segment_id = fresh("segment")
    encoded = encoded_segment(node_ids, width=width, revision=revision)
    await index.stage(partition, segment_id, encoded, ttl_seconds=ttl)
    return entry_of(encoded, segment_id, len(node_ids))


def publication(
    partition: Partition,
    lease: Lease,
    *staged: SegmentEntry,
    after: Manifest | None = None,
    kept: tuple[SegmentEntry, ...] = (),
    **changes: Any,
) -> Publication:
    """What follows `after`: the kept segments, then the staged ones."""
    made = Publication(
        partition=partition,
        lease=lease,
        expected_index_revision=0 if after is None else after.index_revision,
        descriptor=DESCRIPTOR,
        segments=(*kept, *staged),
        staged_ids=frozenset(entry.segment_id for entry in staged),
        source_history_id="history",
        source_revision=1,
        nonce=fresh("nonce"),
    )
    return replace(made, **changes)


async def publish(
    index: VectorIndex, partition: Partition, lease: Lease, *, after: Manifest | None = None, **changes: Any
) -> Manifest:
    """Publish one new segment beside those of `after`."""
    entry = await stage(index, partition)
    kept = () if after is None else after.segments
    return await index.publish(publication(partition, lease, entry, after=after, kept=kept, **changes))
