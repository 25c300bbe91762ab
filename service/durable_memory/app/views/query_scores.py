"""One query against one state of a namespace: the score of every document, before anything is cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.scoring import TermMatches


class QueryScores:
    """What the terms of a query add up to.

    Attributes:
        terms: the terms used, sorted.
        matches: of each of them.
        values: float64 [documents of the index], 0 where no term matches and for the dead. The caller may write to it.
    """

    __slots__ = ("_coverage", "matches", "terms", "values")

    def __init__(
        self,
        terms: Sequence[str],
        matches: TermMatches,
        is_alive: NDArray[np.bool_] | None,
        size: int,
        *,
        coverage: bool,
    ) -> None:
        self.terms = terms
        self.matches = matches
        self._coverage = coverage
        self.values = _sums(matches.documents, matches.scores, size)
        if is_alive is not None:
            self.values *= is_alive
        if coverage and terms:
            self.values /= len(terms)

    def shares(self) -> NDArray[np.float64]:
        """float64 [documents of the index]: the share of the query that each document matched, 0..1."""
        if self._coverage:
            return self.values.copy()
        shares = _sums(self.matches.documents, self.matches.match_weights, len(self.values))
        if self.terms:
            shares /= self._total_weight()
        return shares

    def matched(self, numbers: Sequence[int]) -> list[tuple[tuple[str, ...], float]]:
        """The terms that each of some living documents matched, and their share of the query."""
        is_wanted = np.zeros(len(self.values), dtype=np.bool_)
        is_wanted[numbers] = True
        places = is_wanted[self.matches.documents].nonzero()[0]
        runs = np.searchsorted(list(accumulate(self.matches.run_sizes)), places, side="right")
        matched: dict[int, list[int]] = {number: [] for number in numbers}
        for number, run in zip(self.matches.documents[places].tolist(), runs.tolist(), strict=True):
            matched[number].append(self.matches.run_terms[run])
        total = self._total_weight()
        results = []
        for terms in matched.values():
            weight = 0.0
            for term in terms:
                weight += self.matches.weights[term]
            results.append((tuple([self.terms[term] for term in terms]), weight / total))
        return results

    def at_least(self, floor: float, limit: int) -> NDArray[np.intp]:
        """Documents that reach `floor` and may be among the best `limit`, ascending; all of those, and some more."""
        sizes = self.matches.run_sizes
        enough = [(size, end) for size, end in zip(sizes, accumulate(sizes), strict=True) if size >= limit]
        if enough:
            # The best of the documents of one run alone are a lower bound for the best of all.
            size, end = min(enough)
            sample = self.values[self.matches.documents[end - size : end]]
            sample.partition(size - limit)
            floor = max(floor, float(sample[size - limit]))
        reached = self.values >= floor if floor > 0.0 else self.values > 0.0
        return reached.nonzero()[0]

    def _total_weight(self) -> float:
        total = 0.0
        for weight in self.matches.weights:  # one by one: the order of the sum is part of the profile
            total += weight
        return total


def _sums(documents: NDArray[np.intp], amounts: NDArray[np.float64] | None, size: int) -> NDArray[np.float64]:
    """float64 [size]: for each document the sum of its amounts, of ones where there are none.

    `bincount` adds one by one in the order of the matches, which for each document is the order of the terms: the order
    of the sum is part of the profile.
    """
    # Where there is nothing to count it answers integers.
    return np.bincount(documents, amounts, minlength=size).astype(np.float64, copy=False)
