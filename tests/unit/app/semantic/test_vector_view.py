"""A view holds what its manifest lists, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from durable_memory.app.semantic.vector_view import next_view
from durable_memory.domain.errors import Reason
from durable_memory.domain.semantic.generation import Metric, Normalization
from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, Descriptor, Manifest, SegmentEntry
from durable_memory.domain.semantic.segment import FloatWidth, Segment, VectorRecord, checksum
from tests.unit.app.world import refused

DIMENSION = 4


def never(segment_id: str) -> bytes:
    pytest.fail(f"{segment_id} is there already")


def encoded_of(node_id: str) -> bytes:
    return Segment(
        dimension=DIMENSION,
        width=FloatWidth.FLOAT32,
        records=(VectorRecord(node_id, 1, "0" * 64),),
        vectors=b"\0" * 4 * DIMENSION,
    ).encode()


def listing(*node_ids: str) -> Manifest:
    """Of one segment for each node, whose id is the node's."""
    return Manifest(
        descriptor=Descriptor(
            dimension=DIMENSION, metric=Metric.COSINE, normalization=Normalization.L2, width=FloatWidth.FLOAT32
        ),
        index_revision=1,
        history_digest=INDEX_HISTORY_START,
        fence=1,
        nonce="n",
        source_history_id="h",
        source_revision=1,
        segments=tuple(
            SegmentEntry(
                segment_id=node_id,
                checksum=checksum(encoded_of(node_id)),
                nbytes=len(encoded_of(node_id)),
                record_count=1,
            )
            for node_id in node_ids
        ),
    )


def test_segments_are_told_apart_by_more_than_their_size() -> None:
    view = next_view(listing("a", "b"), None, encoded_of)
    assert [record.node_id for record in view.records()] == ["a", "b"]


def test_a_segment_that_was_stored_anew_is_not_read_again_and_is_known_by_its_new_id() -> None:
    before = next_view(listing("a"), None, encoded_of)
    (entry,) = before.manifest.segments
    after = next_view(replace(before.manifest, segments=(replace(entry, segment_id="a again"),)), before, never)
    assert [block.entry.segment_id for block in after.blocks] == ["a again"]
    assert after.blocks[0].matrix is before.blocks[0].matrix


@pytest.mark.parametrize("there", [{"a": "b", "b": "a"}, {"a": "a", "b": "a"}])
def test_a_whole_segment_in_the_place_of_another_is_damage(there: dict[str, str]) -> None:
    with refused(Reason.DATA_CORRUPTED, what="segment"):
        next_view(listing("a", "b"), None, lambda segment_id: encoded_of(there[segment_id]))
