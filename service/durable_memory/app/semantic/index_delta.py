"""From changed nodes to a new list of segments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from durable_memory.app.semantic.vector_view import Block, VectorView
from durable_memory.domain.node import NodeRevision, NodeStatus
from durable_memory.domain.semantic.embedded_text import embedded_text, text_digest
from durable_memory.domain.semantic.manifest import SegmentEntry
from durable_memory.domain.semantic.segment import FloatWidth, Segment, VectorRecord, checksum

RECORDS_PER_SEGMENT: Final = 4_096
_SMALL: Final = RECORDS_PER_SEGMENT // 4
_MOST_SMALL: Final = 16
_MOSTLY_DEAD: Final = 0.5


@dataclass(slots=True)
class IndexDelta:
    """What a publication has to add to and take from an index.

    `wanted`: text by node id, of ACTIVE nodes whose vector is not there. `removed`: nodes whose record has to go.
    """

    wanted: dict[str, tuple[VectorRecord, str]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)

    @property
    def empty(self) -> bool:
        return not self.wanted and not self.removed

    def take(self, nodes: Iterable[NodeRevision], view: VectorView | None) -> None:
        """Fold in current revisions; a later one of a node that was taken before wins."""
        for node in nodes:
            found = None if view is None else view.find(node.node_id)
            self.wanted.pop(node.node_id, None)
            self.removed.discard(node.node_id)
            self.replaced.discard(node.node_id)
            if node.status is not NodeStatus.ACTIVE:
                if found is not None:
                    self.removed.add(node.node_id)
                continue
            text = embedded_text(node)
            record = VectorRecord(node.node_id, node.revision, text_digest(text))
            if found is not None and found[1].text_digest == record.text_digest:
                continue
            if found is not None:
                self.replaced.add(node.node_id)
            self.wanted[node.node_id] = (record, text)

    def leave_out(self, text_digests: Collection[str]) -> None:
        """Give up texts that have no vector; a record of an earlier text of theirs goes."""
        for node_id in [node_id for node_id, (record, _) in self.wanted.items() if record.text_digest in text_digests]:
            del self.wanted[node_id]
            if node_id in self.replaced:
                self.replaced.discard(node_id)
                self.removed.add(node_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSegments:
    """The new segment list, and the encoded segments that are not published yet, by id."""

    entries: tuple[SegmentEntry, ...]
    staged: Mapping[str, bytes]

    @property
    def nbytes(self) -> int:
        return sum(len(encoded) for encoded in self.staged.values())


def lay_out(
    view: VectorView | None,
    delta: IndexDelta,
    vectors: Mapping[str, bytes],
    *,
    dimension: int,
    width: FloatWidth,
    new_ids: Iterable[str],
) -> StagedSegments:
    """Keep what stands, mark what goes, add new segments; merge small and mostly dead ones on the way.

    `vectors` are float32 by text digest, `new_ids` as many unused segment ids as are asked for. A delta of one node
    adds a small segment; after some of them they are merged, so that its cost does not grow with the namespace.
    """
    gone = delta.removed | delta.replaced
    kept: list[SegmentEntry] = []
    fresh: list[tuple[VectorRecord, bytes]] = [
        (record, _stored(vectors[record.text_digest], width)) for record, _ in delta.wanted.values()
    ]
    blocks = () if view is None else view.blocks
    updated = [_without(block, gone) for block in blocks]
    small = [entry for entry in updated if entry.live_count < _SMALL]
    for block, entry in zip(blocks, updated, strict=True):
        merge = (len(small) > _MOST_SMALL and entry.live_count < _SMALL) or (
            entry.live_count < entry.record_count * _MOSTLY_DEAD
        )
        if not merge:
            kept.append(entry)
            continue
        fresh += [(block.records[row], _row(block, row, width)) for row in entry.live_rows()]
    ids = iter(new_ids)
    staged: dict[str, bytes] = {}
    for start in range(0, len(fresh), RECORDS_PER_SEGMENT):
        part = fresh[start : start + RECORDS_PER_SEGMENT]
        segment_id = next(ids)
        encoded = Segment(
            dimension=dimension,
            width=width,
            records=tuple(record for record, _ in part),
            vectors=b"".join(vector for _, vector in part),
        ).encode()
        staged[segment_id] = encoded
        kept.append(
            SegmentEntry(
                segment_id=segment_id,
                checksum=checksum(encoded),
                nbytes=len(encoded),
                record_count=len(part),
            )
        )
    return StagedSegments(entries=tuple(kept), staged=staged)


def _without(block: Block, gone: set[str]) -> SegmentEntry:
    leaving = [block.rows[node_id] for node_id in gone if block.live(node_id) is not None]
    return block.entry.without(leaving) if leaving else block.entry


def _row(block: Block, row: int, width: FloatWidth) -> bytes:
    return _stored(block.matrix[row].astype("<f4").tobytes(), width)


def _stored(vector: bytes, width: FloatWidth) -> bytes:
    if width is FloatWidth.FLOAT32:
        return vector
    return np.frombuffer(vector, dtype="<f4").astype("<f2").tobytes()


def live_records(entries: Sequence[SegmentEntry]) -> int:
    return sum(entry.live_count for entry in entries)
