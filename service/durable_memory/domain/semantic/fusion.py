"""How two branches become one ranking. Profiles are versioned: another rule is another id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

CONVEX_PROFILE: Final = "dm.fusion.convex.v1"
RRF_PROFILE: Final = "a3s.code.memory.hybrid.rrf-k60.v1"
DEFAULT_FUSION_PROFILE: Final = CONVEX_PROFILE

BRANCH_CUT: Final = 100
"""How many hits of the lexical branch take part; the semantic one is cut at the binding's candidate limit."""

_LEXICAL_WEIGHT: Final = 0.7
_SEMANTIC_WEIGHT: Final = 0.3
_LEVEL: Final = 1e-6
_RRF_K: Final = 60


@dataclass(frozen=True, slots=True)
class Found:
    """One hit of one branch. Branches are given best first, after filters, floors and the re-check."""

    node_id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticBranch:
    """The semantic branch after its cut.

    `candidate_limit` is where it was cut; `similarity_floor` is the generation's, for where fewer were found.
    """

    found: Sequence[Found]
    candidate_limit: int
    similarity_floor: float

    @property
    def floor(self) -> float:
        """The cosine that counts as nothing: the one at the last rank, or the model's own with fewer candidates.

        Where not even the best of few reaches the model's floor, that floor says nothing of this query, and the last
        rank's is taken as well: otherwise all would count the same, and their order would be lost.
        """
        if len(self.found) >= self.candidate_limit or self.found[0].score - self.similarity_floor < _LEVEL:
            return self.found[-1].score
        return self.similarity_floor


def convex(lexical: Sequence[Found], semantic: SemanticBranch) -> dict[str, float]:
    """.7 of the lexical score relative to the best, .3 of the cosine between its floor and the best, each 0..1.

    Where the best cosine is level with the floor, every semantic hit scores 1. A branch adds 0 for what it missed.
    """
    scores: dict[str, float] = {}
    kept = lexical[:BRANCH_CUT]
    best = kept[0].score if kept else 0.0
    for hit in kept:
        share = hit.score / best if best > 0.0 else 0.0
        scores[hit.node_id] = _LEXICAL_WEIGHT * share
    if semantic.found:
        floor = semantic.floor
        span = semantic.found[0].score - floor
        for hit in semantic.found:
            share = 1.0 if span < _LEVEL else min(max((hit.score - floor) / span, 0.0), 1.0)
            scores[hit.node_id] = scores.get(hit.node_id, 0.0) + _SEMANTIC_WEIGHT * share
    return scores


def reciprocal_rank(lexical: Sequence[Found], semantic: SemanticBranch) -> dict[str, float]:
    """1 / (60 + rank) from each branch, ranks from 1, equal weights."""
    scores: dict[str, float] = {}
    for branch in (lexical[:BRANCH_CUT], semantic.found):
        for rank, hit in enumerate(branch, start=1):
            scores[hit.node_id] = scores.get(hit.node_id, 0.0) + 1.0 / (_RRF_K + rank)
    return scores


FUSION_PROFILES: Final[Mapping[str, Callable[[Sequence[Found], SemanticBranch], dict[str, float]]]] = MappingProxyType(
    {CONVEX_PROFILE: convex, RRF_PROFILE: reciprocal_rank}
)
