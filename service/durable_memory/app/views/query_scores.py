"""One query against one state of a namespace: the score of every document, before anything is cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.views.scoring import TermImpact


class QueryScores:
    """What the terms of a query add up to.

    Attributes:
        terms: the terms used, sorted.
        impacts: of each of them.
        values: float64 [documents of the index], 0 where no term matches. The caller may write to it.
    """

    __slots__ = ("_coverage", "impacts", "terms", "values")

    def __init__(self, terms: Sequence[str], impacts: Sequence[TermImpact], size: int, *, coverage: bool) -> None:
        self.terms = terms
        self.impacts = impacts
        self._coverage = coverage
        # Added term by term, in sorted order: the order of the sum is part of the profile.
        self.values = np.zeros(size)
        for impact in impacts:
            np.add.at(self.values, impact.documents, impact.scores)
        if coverage and terms:
            self.values /= len(terms)

    def shares(self) -> NDArray[np.float64]:
        """float64 [documents of the index]: the share of the query that each document matched, 0..1."""
        if self._coverage:
            return self.values.copy()
        shares = np.zeros(len(self.values))
        for impact in self.impacts:
            np.add.at(shares, impact.documents, impact.weight)
        if self.terms:
            shares /= self._total_weight()
        return shares

    def matched(self, numbers: NDArray[np.intp]) -> list[tuple[tuple[str, ...], float]]:
        """The terms that each of some documents matched, and their share of the query."""
        places = np.zeros((len(self.impacts), len(numbers)), dtype=np.bool_)
        for row, impact in zip(places, self.impacts, strict=True):
            if len(impact.documents):
                at = np.searchsorted(impact.documents, numbers)
                np.equal(impact.documents.take(at, mode="clip"), numbers, out=row)
        total = self._total_weight()
        results = []
        for column in places.T.tolist():
            weight = 0.0
            terms = []
            for is_matched, term, impact in zip(column, self.terms, self.impacts, strict=True):
                if is_matched:
                    terms.append(term)
                    weight += impact.weight
            results.append((tuple(terms), weight / total))
        return results

    def at_least(self, floor: float, limit: int) -> NDArray[np.intp]:
        """Documents that reach `floor` and may be among the best `limit`, ascending; all of those, and some more."""
        enough = [impact.documents for impact in self.impacts if len(impact.documents) >= limit]
        if enough:
            # The best of the documents of one term alone are a lower bound for the best of all.
            sample = self.values[min(enough, key=len)]
            floor = max(floor, float(np.partition(sample, len(sample) - limit)[len(sample) - limit]))
        reached = self.values >= floor if floor > 0.0 else self.values > 0.0
        return reached.nonzero()[0]

    def _total_weight(self) -> float:
        total = 0.0
        for impact in self.impacts:
            total += impact.weight
        return total
