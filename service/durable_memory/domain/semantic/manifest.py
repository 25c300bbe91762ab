"""Manifests: what the index of one partition consists of, at one index revision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from durable_memory.domain.canonical import digest_hex
from durable_memory.domain.semantic.segment import FloatWidth

MANIFEST_FORMAT: Final = 1
INDEX_HISTORY_START: Final = "0" * 64
"""The history digest of a partition that nothing was published to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """What every vector of a partition has in common. A publication with another one is refused."""

    dimension: int
    metric: str
    normalization: str
    width: FloatWidth


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEntry:
    """A segment as the manifest lists it.

    `removed` tells which of its records no longer count: a bit for each record, the first in the lowest bit of the
    first byte, and empty where all count. So a manifest, which is read by every recall and written by every change,
    stays small however many records were removed.
    """

    segment_id: str
    checksum: str
    nbytes: int
    record_count: int
    removed: bytes = b""

    def __post_init__(self) -> None:
        if self.removed:
            bits = int.from_bytes(self.removed, "little")
            if not bits or len(self.removed) != _bytes_for(self.record_count) or bits >> self.record_count:
                raise ValueError("the removed records of a segment are not among those that it has")

    @property
    def removed_count(self) -> int:
        return int.from_bytes(self.removed, "little").bit_count()

    @property
    def live_count(self) -> int:
        return self.record_count - self.removed_count

    def is_removed(self, row: int) -> bool:
        """Whether the record at `row`, from 0, no longer counts."""
        return bool(self.removed) and bool(self.removed[row >> 3] >> (row & 7) & 1)

    def live_rows(self) -> Iterator[int]:
        """The rows of the records that count."""
        return (row for row in range(self.record_count) if not self.is_removed(row))

    def without(self, rows: Iterable[int]) -> SegmentEntry:
        """The same segment without these records as well."""
        bits = bytearray(self.removed or bytes(_bytes_for(self.record_count)))
        for row in rows:
            bits[row >> 3] |= 1 << (row & 7)
        return replace(self, removed=bytes(bits) if any(bits) else b"")


def _bytes_for(record_count: int) -> int:
    return (record_count + 7) // 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The published state. `fence` is the highest seen, `nonce` that of the publication which made it.

    `source_revision` is the namespace revision that the vectors were made of. A node id is live in one segment only.
    """

    descriptor: Descriptor
    index_revision: int
    history_digest: str
    fence: int
    nonce: str
    source_history_id: str
    source_revision: int
    segments: tuple[SegmentEntry, ...] = ()
    format: int = MANIFEST_FORMAT

    @property
    def live_count(self) -> int:
        return sum(entry.live_count for entry in self.segments)

    @property
    def dead_count(self) -> int:
        return sum(entry.removed_count for entry in self.segments)

    @property
    def nbytes(self) -> int:
        return sum(entry.nbytes for entry in self.segments)


def index_history(previous: str, index_revision: int, segments: tuple[SegmentEntry, ...]) -> str:
    """The history digest after a publication: over the previous one, the new revision and what it lists."""
    parts = [previous.encode(), str(index_revision).encode()]
    for entry in segments:
        parts += [entry.segment_id.encode(), entry.checksum.encode(), entry.removed]
    return digest_hex("index-history/v1", *parts)
