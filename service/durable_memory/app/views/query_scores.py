"""Queries against one state of a namespace: which documents are the best for each, before floors are applied."""

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
    """What the terms of a query can add up to.

    Attributes:
        terms: the terms used, sorted.
        matches: of each of them.
        bounds: float64 [documents of the index], no less than the score of each; 0 where no term matches, and for the
            dead. Whoever rules a document out sets it to 0.
    """

    __slots__ = ("bounds", "matches", "scorer", "terms")

    def __init__(self, scorer: TermScorer, terms: Sequence[str], size: int) -> None:
        self.scorer = scorer
        self.terms = terms
        self.matches = scorer.matches(terms)
        if self.is_coverage:
            self.bounds = _sums(self.matches.documents, None, size)
            self.bounds /= max(len(terms), 1)
        else:
            self.bounds = _sums(self.matches.documents, scorer.ceilings(self.matches), size)
        if scorer.is_alive is not None:
            self.bounds *= scorer.is_alive

    @property
    def is_coverage(self) -> bool:
        """Whether the bounds are the scores themselves."""
        return self.scorer.profile == COVERAGE_PROFILE

    def likely_floor(self, limit: int) -> float:
        """A score that at least `limit` documents are likely to reach, as high as is cheap to find: the documents of
        one run differ, and those of the rarest term most likely are the best."""
        for size, end in sorted(zip(self.matches.run_sizes, self.matches.run_ends.tolist(), strict=True)):
            if size >= limit:
                bound = largest(self.bounds[self.matches.documents[end - size : end]], limit)
                if bound > 0.0:
                    return bound if self.is_coverage else _LIKELY_SHARE * bound
        return _ANYTHING

    def places(self, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where among the matches those of some documents stand, ascending."""
        is_wanted = np.zeros(len(self.bounds), dtype=np.bool_)
        is_wanted[numbers] = True
        return is_wanted[self.matches.documents].nonzero()[0]

    def all(self) -> NDArray[np.float64]:
        """float64 [documents of the index]: the score of each, 0 where no term matches."""
        scores = np.zeros(len(self.bounds))
        found = self.bounds.nonzero()[0]
        (scores[found],) = scores_of([self], [found])
        return scores

    def shares(self) -> NDArray[np.float64]:
        """float64 [documents of the index]: the share of the query that each document matched, 0..1."""
        if self.is_coverage:
            return self.bounds.copy()
        shares = _sums(self.matches.documents, self.matches.match_weights(), len(self.bounds))
        shares /= self._total_weight() or 1.0
        return shares

    def matched(self, numbers: Sequence[int]) -> list[tuple[tuple[str, ...], float]]:
        """The terms that each of some living documents matched, and their share of the query."""
        places = self.places(np.array(numbers, dtype=np.intp))
        matched: dict[int, list[int]] = {number: [] for number in numbers}
        runs = self.matches.runs_of(places).tolist()
        for number, run in zip(self.matches.documents[places].tolist(), runs, strict=True):
            matched[number].append(self.matches.run_terms[run])
        total = self._total_weight()
        results = []
        for terms in matched.values():
            weight = 0.0
            for term in terms:
                weight += self.matches.weights[term]
            results.append((tuple([self.terms[term] for term in terms]), weight / total))
        return results

    def _total_weight(self) -> float:
        total = 0.0
        for weight in self.matches.weights:  # one by one: the order of the sum is part of the profile
            total += weight
        return total


def best_of(queries: Sequence[QueryScores], limits: Sequence[int]) -> list[Scored]:
    """For each query the best `limit` documents that are not ruled out, ties included, and some others.

    Documents whose bound is under the score that the last of the best has cannot be among them. That score is guessed
    first, and where the guess was too high, what comes out is a sure one for a second look.

    Args:
        queries: of one profile and one state of a namespace.
    """
    best: dict[int, Scored] = {}
    floors = {place: query.likely_floor(limits[place]) for place, query in enumerate(queries)}
    while floors:
        found = [(queries[place].bounds >= floor).nonzero()[0] for place, floor in floors.items()]
        scores = scores_of([queries[place] for place in floors], found)
        for (place, floor), numbers, values in zip(list(floors.items()), found, scores, strict=True):
            reached = largest(values, limits[place])
            if reached >= floor or floor == _ANYTHING:
                best[place] = numbers, values
                del floors[place]
            else:
                floors[place] = max(reached, _ANYTHING)
    return [best[place] for place in range(len(queries))]


def scores_of(queries: Sequence[QueryScores], found: Sequence[NDArray[np.intp]]) -> list[NDArray[np.float64]]:
    """For each query the scores of some documents, ascending numbers; all worked out together."""
    if queries[0].is_coverage:
        return [query.bounds[numbers] for query, numbers in zip(queries, found, strict=True)]
    places = [query.places(numbers) for query, numbers in zip(queries, found, strict=True)]
    amounts = queries[0].scorer.scores([(query.matches, some) for query, some in zip(queries, places, strict=True)])
    scores = []
    start = 0
    for query, numbers, some in zip(queries, found, places, strict=True):
        end = start + len(some)
        order = numbers.searchsorted(query.matches.documents[some])
        scores.append(_sums(order, amounts[start:end], len(numbers)))
        start = end
    return scores


def _sums(places: NDArray[np.intp], amounts: NDArray[np.float64] | None, size: int) -> NDArray[np.float64]:
    """float64 [size]: for each place the sum of its amounts, of ones where there are none given.

    `bincount` adds one by one in the order of the matches, which for each document is the order of the terms: the order
    of the sum is part of the profile.
    """
    # Where there is nothing to count it answers integers.
    return np.bincount(places, amounts, minlength=size).astype(np.float64, copy=False)
