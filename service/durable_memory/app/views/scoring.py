"""What each term of a query adds to each document: the vectorised form of `domain/lexical/bm25f.py`.

Every expression is evaluated elementwise in float64 in the order of the reference, so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.layers import FieldTotals, Layer
from durable_memory.app.views.postings import Counts, side_by_side
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
_WEIGHTS: Final = np.array(FIELD_WEIGHTS).reshape(-1, 1)


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


@dataclass(frozen=True, slots=True, eq=False)
class _Matches:
    """The living documents that have a term: their numbers within the index, and counts and lengths by field."""

    documents: NDArray[np.intp]
    counts: Counts
    lengths: Counts

    @property
    def frequency(self) -> int:
        """Documents that have the term in their own text, or around it where none has."""
        own = np.count_nonzero(self.counts[0]) if len(self.counts) else 0
        return int(own) or len(self.documents)


class TermScorer:
    """Scores single terms of one profile against one state of a namespace. Immutable."""

    def __init__(
        self, layers: Sequence[Layer], profile: str, document_count: int, totals: Sequence[FieldTotals]
    ) -> None:
        self.profile = profile
        self._document_count = document_count
        self._averages = [total.average for total in totals]
        # A field that no document has is divided by 1: its counts are 0 anyway.
        self._divisors = np.array([average or 1.0 for average in self._averages]).reshape(-1, 1)
        self._sources = [(layer, layer.segment.postings[profile]) for layer in layers]

    def impact(self, term: str) -> TermImpact:
        """What `term` adds to each document that has it."""
        matches = self._matches(term)
        if matches is None:
            return TermImpact(_NO_NUMBERS, 0.0, 0, self._weight(0))
        weight = self._weight(matches.frequency)
        if self.profile == COVERAGE_PROFILE:
            return TermImpact(matches.documents, weight, matches.frequency, weight)
        tf = self._weighted_frequencies(matches)
        scores = weight * tf * SATURATION_SCALE / (tf + SATURATION)
        return TermImpact(matches.documents, scores, matches.frequency, weight)

    def weighted_frequency(self, layer: Layer, document: int, counts: Sequence[int]) -> float:
        """The tf of a term that stands `counts` times in the fields of one document of a layer."""
        frequency = 0.0
        for field, count in enumerate(counts):
            if count:
                length = int(layer.segment.lengths[field, document])
                frequency += weighted_frequency(field, count, length, self._averages[field])
        return frequency

    def _weight(self, frequency: int) -> float:
        if self.profile == COVERAGE_PROFILE:
            return 1.0
        return inverse_document_frequency(self._document_count, frequency)

    def _matches(self, term: str) -> _Matches | None:
        documents, counts, lengths = [], [], []
        for layer, postings in self._sources:
            row = postings.row(term)
            if row is None:
                continue
            held, held_counts = postings.documents[row], postings.counts[:, row]
            alive = layer.living(held)
            if alive is not None:
                held, held_counts = held[alive], held_counts[:, alive]
            documents.append(held + np.intp(layer.start))
            counts.append(held_counts)
            lengths.append(layer.segment.lengths[:, held])
        if not documents:
            return None
        return _Matches(np.concatenate(documents), side_by_side(counts), side_by_side(lengths))

    def _weighted_frequencies(self, matches: _Matches) -> NDArray[np.float64]:
        fields = len(matches.counts)
        norms = LENGTH_BASE + LENGTH_SLOPE * matches.lengths.astype(np.float64) / self._divisors[:fields]
        parts = _WEIGHTS[:fields] * matches.counts.astype(np.float64) / norms
        frequency: NDArray[np.float64] = parts[0]
        for part in parts[1:]:  # field by field: the order of the sum is part of the profile
            frequency += part
        return frequency


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
