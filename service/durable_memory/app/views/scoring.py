"""What the terms of a query add to each document: the vectorised form of `domain/lexical/bm25f.py`.

Every expression is evaluated elementwise in float64 in the order of the reference, so that both give the same bits.

All terms of a query are worked on at once. A call of NumPy costs a microsecond before it does anything, as much as the
postings of most terms take: one call for each step, not for each step and term, made queries several times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.layers import Layer, LayerStack
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

_WEIGHTS: Final = np.array(FIELD_WEIGHTS).reshape(-1, 1)
_NO_NUMBERS: Final = np.empty(0, dtype=np.intp)
_COUNTED_AT_ONCE: Final = 256
"""Terms whose postings are brought together to be counted; a query may have tens of thousands."""


@dataclass(frozen=True, slots=True, eq=False)
class TermMatches:
    """What some terms add to the documents that have them.

    Matches stand in runs, the postings of one term in one layer: layer by layer, and terms in order within. So those of
    one document are in the order of the terms.

    Attributes:
        run_terms: for each run the place of its term among the terms.
        run_sizes: how many matches each run has, never 0.
        documents: intp [matches], numbers within the index, ascending within a run. Dead ones are among them.
        scores: float64 [matches]; `None` where each adds 1.
        frequencies: for each term the n of its idf, of living documents.
        weights: for each term its idf; for the coverage profile 1.
    """

    run_terms: Sequence[int]
    run_sizes: Sequence[int]
    documents: NDArray[np.intp]
    scores: NDArray[np.float64] | None
    frequencies: Sequence[int]
    weights: Sequence[float]

    @property
    def match_weights(self) -> NDArray[np.float64]:
        """float64 [matches]: the weight of the term of each."""
        return _spread(self.weights, self.run_terms, self.run_sizes)


@dataclass(frozen=True, slots=True, eq=False)
class _Gathered:
    """The postings of some terms, in runs as in `TermMatches`. `places` are documents as each layer numbers them."""

    run_terms: list[int]
    run_sizes: list[int]
    places: list[tuple[Layer, NDArray[np.int32]]]
    documents: NDArray[np.intp]
    counts: Counts


class TermScorer:
    """Scores terms of one profile against one state of a namespace. Immutable.

    Attributes:
        is_alive: bool [documents of the index], `None` where all are alive.
    """

    def __init__(self, stack: LayerStack, profile: str) -> None:
        self.profile = profile
        self._document_count = stack.document_count
        self._averages = [total.average for total in stack.totals]
        # A field that no document has is divided by 1: its counts are 0 anyway.
        self._divisors = np.array([average or 1.0 for average in self._averages]).reshape(-1, 1)
        self._sources = [(layer, layer.segment.postings[profile]) for layer in stack.layers]
        self.is_alive = stack.is_alive()

    def matches(self, terms: Sequence[str]) -> TermMatches:
        """What each of `terms`, which are sorted, adds to the documents that have it."""
        found = self._gather(terms)
        frequencies = self._frequencies(found, len(terms))
        weights = list(map(self._weight, frequencies))
        if found is None:
            return TermMatches((), (), _NO_NUMBERS, None, frequencies, weights)
        scores = None
        if self.profile != COVERAGE_PROFILE:
            scores = self._scores(found, _spread(weights, found.run_terms, found.run_sizes))
        return TermMatches(found.run_terms, found.run_sizes, found.documents, scores, frequencies, weights)

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """The n of the idf of each of `terms`."""
        counted: dict[str, int] = {}
        for start in range(0, len(terms), _COUNTED_AT_ONCE):
            some = terms[start : start + _COUNTED_AT_ONCE]
            counted.update(zip(some, self._frequencies(self._gather(some), len(some)), strict=True))
        return counted

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

    def _gather(self, terms: Sequence[str]) -> _Gathered | None:
        """The postings of `terms`, `None` where there are none."""
        run_terms, run_sizes, places, documents, counts = [], [], [], [], []
        for layer, postings in self._sources:
            rows = []
            for place, term in enumerate(terms):
                row = postings.row(term)
                if row is not None:
                    rows.append(row)
                    run_terms.append(place)
                    run_sizes.append(row.stop - row.start)
            if rows:
                held = np.concatenate([postings.documents[row] for row in rows])
                places.append((layer, held))
                documents.append(held + np.intp(layer.start))
                counts.append(np.concatenate([postings.counts[:, row] for row in rows], axis=1))
        if not places:
            return None
        return _Gathered(run_terms, run_sizes, places, _joined(documents), side_by_side(counts))

    def _frequencies(self, found: _Gathered | None, term_count: int) -> list[int]:
        """How many living documents have each term in their own text, or around it where none has."""
        own, anywhere = [0] * term_count, [0] * term_count
        if found is None:
            return anywhere
        starts = list(accumulate(found.run_sizes[:-1], initial=0))
        alive = None if self.is_alive is None else self.is_alive[found.documents]
        sizes = found.run_sizes if alive is None else np.add.reduceat(alive, starts, dtype=np.intp).tolist()
        own_sizes = sizes
        if len(found.counts):
            in_own = found.counts[0] != 0
            if alive is not None:
                in_own &= alive
            own_sizes = np.add.reduceat(in_own, starts, dtype=np.intp).tolist()
        for term, own_size, size in zip(found.run_terms, own_sizes, sizes, strict=True):
            own[term] += own_size
            anywhere[term] += size
        return [in_own or around for in_own, around in zip(own, anywhere, strict=True)]

    def _scores(self, found: _Gathered, idfs: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [matches]: `term_score` of `weighted_frequency`, in place where that keeps the order of operations.

        Args:
            idfs: float64 [matches]; they are overwritten.
        """
        fields = len(found.counts)
        lengths = side_by_side([layer.segment.lengths.take(held, axis=1) for layer, held in found.places])
        norms = LENGTH_SLOPE * lengths[:fields].astype(np.float64)
        norms /= self._divisors[:fields]
        norms += LENGTH_BASE
        parts = _WEIGHTS[:fields] * found.counts.astype(np.float64)
        parts /= norms
        tf: NDArray[np.float64] = parts[0]
        for part in parts[1:]:  # field by field: the order of the sum is part of the profile
            tf += part
        scores = idfs
        scores *= tf
        scores *= SATURATION_SCALE
        tf += SATURATION
        scores /= tf
        return scores


def _spread(weights: Sequence[float], run_terms: Sequence[int], run_sizes: Sequence[int]) -> NDArray[np.float64]:
    return np.repeat(np.array([weights[term] for term in run_terms], dtype=np.float64), run_sizes)


def _joined(parts: list[NDArray[np.intp]]) -> NDArray[np.intp]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
