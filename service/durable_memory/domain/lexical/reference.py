"""The executable definition of both profiles: plain loops over documents, for tests and for reading.

The indexes of `app/views` must return exactly what this returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from durable_memory.domain.lexical.bm25f import (
    FIELD_COUNT,
    inverse_document_frequency,
    term_score,
    weighted_frequency,
)
from durable_memory.domain.lexical.coverage_tokens import coverage_tokens
from durable_memory.domain.lexical.document import IndexedDocument, bm25f_field_tokens, coverage_document_tokens
from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE, LEXICAL_PROFILES
from durable_memory.domain.lexical.query import (
    ANY_DOCUMENT,
    LexicalFilter,
    LexicalHit,
    most_selective_terms,
)


@dataclass(frozen=True, slots=True)
class Scored:
    """A document with at least one query term: its score, the terms it matched, and their share of the query."""

    document: IndexedDocument
    score: float
    matched_terms: tuple[str, ...]
    matched_share: float


def coverage_scores(documents: Sequence[IndexedDocument], query: str) -> list[Scored]:
    """score = share = matched query tokens / query tokens, over author and content."""
    tokens = [coverage_document_tokens(document) for document in documents]
    frequencies = Counter(token for held in tokens for token in held)
    terms = most_selective_terms(coverage_tokens(query), frequencies.__getitem__)
    scored = []
    for document, held in zip(documents, tokens, strict=True):
        matched = tuple(term for term in terms if term in held)
        if matched:
            share = len(matched) / len(terms)
            scored.append(Scored(document, share, matched, share))
    return scored


class _Corpus:
    """Counts and average lengths over the documents of a namespace."""

    def __init__(self, documents: Sequence[IndexedDocument]) -> None:
        self.fields = [tuple(map(Counter, bm25f_field_tokens(document))) for document in documents]
        self._own: Counter[str] = Counter()
        self._around: Counter[str] = Counter()
        totals = [0] * FIELD_COUNT
        holders = [0] * FIELD_COUNT
        for own, *surroundings in self.fields:
            self._own.update(own.keys())
            self._around.update({term for surrounding in surroundings for term in surrounding})
            for field, counts in enumerate((own, *surroundings)):
                totals[field] += counts.total()
                holders[field] += counts.total() > 0
        self._averages = [total / holding if holding else 0.0 for total, holding in zip(totals, holders, strict=True)]

    def frequency(self, term: str) -> int:
        return self._own[term] or self._around[term]

    def weighted_frequency(self, fields: tuple[Counter[str], ...], term: str) -> float:
        frequency = 0.0
        for field, counts in enumerate(fields):
            if counts[term]:
                frequency += weighted_frequency(field, counts[term], counts.total(), self._averages[field])
        return frequency


def bm25f_scores(documents: Sequence[IndexedDocument], query: str) -> list[Scored]:
    """See `bm25f.py`; share = idf of the matched terms / idf of all terms used."""
    corpus = _Corpus(documents)
    terms = most_selective_terms(LEXICAL_PROFILES[BM25F_PROFILE].query_tokens(query), corpus.frequency)
    idfs = {term: inverse_document_frequency(len(documents), corpus.frequency(term)) for term in terms}
    total_idf = 0.0
    for term in terms:
        total_idf += idfs[term]
    scored = []
    for document, fields in zip(documents, corpus.fields, strict=True):
        score = matched_idf = 0.0
        matched = []
        for term in terms:
            frequency = corpus.weighted_frequency(fields, term)
            if frequency > 0.0:
                score += term_score(idfs[term], frequency)
                matched_idf += idfs[term]
                matched.append(term)
        if matched:
            scored.append(Scored(document, score, tuple(matched), matched_idf / total_idf))
    return scored


_SCORERS: Final[dict[str, Callable[[Sequence[IndexedDocument], str], list[Scored]]]] = {
    COVERAGE_PROFILE: coverage_scores,
    BM25F_PROFILE: bm25f_scores,
}


def _in_order(scored: Iterable[Scored]) -> list[Scored]:
    """Best score first; then newer update time, then id in the order of its UTF-8 bytes."""
    by_id = sorted(scored, key=lambda item: item.document.node_id.encode())
    return sorted(by_id, key=lambda item: (item.score, item.document.updated_at), reverse=True)


def reference_search(
    documents: Sequence[IndexedDocument],
    query: str,
    profile_id: str,
    *,
    limit: int,
    filter: LexicalFilter = ANY_DOCUMENT,
    min_score: float = 0.0,
    min_relative_score: float = 0.0,
) -> list[LexicalHit]:
    """The hits for `query` over the ACTIVE nodes of one namespace, best first.

    The filter decides first, then `min_score` against the matched share, then `min_relative_score` against the best
    score that is left, then `limit`.
    """
    allowed = [
        item
        for item in _SCORERS[profile_id](documents, query)
        if filter.refusal(item.document) is None and item.matched_share >= min_score
    ]
    floor = min_relative_score * max((item.score for item in allowed), default=0.0)
    ordered = _in_order(item for item in allowed if item.score >= floor)
    return [
        LexicalHit(
            item.document.node_id,
            item.document.revision,
            item.score,
            rank,
            item.matched_terms,
            item.matched_share,
        )
        for rank, item in enumerate(ordered[:limit], start=1)
    ]
