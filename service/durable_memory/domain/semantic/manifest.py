"""Manifests: what the index of one partition consists of, at one index revision."""

from __future__ import annotations

from dataclasses import dataclass
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
    """A segment as the manifest lists it. `removed` are the node ids of its records that no longer count."""

    segment_id: str
    checksum: str
    nbytes: int
    record_count: int
    removed: tuple[str, ...] = ()

    @property
    def live_count(self) -> int:
        return self.record_count - len(self.removed)


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
        return sum(len(entry.removed) for entry in self.segments)

    @property
    def nbytes(self) -> int:
        return sum(entry.nbytes for entry in self.segments)


def index_history(previous: str, index_revision: int, segments: tuple[SegmentEntry, ...]) -> str:
    """The history digest after a publication: over the previous one, the new revision and what it lists."""
    parts = [previous.encode(), str(index_revision).encode()]
    for entry in segments:
        parts += [entry.segment_id.encode(), entry.checksum.encode(), str(len(entry.removed)).encode()]
        parts += [node_id.encode() for node_id in entry.removed]
    return digest_hex("index-history/v1", *parts)
