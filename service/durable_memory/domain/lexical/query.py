"""Queries, the filters that go with them, and the hits that answer them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from durable_memory.domain.lexical.bm25f_tokens import fold
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.node import NO_LABELS

QUERY_MAX_TERMS: Final = 256
"""How many terms of a query are used at most, so that a long query is answered in time."""


def has_searchable_text(query: str) -> bool:
    """Whether `query` has at least one letter or digit of any script."""
    return any(character.isalnum() for character in (query if query.isascii() else fold(query)))


def most_selective_terms(terms: Iterable[str], frequency: Callable[[str], int]) -> tuple[str, ...]:
    """The terms of a query that are used, in term order: at most QUERY_MAX_TERMS.

    The rarest in the namespace come first, equally rare ones by their order. A term that no document has can select
    nothing, so it is kept only where there is room: there it counts as not matched.

    Args:
        terms: distinct tokens of the query.
        frequency: in how many documents a term occurs, the n of its idf.
    """
    distinct = sorted(terms)
    if len(distinct) > QUERY_MAX_TERMS:
        counted = [(frequency(term), term) for term in distinct]
        counted.sort(key=lambda pair: (pair[0] == 0, pair[0], pair[1]))
        distinct = sorted(term for _, term in counted[:QUERY_MAX_TERMS])
    return tuple(distinct)


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalFilter:
    """Which documents may be hits; they all still count for frequencies and average lengths.

    Ranges are half-open, from `_from` until before `_until`; a document without an occurrence time is outside any
    range of it. `kinds` empty means any kind; all `labels` must be equal.
    """

    kinds: frozenset[int] = frozenset()
    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)
    occurred_from: datetime | None = None
    occurred_until: datetime | None = None
    updated_from: datetime | None = None
    updated_until: datetime | None = None
    excluded_ids: frozenset[str] = frozenset()

    def refusal(self, document: IndexedDocument) -> str | None:
        """The name of the first field that `document` fails, `None` where it passes: the meaning of a filter."""
        if document.node_id in self.excluded_ids:
            return "excluded_ids"
        if self.kinds and document.kind not in self.kinds:
            return "kinds"
        if any(document.labels.get(key) != value for key, value in self.labels.items()):
            return "labels"
        if not _within(document.occurred_at, self.occurred_from, self.occurred_until):
            return "occurred_at"
        if not _within(document.updated_at, self.updated_from, self.updated_until):
            return "updated_at"
        return None


def _within(time: datetime | None, start: datetime | None, end: datetime | None) -> bool:
    if time is None:
        return start is None and end is None
    return (start is None or time >= start) and (end is None or time < end)


ANY_DOCUMENT: Final = LexicalFilter()


class LexicalHit(NamedTuple):
    """One document that a query found.

    `rank` counts from 1. `matched_terms` are tokens of the profile, sorted, as it compares them (stemmed, bigrams).
    `matched_share` is 0..1: for the coverage profile the score itself, for bm25f the part of the query's total idf
    that the matched terms have. Both are left out where nobody asks for them.
    """

    node_id: str
    revision: int
    score: float
    rank: int
    matched_terms: tuple[str, ...] = ()
    matched_share: float = 0.0
