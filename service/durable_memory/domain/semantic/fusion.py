"""How two branches become one ranking. Profiles are versioned: another rule is another id."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Generic, Protocol, TypeVar

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

N = TypeVar("N", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalBranch(Generic[N]):
    """The lexical branch after filters and floors, best first; `nodes` is whatever tells nodes apart.

    `matched_share` is of the best hit the part of the query that it matched, 0..1.
    """

    nodes: Sequence[N]
    scores: Sequence[float]
    matched_share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticBranch(Generic[N]):
    """The semantic branch after filters, floor, re-check and cut, best first, with the cosines.

    `candidate_limit` is where it was cut; `similarity_floor` is the generation's, for where fewer were found.
    """

    nodes: Sequence[N]
    cosines: Sequence[float]
    candidate_limit: int
    similarity_floor: float

    @property
    def floor(self) -> float:
        """The cosine that counts as nothing: the one at the last rank, or the model's own with fewer candidates.

        Where not even the best of few reaches the model's floor, that floor says nothing of this query, and the last
        rank's is taken as well: otherwise none would count for anything beside the words.
        """
        if len(self.cosines) >= self.candidate_limit or self.cosines[0] - self.similarity_floor < _LEVEL:
            return self.cosines[-1]
        return self.similarity_floor


def convex(lexical: LexicalBranch[N], semantic: SemanticBranch[N]) -> dict[N, float]:
    """.75 of the lexical score relative to the best, .25 of the cosine between its floor and the best, each 0..1.

    The lexical part weighs less where even the best hit matched less than .4 of the query: in proportion. Where the
    best cosine is level with the floor, every semantic hit scores 1. A branch adds 0 for what it missed.
    """
    scores: dict[N, float] = {}
    kept = lexical.scores[:BRANCH_CUT]
    if kept:
        best = kept[0]
        weight = _LEXICAL_WEIGHT * min(lexical.matched_share / _TELLING_SHARE, 1.0)
        parts = [weight * (score / best) for score in kept] if best > 0.0 else [0.0] * len(kept)
        scores = dict(zip(lexical.nodes, parts, strict=False))
    if semantic.cosines:
        shares = _shares(semantic.cosines, semantic.floor)
        _add(scores, semantic.nodes, [_SEMANTIC_WEIGHT * share for share in shares])
    return scores


def _shares(cosines: Sequence[float], floor: float) -> list[float]:
    """Where each is on the way from the floor, 0 but for the order below it, to the best, which is the first, 1."""
    width = cosines[0] - floor
    if width < _LEVEL:
        return [1.0] * len(cosines)
    below = max(floor + 1.0, _LEVEL)
    return [
        _BELOW_FLOOR * max(cosine + 1.0, 0.0) / below
        if cosine < floor
        else _BELOW_FLOOR + (1.0 - _BELOW_FLOOR) * ((cosine - floor) / width)
        for cosine in cosines
    ]


def reciprocal_rank(lexical: LexicalBranch[N], semantic: SemanticBranch[N]) -> dict[N, float]:
    """1 / (60 + rank) from each branch, ranks from 1, equal weights."""
    scores: dict[N, float] = {}
    for nodes in (lexical.nodes[:BRANCH_CUT], semantic.nodes):
        _add(scores, nodes, [1.0 / (_RRF_K + rank) for rank in range(1, len(nodes) + 1)])
    return scores


def _add(scores: dict[N, float], nodes: Sequence[N], parts: Sequence[float]) -> None:
    for node, part in zip(nodes, parts, strict=True):
        scores[node] = scores.get(node, 0.0) + part


class Fusion(Protocol):
    """The score of every node that a branch found."""

    def __call__(self, lexical: LexicalBranch[N], semantic: SemanticBranch[N], /) -> dict[N, float]: ...


FUSION_PROFILES: Final[Mapping[str, Fusion]] = MappingProxyType({CONVEX_PROFILE: convex, RRF_PROFILE: reciprocal_rank})
