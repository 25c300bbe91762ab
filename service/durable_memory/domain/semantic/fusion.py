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

_LEXICAL_WEIGHT: Final = 0.75
_SEMANTIC_WEIGHT: Final = 0.25
_TELLING_SHARE: Final = 0.4
"""A best lexical hit that matched less of the query is not as good as best sounds: a question in another language than
the memories shares a number or a name with some of them, and that is no reason to put these first."""

_LEVEL: Final = 1e-6
_BELOW_FLOOR: Final = 1e-6
"""What is left of the scale for cosines under the floor: they count as nothing, and keep their order."""

_RRF_K: Final = 60


@dataclass(frozen=True, slots=True)
class Found:
    """One hit of one branch. Branches are given best first, after filters, floors and the re-check.

    `matched_share` is of the best lexical hit the part of the query that it matched, 0..1; no other is looked at.
    """

    node_id: str
    score: float
    matched_share: float = 1.0


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
        rank's is taken as well: otherwise none would count for anything beside the words.
        """
        if len(self.found) >= self.candidate_limit or self.found[0].score - self.similarity_floor < _LEVEL:
            return self.found[-1].score
        return self.similarity_floor


def convex(lexical: Sequence[Found], semantic: SemanticBranch) -> dict[str, float]:
    """.75 of the lexical score relative to the best, .25 of the cosine between its floor and the best, each 0..1.

    The lexical part weighs less where even the best hit matched less than .4 of the query: in proportion. Where the
    best cosine is level with the floor, every semantic hit scores 1. A branch adds 0 for what it missed.
    """
    scores: dict[str, float] = {}
    kept = lexical[:BRANCH_CUT]
    if kept:
        weight = _LEXICAL_WEIGHT * min(kept[0].matched_share / _TELLING_SHARE, 1.0)
        for hit in kept:
            scores[hit.node_id] = weight * (hit.score / kept[0].score) if kept[0].score > 0.0 else 0.0
    if semantic.found:
        best, floor = semantic.found[0].score, semantic.floor
        for hit in semantic.found:
            share = _between(floor, hit.score, best)
            scores[hit.node_id] = scores.get(hit.node_id, 0.0) + _SEMANTIC_WEIGHT * share
    return scores


def _between(floor: float, cosine: float, best: float) -> float:
    """Where a cosine is on the way from the floor, 0 but for the order below it, to the best, 1."""
    if best - floor < _LEVEL:
        return 1.0
    if cosine < floor:
        return _BELOW_FLOOR * max(cosine + 1.0, 0.0) / max(floor + 1.0, _LEVEL)
    return _BELOW_FLOOR + (1.0 - _BELOW_FLOOR) * min((cosine - floor) / (best - floor), 1.0)


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
