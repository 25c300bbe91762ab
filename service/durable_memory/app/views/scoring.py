"""What each term of a query adds to each document: the vectorised form of `domain/lexical/bm25f.py`.

Every expression is evaluated elementwise in float64 in the order of the reference, so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.layers import FieldTotals, Layer
from durable_memory.app.views.postings import Counts
from durable_memory.domain.lexical.bm25f import (
    FIELD_WEIGHTS,
    LENGTH_BASE,
    LENGTH_SLOPE,
    SATURATION,
    SATURATION_SCALE,
    inverse_document_frequency,
    weighted_frequency,
)
from durable_memory.domain.lexical.profiles import COVERAGE_PROFILE

_NO_NUMBERS: Final = np.empty(0, dtype=np.intp)
_NO_SCORES: Final = np.empty(0)


_Match: TypeAlias = tuple[Layer, NDArray[np.int32], list[Counts]]
"""A layer, its living documents that have a term, and how often in each field."""


@dataclass(frozen=True, slots=True, eq=False)
class TermImpact:
    """One term over the living documents of an index.

    Attributes:
        documents: intp [matches], numbers within the index, ascending.
        scores: float64 [matches], what the term adds; a single number where it is the same for all.
        frequency: the n of the term's idf.
        weight: its idf; for the coverage profile 1.
    """

    documents: NDArray[np.intp]
    scores: NDArray[np.float64] | float
    frequency: int
    weight: float

    @property
    def nbytes(self) -> int:
        return 200 + 2 * self.documents.nbytes  # the object and its place in a dictionary, then both arrays


class TermScorer:
    """Scores single terms of one profile against one state of a namespace. Immutable."""

    def __init__(
        self, layers: Sequence[Layer], profile: str, document_count: int, totals: Sequence[FieldTotals]
    ) -> None:
        self._layers = layers
        self.profile = profile
        self._document_count = document_count
        self._averages = [total.average for total in totals]

    def frequency(self, term: str) -> int:
        """The n of the term's idf: documents that have it in their own text, or around it where none has."""
        return _frequency([(documents, counts) for _, documents, counts in self._matches(term)])

    def impact(self, term: str) -> TermImpact:
        """What `term` adds to each document that has it."""
        matches = list(self._matches(term))
        frequency = _frequency([(documents, counts) for _, documents, counts in matches])
        numbers = [documents + np.intp(layer.start) for layer, documents, _ in matches]
        found = np.concatenate(numbers) if numbers else _NO_NUMBERS
        if self.profile == COVERAGE_PROFILE:
            return TermImpact(found, 1.0, frequency, 1.0)
        idf = inverse_document_frequency(self._document_count, frequency)
        scores = [idf * tf * SATURATION_SCALE / (tf + SATURATION) for tf in map(self._weighted_frequencies, matches)]
        return TermImpact(found, np.concatenate(scores) if scores else _NO_SCORES, frequency, idf)

    def _matches(self, term: str) -> Iterator[_Match]:
        for layer in self._layers:
            postings = layer.segment.postings[self.profile]
            row = postings.row(term)
            if row is None:
                continue
            documents = postings.documents[row]
            counts = [column[row] for column in postings.counts]
            alive = layer.living(documents)
            if alive is not None:
                documents = documents[alive]
                counts = [column[alive] for column in counts]
            if len(documents):
                yield layer, documents, counts

    def weighted_frequency(self, layer: Layer, document: int, counts: Sequence[int]) -> float:
        """The tf of a term that stands `counts` times in the fields of one document of a layer."""
        frequency = 0.0
        for field, count in enumerate(counts):
            if count:
                length = int(layer.segment.lengths[field][document])
                frequency += weighted_frequency(field, count, length, self._averages[field])
        return frequency

    def _weighted_frequencies(self, match: _Match) -> NDArray[np.float64]:
        layer, documents, counts = match
        frequency = np.zeros(len(documents))
        for field, (column, lengths) in enumerate(zip(counts, layer.segment.lengths, strict=True)):
            average = self._averages[field]
            if average > 0.0:
                norm = LENGTH_BASE + LENGTH_SLOPE * lengths[documents].astype(np.float64) / average
                frequency += FIELD_WEIGHTS[field] * column.astype(np.float64) / norm
        return frequency


def _frequency(matches: Sequence[tuple[NDArray[np.int32], Sequence[Counts]]]) -> int:
    own = sum(int(np.count_nonzero(counts[0])) for _, counts in matches if counts)
    return own or sum(len(documents) for documents, _ in matches)


class TermImpacts:
    """The impacts of the terms that were asked for, kept while they fit.

    One for each state of a namespace and profile; threads may share it: at worst one computes again what another has.
    """

    def __init__(self, scorer: TermScorer, max_bytes: int) -> None:
        self.scorer = scorer
        self._max_bytes = max_bytes
        self._held_bytes = 0
        self._impacts: dict[str, TermImpact] = {}

    def of(self, term: str) -> TermImpact:
        """What `term` adds to each document that has it."""
        impact = self._impacts.get(term)
        if impact is None:
            impact = self.scorer.impact(term)
            self._hold(term, impact)
        return impact

    def _hold(self, term: str, impact: TermImpact) -> None:
        cost = impact.nbytes + len(term)
        if cost > self._max_bytes:
            return
        if self._held_bytes + cost > self._max_bytes:  # starting anew is as good as order of use, and has none
            self._impacts = {}
            self._held_bytes = 0
        self._impacts[term] = impact
        self._held_bytes += cost
