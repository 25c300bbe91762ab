"""A set of documents, indexed together and never changed after."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.postings import Counts, Postings, PostingsBuilder, merge_postings, narrow, side_by_side
from durable_memory.domain.lexical.document import (
    IndexedDocument,
    bm25f_field_tokens,
    coverage_document_tokens,
)
from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE

NO_TIME: Final = np.iinfo(np.int64).min
"""The occurrence time of a document that has none."""

_BUILT_AT_ONCE: Final = 4_096
"""More documents are built in parts: the arrays that tokens are counted in are ten times as large as the result."""

_Number = TypeVar("_Number", bound=np.generic)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """Whole microseconds since 1970, exactly."""
    return (time - _EPOCH) // _MICROSECOND


def label_term(key: str, value: str) -> str:
    """A label as a term; no two labels have the same."""
    return f"{len(key)}:{key}{value}"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Segment:
    """Documents in the order of their ids' UTF-8 bytes, so that a document's number is also its rank among equals.

    Attributes:
        ids: node ids, sorted.
        revisions: int64 [documents].
        kinds: uint8 [documents].
        occurred, updated: int64 [documents], microseconds since 1970; `NO_TIME` where there is none.
        lengths: unsigned [bm25f fields, documents], token counts.
        postings: by lexical profile.
        labels: which documents have which `label_term`.
    """

    ids: tuple[str, ...]
    revisions: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    occurred: NDArray[np.int64]
    updated: NDArray[np.int64]
    lengths: Counts
    postings: Mapping[str, Postings]
    labels: Postings
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        size = sum(map(sys.getsizeof, self.ids)) + sys.getsizeof(self.ids)
        size += self.revisions.nbytes + self.kinds.nbytes + self.occurred.nbytes + self.updated.nbytes
        size += self.lengths.nbytes
        size += sum(postings.nbytes for postings in (self.labels, *self.postings.values()))
        object.__setattr__(self, "nbytes", size)

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, node_id: str) -> int:
        """The number of the document with that id, -1 when it is not there."""
        number = bisect_left(self.ids, node_id)
        return number if number < len(self.ids) and self.ids[number] == node_id else -1


def build_segment(documents: Iterable[IndexedDocument], profiles: Collection[str]) -> Segment:
    """Index `documents`, of distinct ids, for each of `profiles`."""
    ordered = sorted(documents, key=lambda document: document.node_id)
    if len(ordered) <= _BUILT_AT_ONCE:
        return _built(ordered, profiles)
    starts = range(0, len(ordered), _BUILT_AT_ONCE)
    nobody = np.empty(0, dtype=np.int32)
    return merge_segments([(_built(ordered[start : start + _BUILT_AT_ONCE], profiles), nobody) for start in starts])


def _built(ordered: Sequence[IndexedDocument], profiles: Collection[str]) -> Segment:
    postings = {}
    lengths = narrow(np.zeros((0, len(ordered)), dtype=np.int64))
    if BM25F_PROFILE in profiles:
        postings[BM25F_PROFILE], lengths = _bm25f_postings(ordered)
    if COVERAGE_PROFILE in profiles:
        postings[COVERAGE_PROFILE] = _presence(ordered, coverage_document_tokens)
    return Segment(
        ids=tuple(document.node_id for document in ordered),
        revisions=np.array([document.revision for document in ordered], dtype=np.int64),
        kinds=np.array([document.kind for document in ordered], dtype=np.uint8),
        occurred=np.array(
            [NO_TIME if document.occurred_at is None else microseconds(document.occurred_at) for document in ordered],
            dtype=np.int64,
        ),
        updated=np.array([microseconds(document.updated_at) for document in ordered], dtype=np.int64),
        lengths=lengths,
        postings=postings,
        labels=_presence(ordered, _label_terms),
    )


def _label_terms(document: IndexedDocument) -> list[str]:
    return [label_term(key, value) for key, value in document.labels.items()]


def _presence(documents: Sequence[IndexedDocument], terms: Callable[[IndexedDocument], Iterable[str]]) -> Postings:
    builder = PostingsBuilder(field_count=1)
    for number, document in enumerate(documents):
        builder.add(number, 0, terms(document))
    return builder.build(len(documents), counted=False)


def _bm25f_postings(documents: Sequence[IndexedDocument]) -> tuple[Postings, Counts]:
    field_count = 1 + max((len(document.surroundings) for document in documents), default=0)
    builder = PostingsBuilder(field_count)
    lengths = np.zeros((field_count, len(documents)), dtype=np.int64)
    for number, document in enumerate(documents):
        for column, tokens in enumerate(bm25f_field_tokens(document)):
            builder.add(number, column, tokens)
            lengths[column, number] = len(tokens)
    return builder.build(len(documents), counted=True), narrow(lengths)


def merge_segments(parts: Sequence[tuple[Segment, NDArray[np.int32]]]) -> Segment:
    """One segment of the documents of all parts without the dead ones.

    Args:
        parts: each a segment and the sorted numbers of its dead documents; a living id is in one part only.
    """
    segments = [segment for segment, _ in parts]
    alive = [np.setdiff1d(np.arange(len(segment)), dead, assume_unique=True) for segment, dead in parts]
    ids = [segment.ids[number] for segment, numbers in zip(segments, alive, strict=True) for number in numbers.tolist()]
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
    rank = np.empty(len(ids), dtype=np.int32)
    rank[order] = np.arange(len(ids))
    renumbered = []
    start = 0
    for segment, numbers in zip(segments, alive, strict=True):
        new = np.full(len(segment), -1, dtype=np.int32)
        new[numbers] = rank[start : start + len(numbers)]
        renumbered.append(new)
        start += len(numbers)

    def gathered(column: Callable[[Segment], NDArray[_Number]]) -> NDArray[_Number]:
        values = [column(segment)[numbers] for segment, numbers in zip(segments, alive, strict=True)]
        return np.concatenate(values)[order]

    def merged(of: Callable[[Segment], Postings]) -> Postings:
        return merge_postings([of(segment) for segment in segments], renumbered, len(ids))

    return Segment(
        ids=tuple(ids[number] for number in order.tolist()),
        revisions=gathered(lambda segment: segment.revisions),
        kinds=gathered(lambda segment: segment.kinds),
        occurred=gathered(lambda segment: segment.occurred),
        updated=gathered(lambda segment: segment.updated),
        lengths=side_by_side([segment.lengths[:, numbers] for segment, numbers in zip(segments, alive, strict=True)])[
            :, order
        ],
        postings={
            profile: merged(lambda segment: segment.postings[profile])  # noqa: B023  called at once
            for profile in segments[0].postings
        },
        labels=merged(lambda segment: segment.labels),
    )
