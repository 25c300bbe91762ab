"""What the terms of a query add to each document: the vectorised form of `domain/lexical/bm25f.py`.

Every expression is evaluated elementwise in float64 in the order of the reference, so that both give the same bits.

Two things make it fast. All terms of a query are worked on at once, and queries that wait together share the steps that
are short, because a call of NumPy costs a microsecond before it does anything. And few documents are scored: what a
posting can add at most is known from its column of counts alone, whatever the lengths of the document's fields are, and
that rules out all but some dozens of documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeVar

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

_Number = TypeVar("_Number", bound=np.integer)
_WEIGHTS: Final = np.array(FIELD_WEIGHTS).reshape(-1, 1)
_ROUNDING: Final = 1.0 + 1e-9
"""More than what the roundings of a score can add to it."""

_ONE_FIELD: Final[Counts] = np.zeros((1, 0), dtype=np.uint8)
_NO_NUMBERS: Final = np.empty(0, dtype=np.intp)
_COUNTED_AT_ONCE: Final = 256
"""Terms whose postings are brought together to be counted; a query may have hundreds of thousands."""


@dataclass(frozen=True, slots=True, eq=False)
class TermMatches:
    """The postings of the terms of a query in an index, dead documents included.

    They stand in runs, each of one term in one layer: layer by layer, and terms in order within. So those of one
    document are in the order of the terms.

    Attributes:
        run_terms: for each run the place of its term among the terms.
        run_sizes: of each run, never 0.
        run_ends: intp [runs].
        layer_ends: where the matches in each layer end.
        documents: intp [matches], numbers within the index, ascending within a run.
        columns: integer [matches], the column of each in the scorer's counts; empty for the coverage profile.
        frequencies: for each term the n of its idf, of living documents.
        weights: for each term its idf; for the coverage profile 1.
        run_weights: float64 [runs], the weight of the term of each.
    """

    run_terms: Sequence[int]
    run_sizes: Sequence[int]
    run_ends: NDArray[np.intp]
    layer_ends: Sequence[int]
    documents: NDArray[np.intp]
    columns: NDArray[np.integer]
    frequencies: Sequence[int]
    weights: Sequence[float]
    run_weights: NDArray[np.float64]

    def match_weights(self) -> NDArray[np.float64]:
        """float64 [matches]: the weight of the term of each."""
        return self.run_weights.repeat(self.run_sizes)

    def runs_of(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """intp [places]: the runs that some of the matches stand in."""
        return self.run_ends.searchsorted(places, side="right")


Chosen = tuple[TermMatches, NDArray[np.intp]]
"""Matches of a query, and the places of some of them, ascending."""


class TermScorer:
    """Finds and scores terms of one profile in one state of a namespace. Immutable.

    Attributes:
        is_alive: bool [documents of the index], `None` where all are alive.
    """

    def __init__(self, stack: LayerStack, profile: str) -> None:
        self.profile = profile
        self.is_alive = stack.is_alive()
        self._document_count = stack.document_count
        self._averages = [total.average for total in stack.totals]
        self._layers = stack.layers
        self._postings = [layer.segment.postings[profile] for layer in stack.layers]
        # The distinct counts of all layers side by side, some hundred columns, and what is made of them alone.
        counts = side_by_side([_ONE_FIELD, *(postings.counts for postings in self._postings)])
        fields = len(counts)
        self._is_own: NDArray[np.bool_] = counts[0] != 0
        self._weighted: NDArray[np.float64] = np.multiply(_WEIGHTS[:fields], counts, dtype=np.float64)
        # A field's length only ever makes the weighted frequency smaller than this.
        most = (self._weighted / LENGTH_BASE).sum(axis=0)
        self._ceilings = _ROUNDING * SATURATION_SCALE * most / (most + SATURATION)
        self._first_columns = list(accumulate((postings.counts.shape[1] for postings in self._postings), initial=0))
        # A field that no document has is divided by 1: its counts are 0 anyway.
        self._divisors = np.array([average or 1.0 for average in self._averages[:fields]]).reshape(-1, 1)

    def matches(self, terms: Sequence[str]) -> TermMatches:
        """Where each of `terms`, which are sorted, stands."""
        run_terms: list[int] = []
        run_sizes: list[int] = []
        layer_ends: list[int] = []
        documents: list[NDArray[np.intp]] = []
        columns: list[NDArray[np.integer]] = []
        own, anywhere = [0] * len(terms), [0] * len(terms)
        end = 0
        for layer, postings, first_column in zip(self._layers, self._postings, self._first_columns, strict=False):
            rows = []
            for place, term in enumerate(terms):
                number = postings.vocabulary.find(term)
                if number >= 0:
                    row = postings.row_of(number)
                    size = row.stop - row.start
                    rows.append(row)
                    run_terms.append(place)
                    run_sizes.append(size)
                    own[place] += postings.own_frequencies.item(number)
                    anywhere[place] += size
                    end += size
            layer_ends.append(end)
            if rows:
                held = np.concatenate([postings.documents[row] for row in rows], dtype=np.intp)
                held_columns = np.concatenate([postings.columns[row] for row in rows])
                documents.append(held + layer.start if layer.start else held)
                columns.append(held_columns + np.intp(first_column) if first_column else held_columns)
        run_ends = np.array(run_sizes, dtype=np.intp).cumsum()
        every, every_column = _joined(documents or [_NO_NUMBERS]), _joined(columns or [_NO_NUMBERS])
        self._leave_out_dead(run_terms, run_ends, every, every_column, own, anywhere)
        frequencies = [in_own or around for in_own, around in zip(own, anywhere, strict=True)]
        weights = list(map(self._weight, frequencies))
        return TermMatches(
            run_terms,
            run_sizes,
            run_ends,
            layer_ends,
            every,
            every_column,
            frequencies,
            weights,
            np.array([weights[term] for term in run_terms], dtype=np.float64),
        )

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """The n of the idf of each of `terms`."""
        counted: dict[str, int] = {}
        for start in range(0, len(terms), _COUNTED_AT_ONCE):
            some = terms[start : start + _COUNTED_AT_ONCE]
            counted.update(zip(some, self.matches(some).frequencies, strict=True))
        return counted

    def ceilings(self, matches: TermMatches) -> NDArray[np.float64]:
        """float64 [matches]: what each adds to its document's score at most."""
        ceilings: NDArray[np.float64] = self._ceilings.take(matches.columns)
        ceilings *= matches.match_weights()
        return ceilings

    def scores(self, chosen: Sequence[Chosen]) -> NDArray[np.float64]:
        """float64: `term_score` of `weighted_frequency` for some matches of some queries, one query behind another."""
        columns = _joined([matches.columns[places] for matches, places in chosen])
        norms = np.concatenate([self._lengths(matches, places) for matches, places in chosen], axis=1, dtype=np.float64)
        norms *= LENGTH_SLOPE
        norms /= self._divisors
        norms += LENGTH_BASE
        parts = self._weighted.take(columns, axis=1)
        parts /= norms
        tf: NDArray[np.float64] = parts[0]
        for part in parts[1:]:  # field by field: the order of the sum is part of the profile
            tf += part
        scores = np.concatenate([matches.run_weights[matches.runs_of(places)] for matches, places in chosen])
        scores *= tf
        scores *= SATURATION_SCALE
        tf += SATURATION
        scores /= tf
        return scores

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

    def _leave_out_dead(
        self,
        run_terms: Sequence[int],
        run_ends: NDArray[np.intp],
        documents: NDArray[np.intp],
        columns: NDArray[np.integer],
        own: list[int],
        anywhere: list[int],
    ) -> None:
        """Take dead documents out of the frequencies of terms, which are by term."""
        if self.is_alive is None:
            return
        dead = np.flatnonzero(~self.is_alive[documents])
        if not len(dead):
            return
        runs = np.searchsorted(run_ends, dead, side="right")
        in_own = runs if self.profile == COVERAGE_PROFILE else runs[self._is_own[columns[dead]]]
        for counted, dead_runs in ((own, in_own), (anywhere, runs)):
            for term, size in zip(run_terms, np.bincount(dead_runs, minlength=len(run_ends)).tolist(), strict=True):
                counted[term] -= size

    def _lengths(self, matches: TermMatches, places: NDArray[np.intp]) -> NDArray[np.number]:
        """[fields, places]: token counts of the documents of some matches."""
        documents = matches.documents[places]
        if len(self._layers) == 1:
            return self._layers[0].segment.lengths.take(documents, axis=1)
        lengths = np.zeros((len(self._weighted), len(places)))
        start = 0
        for layer, end in zip(self._layers, places.searchsorted(matches.layer_ends).tolist(), strict=True):
            if end > start:
                held = layer.segment.lengths
                lengths[: len(held), start:end] = held.take(documents[start:end] - layer.start, axis=1)
            start = end
        return lengths


def _joined(parts: Sequence[NDArray[_Number]]) -> NDArray[_Number]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
