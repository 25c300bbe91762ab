"""Some queries against one state of a namespace: which documents are the best for each, before filters and floors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.scoring import TermScorer
from durable_memory.app.views.selection import largest
from durable_memory.domain.lexical.profiles import COVERAGE_PROFILE

_LIKELY_SHARE: Final = 0.75
"""Scores are most often above this part of their bounds. Any number is right; this one makes a second look rare."""

_ANYTHING: Final = float(np.finfo(np.float64).smallest_subnormal)
"""The lowest floor that keeps out documents without any term."""

Scored = tuple[NDArray[np.intp], NDArray[np.float64]]
"""Documents, ascending numbers within the index, and their scores."""


class QueryScores:
    """What the terms of each query add up to.

    Attributes:
        queries: the terms used, sorted, of each query.
        matches: of all of them.
        bounds: float64 [queries, documents of the index], no less than the score of each; 0 where no term matches, and
            for the dead. Whoever rules a document out sets it to 0.
    """

    __slots__ = ("_cells", "_scorer", "bounds", "matches", "queries")

    def __init__(self, scorer: TermScorer, queries: Sequence[Sequence[str]], size: int) -> None:
        self._scorer = scorer
        self.queries = queries
        self.matches = scorer.matches(queries)
        self._cells = len(queries) * size
        amounts = None if self._is_coverage else scorer.ceilings(self.matches)
        self.bounds = _sums(self.matches.cells, amounts, self._cells).reshape(len(queries), size)
        if self._is_coverage:
            self.bounds /= [[max(len(terms), 1)] for terms in queries]
        if scorer.is_alive is not None:
            self.bounds *= scorer.is_alive

    def best(self, limits: Sequence[int]) -> list[Scored]:
        """For each query the best `limit` documents that are not ruled out, ties included, and some others.

        Documents whose bound is under the score that the last of the best has cannot be among them. That score is
        guessed first, and where the guess was too high, what comes out is a sure one for a second look.
        """
        size = self.bounds.shape[1]
        floors = [self._likely_floor(query, limit) for query, limit in enumerate(limits)]
        best: list[Scored | None] = [None] * len(limits)
        while None in best:
            # Above every bound: what is settled is not looked at again.
            wanted = [np.inf if found is not None else floor for found, floor in zip(best, floors, strict=True)]
            cells = (self.bounds >= np.array(wanted)[:, None]).ravel().nonzero()[0]
            scores = self._scores(cells)
            start = 0
            for query, end in enumerate(cells.searchsorted(range(size, self._cells + size, size)).tolist()):
                if best[query] is None:
                    found = scores[start:end]
                    reached = largest(found, limits[query])
                    if reached >= floors[query] or floors[query] == _ANYTHING:
                        best[query] = cells[start:end] - query * size, found
                    floors[query] = max(reached, _ANYTHING)
                start = end
        return [found for found in best if found is not None]

    def all(self) -> NDArray[np.float64]:
        """float64 [queries, documents of the index]: the score of each, 0 where no term matches."""
        scores = np.zeros(self._cells)
        cells = self.bounds.ravel().nonzero()[0]
        scores[cells] = self._scores(cells)
        return scores.reshape(self.bounds.shape)

    def shares(self) -> NDArray[np.float64]:
        """float64 [queries, documents of the index]: the share of the query that each document matched, 0..1."""
        if self._is_coverage:
            return self.bounds.copy()
        shares = _sums(self.matches.cells, self.matches.match_weights(), self._cells).reshape(self.bounds.shape)
        shares /= [[total or 1.0] for total in self._total_weights()]
        return shares

    def matched(self, numbers: Sequence[Sequence[int]]) -> list[list[tuple[tuple[str, ...], float]]]:
        """For each query the terms that each of some living documents matched, and their share of the query."""
        size = self.bounds.shape[1]
        cells = [query * size + number for query, found in enumerate(numbers) for number in found]
        if not cells:
            return [[] for _ in numbers]
        places = self._places(np.array(cells, dtype=np.intp))
        matched: dict[int, list[int]] = {cell: [] for cell in cells}
        for cell, term in zip(self.matches.cells[places].tolist(), self.matches.terms_of(places).tolist(), strict=True):
            matched[cell].append(term)
        totals = self._total_weights()
        return [
            [self._share(matched[query * size + number], totals[query]) for number in found]
            for query, found in enumerate(numbers)
        ]

    @property
    def _is_coverage(self) -> bool:
        return self._scorer.profile == COVERAGE_PROFILE

    def _scores(self, cells: NDArray[np.intp]) -> NDArray[np.float64]:
        """float64 [cells]: the scores in some cells, ascending."""
        if self._is_coverage:
            return self.bounds.ravel()[cells]
        places = self._places(cells)
        scores = self._scorer.scores(self.matches, places)
        return _sums(cells.searchsorted(self.matches.cells[places]), scores, len(cells))

    def _places(self, cells: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where among the matches those of some cells stand, ascending."""
        is_wanted = np.zeros(self._cells, dtype=np.bool_)
        is_wanted[cells] = True
        return is_wanted[self.matches.cells].nonzero()[0]

    def _likely_floor(self, query: int, limit: int) -> float:
        """A score that at least `limit` documents are likely to reach, as high as is cheap to find: the documents of
        one run differ, and those of the rarest term most likely are the best."""
        matches = self.matches
        bounds = self.bounds[query]
        runs = [
            (size, end)
            for term, size, end in zip(matches.run_terms, matches.run_sizes, matches.run_ends.tolist(), strict=True)
            if matches.term_queries[term] == query and size >= limit
        ]
        for size, end in sorted(runs):
            bound = largest(bounds[matches.documents[end - size : end]], limit)
            if bound > 0.0:
                return bound if self._is_coverage else _LIKELY_SHARE * bound
        return _ANYTHING

    def _share(self, terms: Sequence[int], total: float) -> tuple[tuple[str, ...], float]:
        weight = 0.0
        for term in terms:
            weight += self.matches.weights[term]
        return tuple([self.matches.terms[term] for term in terms]), weight / total

    def _total_weights(self) -> list[float]:
        totals = [0.0] * len(self.queries)
        for query, weight in zip(self.matches.term_queries, self.matches.weights, strict=True):
            totals[query] += weight  # one by one: the order of the sum is part of the profile
        return totals


def _sums(cells: NDArray[np.intp], amounts: NDArray[np.float64] | None, size: int) -> NDArray[np.float64]:
    """float64 [size]: for each cell the sum of its amounts, of ones where there are none given.

    `bincount` adds one by one in the order of the matches, which for each cell is the order of the terms: the order of
    the sum is part of the profile.
    """
    # Where there is nothing to count it answers integers.
    return np.bincount(cells, amounts, minlength=size).astype(np.float64, copy=False)
