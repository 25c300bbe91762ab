"""Layouts of segments: what one publication after another leaves in an index, and what a small change costs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from statistics import mean

import numpy as np
import pytest

from durable_memory.adapters.manifest_codec import segments_text
from durable_memory.app.semantic import index_delta
from durable_memory.app.semantic.index_delta import IndexDelta, StagedSegments, lay_out, live_records
from durable_memory.app.semantic.vector_view import VectorView, next_view
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus, content_digest
from durable_memory.domain.semantic.embedded_text import text_digest
from durable_memory.domain.semantic.generation import Metric, Normalization
from durable_memory.domain.semantic.manifest import Descriptor, Manifest, SegmentEntry, index_history
from durable_memory.domain.semantic.segment import FloatWidth
from tests.fixture_embedder import DIMENSION, floats, numbers_of
from tests.unit.app.world import START

NODES = 40
SEGMENT = 8
"""Records of a full segment in most of these tests, so that few nodes make many of them."""


class Index:
    """Segments and manifest as they would be published, and the view of them."""

    def __init__(self, width: FloatWidth = FloatWidth.FLOAT32) -> None:
        self.width = width
        self.view: VectorView | None = None
        self.texts: dict[str, str] = {}
        self.staged = StagedSegments(entries=(), staged={})
        self._segments: dict[str, bytes] = {}
        self._revisions: dict[str, int] = {}
        self._ids: Iterator[str] = map(str, itertools.count())

    def change(self, texts: Mapping[str, str | None]) -> None:
        """One refresh: nodes whose text is another now, or that are ACTIVE no longer (`None`)."""
        delta = IndexDelta()
        delta.take([self._node(node_id, text) for node_id, text in texts.items()], self.view)
        vectors = {record.text_digest: vector_of(text) for record, text in delta.wanted.values()}
        self.staged = lay_out(self.view, delta, vectors, dimension=DIMENSION, width=self.width, new_ids=self._ids)
        self._segments |= self.staged.staged
        self.view = next_view(self._manifest(self.staged.entries), self.view, self._segments.get)
        for node_id, text in texts.items():
            if text is None:
                self.texts.pop(node_id, None)
            else:
                self.texts[node_id] = text

    def _node(self, node_id: str, text: str | None) -> NodeRevision:
        self._revisions[node_id] = self._revisions.get(node_id, 0) + 1
        content = text or "gone"
        return NodeRevision(
            node_id=node_id,
            revision=self._revisions[node_id],
            kind=NodeKind.SEMANTIC,
            status=NodeStatus.ARCHIVED if text is None else NodeStatus.ACTIVE,
            content=content,
            content_digest=content_digest(content),
            occurred_at=START,
            created_at=START,
            updated_at=START,
            committed_at=datetime(2030, 1, 1, tzinfo=UTC),
            valid_from=1,
        )

    def _manifest(self, entries: tuple[SegmentEntry, ...]) -> Manifest:
        before = self.view.manifest if self.view else None
        revision = 1 if before is None else before.index_revision + 1
        return Manifest(
            descriptor=Descriptor(
                dimension=DIMENSION, metric=Metric.COSINE, normalization=Normalization.L2, width=self.width
            ),
            index_revision=revision,
            history_digest=index_history("0" * 64 if before is None else before.history_digest, revision, entries),
            fence=1,
            nonce=str(revision),
            source_history_id="h",
            source_revision=revision,
            segments=entries,
        )

    def require_exact(self) -> None:
        """Every node's present vector is there once, and nothing else counts."""
        assert self.view is not None
        assert len(self.view) == live_records(self.view.manifest.segments) == len(self.texts)
        assert sorted(record.node_id for record in self.view.records()) == sorted(self.texts)
        for node_id, text in self.texts.items():
            found = self.view.find(node_id)
            assert found is not None
            block, record = found
            assert record.text_digest == text_digest(text)
            expected = floats(vector_of(text)).astype("<f2" if self.width is FloatWidth.FLOAT16 else "<f4")
            assert self.view.vector(block, node_id).tolist() == expected.astype("<f4").tolist()
            assert block.rows[node_id] not in block.dead.tolist()
        dead = sum(len(block.dead) for block in self.view.blocks)
        assert dead == self.view.manifest.dead_count


def vector_of(text: str) -> bytes:
    return np.array(numbers_of(text), dtype="<f4").tobytes()


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_delta, "RECORDS_PER_SEGMENT", SEGMENT)
    monkeypatch.setattr(index_delta, "_SMALL", SEGMENT // 4)
    monkeypatch.setattr(index_delta, "_MOST_SMALL", 3)


@pytest.mark.parametrize("width", FloatWidth)
@pytest.mark.usefixtures("small_segments")
def test_after_any_changes_the_index_holds_exactly_the_present_vectors(width):
    chance = random.Random(5)
    index = Index(width)
    index.change({f"n{number}": f"text {number}" for number in range(NODES)})
    for turn in range(120):
        chosen = chance.sample(range(NODES), chance.choice((1, 1, 1, 7)))
        index.change(
            {
                f"n{number}": chance.choice((None, f"text {number} of turn {turn}", f"text {number}"))
                for number in chosen
            }
        )
        index.require_exact()
    assert index.view is not None
    assert len(index.view.blocks) <= NODES // (SEGMENT // 4) + 4
    assert index.view.manifest.dead_count <= len(index.view) + SEGMENT


@pytest.mark.usefixtures("small_segments")
def test_a_change_of_one_node_writes_no_more_in_a_large_namespace_than_in_a_small_one():
    def written(nodes: int) -> float:
        index = Index()
        index.change({f"n{number}": f"text {number}" for number in range(nodes)})
        sizes = []
        for turn in range(60):
            index.change({f"n{turn % nodes}": f"turn {turn}"})
            sizes.append(index.staged.nbytes)
        return mean(sizes)

    assert written(40 * SEGMENT) <= 1.1 * written(4 * SEGMENT)


def test_a_manifest_stays_small_however_many_records_were_removed():
    index = Index()
    nodes = [f"{number:05}-{'x' * 200}" for number in range(4_000)]
    index.change({node_id: node_id for node_id in nodes})
    index.change(dict.fromkeys(nodes[::2]))
    assert index.view is not None
    assert (len(index.view), index.view.manifest.dead_count) == (2_000, 2_000)
    assert len(segments_text(index.view.manifest.segments)) < 1_500


def test_a_segment_of_which_most_records_are_gone_is_written_anew_without_them():
    index = Index()
    index.change({f"n{number}": f"text {number}" for number in range(100)})
    index.change({f"n{number}": None for number in range(51)})
    index.require_exact()
    assert index.view is not None
    (entry,) = index.view.manifest.segments
    assert (entry.record_count, entry.removed) == (49, b"")
