"""The ways to recall that are compared: what a session is bound to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from durable_memory_client import RecallMode

COVERAGE: Final = "a3s.memory.lexical.word-cjk-bigram.v1"
BM25F: Final = "dm.lexical.bm25f.v1"
RECIPROCAL_RANK: Final = "a3s.code.memory.hybrid.rrf-k60.v1"
CONVEX: Final = "dm.fusion.convex.v1"


@dataclass(frozen=True, slots=True)
class Method:
    name: str
    mode: RecallMode
    lexical_profile: str = BM25F
    fusion_profile: str = CONVEX

    @property
    def needs_vectors(self) -> bool:
        return self.mode is not RecallMode.LEXICAL


METHODS: Final = (
    Method("coverage", RecallMode.LEXICAL, COVERAGE),
    Method("bm25f", RecallMode.LEXICAL),
    Method("semantic", RecallMode.SEMANTIC),
    Method("coverage + semantic, RRF", RecallMode.HYBRID, COVERAGE, RECIPROCAL_RANK),
    Method("bm25f + semantic, RRF", RecallMode.HYBRID, BM25F, RECIPROCAL_RANK),
    Method("bm25f + semantic, convex", RecallMode.HYBRID),
)
"""The first and the fourth are the compatible profiles, the last is the default."""

WITH_VECTORS: Final = frozenset(method.name for method in METHODS if method.needs_vectors)
