"""Why a document is, or is not, among the hits of a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from durable_memory.app.views.layers import Layer, LayerStack
from durable_memory.app.views.query_scores import QueryScores
from durable_memory.app.views.scoring import TermScorer
from durable_memory.app.views.selection import passing, place
from durable_memory.domain.lexical.bm25f import term_score
from durable_memory.domain.lexical.profiles import COVERAGE_PROFILE
from durable_memory.domain.lexical.query import LexicalFilter


class LexicalCut(StrEnum):
    """What kept a document from the hits: the first that applies, in this order."""

    NOT_INDEXED = "not_indexed"
    """It is not ACTIVE, or not there at all."""
    EXCLUDED_ID = "excluded_ids"
    KIND = "kinds"
    LABEL = "labels"
    OCCURRED_AT = "occurred_at"
    UPDATED_AT = "updated_at"
    NO_MATCH = "no_match"
    MIN_SCORE = "min_score"
    MIN_RELATIVE_SCORE = "min_relative_score"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class ExplainedTerm:
    """One term of a query and what it did for one document.

    Attributes:
        document_count: the n of its idf: how many documents have it.
        weight: its idf; 1 in the coverage profile.
        counts: how often the document has it in its own field and in each of its surroundings; empty if it is not
            indexed. The coverage profile knows only its own, 0 or 1.
        weighted_frequency: the tf of bm25f; in the coverage profile 0 or 1.
        contribution: what it adds to the score.
    """

    term: str
    document_count: int
    weight: float
    counts: tuple[int, ...]
    weighted_frequency: float
    contribution: float


@dataclass(frozen=True, slots=True)
class LexicalExplanation:
    """One document under one query.

    Attributes:
        revision: `None` when it is not indexed.
        score, matched_share: before floors; 0 where no term matched.
        rank: the place it has among documents that pass the filter, without floors and limit; `None` where no term
            matched.
        floor: the score that `min_relative_score` asks for.
        cut: `None` when it is a hit.
    """

    node_id: str
    revision: int | None
    terms: tuple[ExplainedTerm, ...]
    score: float
    matched_share: float
    rank: int | None
    floor: float
    cut: LexicalCut | None


def explain(
    stack: LayerStack,
    scorer: TermScorer,
    scores: QueryScores,
    node_id: str,
    *,
    limit: int,
    filter: LexicalFilter,
    min_score: float,
    min_relative_score: float,
) -> LexicalExplanation:
    """What `LexicalIndex.search` does with one document; `scores` are the query's alone, and are not changed."""
    found = stack.find(node_id)
    if found is None:
        terms = tuple(
            ExplainedTerm(term, frequency, weight, (), 0.0, 0.0) for term, frequency, weight in _statistics(scores)
        )
        return LexicalExplanation(node_id, None, terms, 0.0, 0.0, None, 0.0, LexicalCut.NOT_INDEXED)
    layer, local = found
    number = layer.start + local
    values, shares = scores.all(), scores.shares()
    passes = passing(stack.layers, filter)
    passed = values if passes is None else np.where(passes, values, 0.0)
    floor = min_relative_score * float(np.where(shares >= min_score, passed, 0.0).max())
    score, share = float(values[number]), float(shares[number])
    updated = int(layer.segment.updated[local])
    rank = place(stack.layers, passed, node_id, score, updated) if score > 0.0 else None
    cut = _refusal(layer, local, filter)
    if cut is None and rank is None:
        cut = LexicalCut.NO_MATCH
    elif cut is None and share < min_score:
        cut = LexicalCut.MIN_SCORE
    elif cut is None and score < floor:
        cut = LexicalCut.MIN_RELATIVE_SCORE
    elif cut is None:
        kept = np.where((shares >= min_score) & (passed >= floor), passed, 0.0)
        cut = LexicalCut.LIMIT if place(stack.layers, kept, node_id, score, updated) > limit else None
    terms = tuple(
        _explained(scorer, layer, local, term, frequency, weight, len(scores.terms))
        for term, frequency, weight in _statistics(scores)
    )
    return LexicalExplanation(node_id, int(layer.segment.revisions[local]), terms, score, share, rank, floor, cut)


def _refusal(layer: Layer, local: int, filter: LexicalFilter) -> LexicalCut | None:
    for cut, part in (
        (LexicalCut.EXCLUDED_ID, LexicalFilter(excluded_ids=filter.excluded_ids)),
        (LexicalCut.KIND, LexicalFilter(kinds=filter.kinds)),
        (LexicalCut.LABEL, LexicalFilter(labels=filter.labels)),
        (
            LexicalCut.OCCURRED_AT,
            LexicalFilter(occurred_from=filter.occurred_from, occurred_until=filter.occurred_until),
        ),
        (
            LexicalCut.UPDATED_AT,
            LexicalFilter(updated_from=filter.updated_from, updated_until=filter.updated_until),
        ),
    ):
        passes = passing((layer,), part)
        if passes is not None and not passes[local]:
            return cut
    return None


def _statistics(scores: QueryScores) -> Iterable[tuple[str, int, float]]:
    """Each term with its document frequency and its weight."""
    return zip(scores.terms, scores.matches.frequencies, scores.matches.weights, strict=True)


def _explained(
    scorer: TermScorer, layer: Layer, local: int, term: str, document_count: int, weight: float, term_count: int
) -> ExplainedTerm:
    counts = layer.segment.postings[scorer.profile].counts_of(term, local)
    if scorer.profile == COVERAGE_PROFILE:
        frequency = float(counts[0])
        contribution = frequency / term_count
    else:
        frequency = scorer.weighted_frequency(layer, local, counts)
        contribution = term_score(weight, frequency)
    return ExplainedTerm(term, document_count, weight, counts, frequency, contribution)
