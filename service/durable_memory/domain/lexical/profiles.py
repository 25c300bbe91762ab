"""The lexical profiles that a session can pin, by their stable ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from durable_memory.domain.lexical.bm25f_tokens import bm25f_query_tokens
from durable_memory.domain.lexical.coverage_tokens import coverage_tokens

COVERAGE_PROFILE: Final = "a3s.memory.lexical.word-cjk-bigram.v1"
BM25F_PROFILE: Final = "dm.lexical.bm25f.v1"
DEFAULT_LEXICAL_PROFILE: Final = BM25F_PROFILE


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalProfile:
    """A versioned, deterministic algorithm. What it does never changes; another behaviour is another id."""

    id: str
    description: str
    default_min_score: float
    query_tokens: Callable[[str], frozenset[str]]


LEXICAL_PROFILES: Final[Mapping[str, LexicalProfile]] = MappingProxyType(
    {
        profile.id: profile
        for profile in (
            LexicalProfile(
                id=BM25F_PROFILE,
                description=(
                    "BM25F over author, content and date, with surrounding text at lower weights; English stems for "
                    "ASCII words, bigrams for CJK. min_score: share of the query's total idf that a hit matched."
                ),
                default_min_score=0.0,
                query_tokens=bm25f_query_tokens,
            ),
            LexicalProfile(
                id=COVERAGE_PROFILE,
                description=(
                    "Matched query tokens / query tokens over author and content; lower-cased words, CJK runs whole "
                    "and as bigrams. min_score: that share."
                ),
                default_min_score=0.0,
                query_tokens=coverage_tokens,
            ),
        )
    }
)


def lexical_profile(profile_id: str) -> LexicalProfile | None:
    """The profile of that id, `None` when this version has none."""
    return LEXICAL_PROFILES.get(profile_id)
