"""The vectors of one partition in memory, at one index revision: immutable, and cheap to derive the next one from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.manifest import Manifest, SegmentEntry
from durable_memory.domain.semantic.segment import FloatWidth, VectorRecord, decode_segment

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


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One record and its cosine to a query, recomputed in float64."""

    record: VectorRecord
    similarity: float


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A decoded segment. `matrix` is float32 [records, dimension], whatever width it was stored in."""

    entry: SegmentEntry
    records: tuple[VectorRecord, ...]
    rows: Mapping[str, int]
    matrix: NDArray[np.float32]
    dead: NDArray[np.intp]

    @classmethod
    def decode(cls, entry: SegmentEntry, encoded: bytes) -> Block:
        """Raises: DATA_CORRUPTED if it is not what the manifest lists."""
        segment = decode_segment(encoded)
        if len(segment.records) != entry.record_count or len(encoded) != entry.nbytes:
            raise DomainError(Reason.DATA_CORRUPTED, "a vector segment is not the one listed", what="segment")
        stored = "<f2" if segment.width is FloatWidth.FLOAT16 else "<f4"
        matrix = np.frombuffer(segment.vectors, dtype=stored).reshape(-1, segment.dimension).astype(np.float32)
        rows = {record.node_id: row for row, record in enumerate(segment.records)}
        return cls(entry, segment.records, rows, matrix, _dead(rows, entry))

    def with_entry(self, entry: SegmentEntry) -> Block:
        """The same segment with other records removed."""
        if entry.removed == self.entry.removed:
            return self
        return Block(entry, self.records, self.rows, self.matrix, _dead(self.rows, entry))

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes + _RECORD_BYTES * len(self.records)

    def live(self, node_id: str) -> VectorRecord | None:
        row = self.rows.get(node_id)
        if row is None or node_id in self.entry.removed:
            return None
        return self.records[row]


class VectorView:
    """All live vectors of a partition. Searching it is exact."""

    __slots__ = ("blocks", "key", "manifest")

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

    def scores(self, queries: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """For each block float32 [records, queries]; dead records are -inf. One matrix product serves all queries."""
        result = []
        for block in self.blocks:
            scores: NDArray[np.float32] = block.matrix @ queries.T
            if len(block.dead):
                scores[block.dead] = -np.inf
            result.append(scores)
        return result

    def neighbours(
        self, query: NDArray[np.float32], scores: Sequence[NDArray[np.float32]], column: int, start: int, count: int
    ) -> list[Neighbour]:
        """The records at ranks `start` .. `start + count` (from 0), best first, re-scored in float64.

        The order is that of the float64 dot product, summed in the order of the dimensions, so that it never depends on
        how many queries shared a matrix product; ties by node id.
        """
        flat = np.concatenate([block[:, column] for block in scores]) if scores else np.empty(0, dtype=np.float32)
        wanted = min(start + count, len(flat))
        if wanted == 0:
            return []
        # float32 scores of near neighbours may be in the wrong order; a margin around the cut is re-scored with them.
        taken = min(len(flat), wanted + _MARGIN)
        places = np.argpartition(flat, len(flat) - taken)[len(flat) - taken :]
        places = places[np.isfinite(flat[places])]
        exact = query.astype(np.float64)
        found = []
        for place in places.tolist():
            block, row = self._at(place)
            similarity = float((block.matrix[row].astype(np.float64) * exact).sum())
            found.append(Neighbour(block.records[row], similarity))
        found.sort(key=lambda item: (-item.similarity, item.record.node_id))
        return found[start:wanted]

    def _at(self, place: int) -> tuple[Block, int]:
        for block in self.blocks:
            if place < len(block.records):
                return block, place
            place -= len(block.records)
        raise IndexError(place)

    def records(self) -> Iterator[VectorRecord]:
        """All live records."""
        for block in self.blocks:
            removed = set(block.entry.removed)
            yield from (record for record in block.records if record.node_id not in removed)


_MARGIN: Final = 32


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


def _dead(rows: Mapping[str, int], entry: SegmentEntry) -> NDArray[np.intp]:
    return np.array(sorted(rows[node_id] for node_id in entry.removed if node_id in rows), dtype=np.intp)
