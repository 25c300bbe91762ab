"""The vectors of one partition in memory, at one index revision: immutable, and cheap to derive the next one from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.segment import Segment
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.manifest import Manifest, SegmentEntry
from durable_memory.domain.semantic.segment import FloatWidth, VectorRecord, checksum, decode_segment

_RECORD_BYTES: Final = 320
"""What a record takes beside its vector: ids, digest, and its places in tables."""


@dataclass(frozen=True, slots=True)
class VectorKey:
    """What a vector view is valid for."""

    index_revision: int
    history_digest: str

    @classmethod
    def of(cls, manifest: Manifest) -> VectorKey:
        return cls(manifest.index_revision, manifest.history_digest)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A decoded segment. `matrix` is float32 [records, dimension], whatever width it was stored in.

    `revisions` are the records' node revisions, int64. `documents` is a place for where its nodes are found in segments
    of a namespace view (rows, numbers), which is looked up once for each pair of segments.
    """

    entry: SegmentEntry
    records: tuple[VectorRecord, ...]
    rows: Mapping[str, int]
    matrix: NDArray[np.float32]
    dead: NDArray[np.intp]
    revisions: NDArray[np.int64]
    documents: WeakKeyDictionary[Segment, tuple[NDArray[np.intp], NDArray[np.intp]]]

    @classmethod
    def decode(cls, entry: SegmentEntry, encoded: bytes) -> Block:
        """Raises: DATA_CORRUPTED if it is not what the manifest lists."""
        segment = decode_segment(encoded)
        if (len(segment.records), len(encoded), checksum(encoded)) != (
            entry.record_count,
            entry.nbytes,
            entry.checksum,
        ):
            raise DomainError(Reason.DATA_CORRUPTED, "a vector segment is not the one listed", what="segment")
        stored = "<f2" if segment.width is FloatWidth.FLOAT16 else "<f4"
        matrix = np.frombuffer(segment.vectors, dtype=stored).reshape(-1, segment.dimension).astype(np.float32)
        rows = {record.node_id: row for row, record in enumerate(segment.records)}
        revisions = np.array([record.revision for record in segment.records], dtype=np.int64)
        return cls(entry, segment.records, rows, matrix, _dead(entry), revisions, WeakKeyDictionary())

    def with_entry(self, entry: SegmentEntry) -> Block:
        """The same segment as a manifest lists it: with other records removed, or stored anew under another id."""
        if entry == self.entry:
            return self
        return replace(self, entry=entry, dead=_dead(entry))

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes + _RECORD_BYTES * len(self.records)

    def live(self, node_id: str) -> VectorRecord | None:
        row = self.rows.get(node_id)
        if row is None or self.entry.is_removed(row):
            return None
        return self.records[row]


class VectorView:
    """All live vectors of a partition. Searching it is exact."""

    __slots__ = ("__weakref__", "blocks", "key", "manifest")

    def __init__(self, manifest: Manifest, blocks: Sequence[Block]) -> None:
        self.manifest: Final = manifest
        self.key: Final = VectorKey.of(manifest)
        self.blocks: Final = tuple(blocks)

    def __len__(self) -> int:
        return self.manifest.live_count

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)

    def find(self, node_id: str) -> tuple[Block, VectorRecord] | None:
        """The block and live record of a node."""
        for block in reversed(self.blocks):
            record = block.live(node_id)
            if record is not None:
                return block, record
        return None

    def vector(self, block: Block, node_id: str) -> NDArray[np.float32]:
        row: NDArray[np.float32] = block.matrix[block.rows[node_id]]
        return row

    def records(self) -> Iterator[VectorRecord]:
        """All live records."""
        for block in self.blocks:
            yield from (block.records[row] for row in block.entry.live_rows())


def next_view(manifest: Manifest, previous: VectorView | None, encoded: Callable[[str], bytes | None]) -> VectorView:
    """The view of `manifest`, with the blocks that `previous` has already.

    `encoded` gives the segments that it does not have.

    Raises: DATA_CORRUPTED if one is missing or damaged.
    """
    held = {} if previous is None else {block.entry.checksum: block for block in previous.blocks}
    blocks = []
    for entry in manifest.segments:
        block = held.get(entry.checksum)
        if block is None:
            stored = encoded(entry.segment_id)
            if stored is None:
                raise DomainError(Reason.DATA_CORRUPTED, "a listed vector segment is missing", what="segment")
            block = Block.decode(entry, stored)
        blocks.append(block.with_entry(entry))
    return VectorView(manifest, blocks)


def missing_segments(manifest: Manifest, previous: VectorView | None) -> list[str]:
    """Ids of the segments that have to be fetched for `next_view`."""
    held = set() if previous is None else {block.entry.checksum for block in previous.blocks}
    return [entry.segment_id for entry in manifest.segments if entry.checksum not in held]


def _dead(entry: SegmentEntry) -> NDArray[np.intp]:
    return np.flatnonzero(np.unpackbits(np.frombuffer(entry.removed, dtype=np.uint8), bitorder="little"))
