"""What retrieval reads of a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from durable_memory.domain.lexical.bm25f_tokens import bm25f_tokens
from durable_memory.domain.lexical.coverage_tokens import coverage_tokens
from durable_memory.domain.lexical.date_words import date_words
from durable_memory.domain.node import NO_LABELS


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedDocument:
    """The current revision of an ACTIVE node. Times are aware; `surroundings` come nearest first."""

    node_id: str
    revision: int
    kind: int
    content: str
    author: str = ""
    surroundings: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    updated_at: datetime
    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)


def coverage_document_tokens(document: IndexedDocument) -> frozenset[str]:
    """The distinct tokens of author and content: what the coverage profile matches."""
    return coverage_tokens(document.author) | coverage_tokens(document.content)


def bm25f_field_tokens(document: IndexedDocument) -> tuple[list[str], ...]:
    """The tokens of each field: own first, then one field for each of the surroundings.

    The own field is author, content and the date words of the occurrence time, each cut into tokens by itself, so
    that a name never runs together with the text after it.
    """
    own = bm25f_tokens(document.author) + bm25f_tokens(document.content)
    if document.occurred_at is not None:
        own += bm25f_tokens(date_words(document.occurred_at))
    return (own, *map(bm25f_tokens, document.surroundings))
