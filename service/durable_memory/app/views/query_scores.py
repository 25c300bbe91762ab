"""One query against one state of a namespace: which documents are the best, before filters and floors."""

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


class QueryScores:
    """What the terms of a query add up to.

    Attributes:
        terms: the terms used, sorted.
        matches: of each of them.
        bounds: float64 [documents of the index], no less than the score of each; 0 where no term matches, and for the
            dead. Whoever rules a document out sets it to 0.
    """

    __slots__ = ("_scorer", "bounds", "matches", "terms")

    def __init__(self, scorer: TermScorer, terms: Sequence[str], size: int) -> None:
        self._scorer = scorer
        self.terms = terms
        self.matches = scorer.matches(terms)
        if self._is_coverage:
            self.bounds = _sums(self.matches.documents, None, size)
            self.bounds /= max(len(terms), 1)
        else:
            self.bounds = _sums(self.matches.documents, scorer.ceilings(self.matches), size)
        if scorer.is_alive is not None:
            self.bounds *= scorer.is_alive

    def best(self, limit: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Documents, ascending, and their scores: the best `limit` that are not ruled out, ties included, and others.

        Documents whose bound is under the score that the last of the best has cannot be among them. That score is
        guessed first, and where the guess was too high, what comes out is a sure one for a second try.
        """
        floor = self._sampled_bound(limit) * (1.0 if self._is_coverage else _LIKELY_SHARE)
        while True:
            found = (self.bounds >= floor if floor > 0.0 else self.bounds > 0.0).nonzero()[0]
            scores = self.of(found)
            reached = largest(scores, limit)
            if reached >= floor:
                return found, scores
            floor = reached

    def all(self) -> NDArray[np.float64]:
        """float64 [documents of the index]: the score of each, 0 where no term matches."""
        scores = np.zeros(len(self.bounds))
        found = self.bounds.nonzero()[0]
        scores[found] = self.of(found)
        return scores

    def of(self, found: NDArray[np.intp]) -> NDArray[np.float64]:
        """float64 [found]: the scores of some documents, numbers ascending."""
        if self._is_coverage:
            return self.bounds[found]
        places = self._places(found)
        scores = self._scorer.scores(self.matches, places)
        return _sums(np.searchsorted(found, self.matches.documents[places]), scores, len(found))

    def shares(self) -> NDArray[np.float64]:
        """float64 [documents of the index]: the share of the query that each document matched, 0..1."""
        if self._is_coverage:
            return self.bounds.copy()
        shares = _sums(self.matches.documents, self.matches.match_weights(), len(self.bounds))
        if self.terms:
            shares /= self._total_weight()
        return shares

    def matched(self, numbers: Sequence[int]) -> list[tuple[tuple[str, ...], float]]:
        """The terms that each of some living documents matched, and their share of the query."""
        places = self._places(np.array(numbers, dtype=np.intp))
        runs = np.searchsorted(self.matches.run_ends, places, side="right")
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

    @property
    def _is_coverage(self) -> bool:
        return self._scorer.profile == COVERAGE_PROFILE

    def _places(self, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where among the matches the documents of these numbers stand, ascending."""
        is_wanted = np.zeros(len(self.bounds), dtype=np.bool_)
        is_wanted[numbers] = True
        places: NDArray[np.intp] = is_wanted[self.matches.documents].nonzero()[0]
        return places

    def _sampled_bound(self, limit: int) -> float:
        """A bound that at least `limit` documents reach, as high as is cheap to find: the documents of one run differ,
        and of the rarest term they most likely are the best."""
        for size, end in sorted(zip(self.matches.run_sizes, self.matches.run_ends.tolist(), strict=True)):
            if size >= limit:
                bound = largest(self.bounds[self.matches.documents[end - size : end]], limit)
                if bound > 0.0:
                    return bound
        return 0.0

    def _total_weight(self) -> float:
        total = 0.0
        for weight in self.matches.weights:  # one by one: the order of the sum is part of the profile
            total += weight
        return total


def _sums(documents: NDArray[np.intp], amounts: NDArray[np.float64] | None, size: int) -> NDArray[np.float64]:
    """float64 [size]: for each document the sum of its amounts, of ones where there are none given.

    `bincount` adds one by one in the order of the matches, which for each document is the order of the terms: the order
    of the sum is part of the profile.
    """
    # Where there is nothing to count it answers integers.
    return np.bincount(documents, amounts, minlength=size).astype(np.float64, copy=False)
