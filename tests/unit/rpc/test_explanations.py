"""What an explanation on the wire says kept a memory from the hits: the first of the contract's order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from durable_memory.app.degradation import degradation
from durable_memory.app.recall_result import (
    NOT_USED,
    BranchScore,
    DegradationReason,
    Explanation,
    SemanticCut,
    SemanticStanding,
    VectorState,
)
from durable_memory.app.views.explanation import LexicalCut, LexicalExplanation
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus
from durable_memory.domain.session import RecallMode
from durable_memory.domain.state import ChangeToken
from durable_memory.rpc.encode.recall import encode_explanation
from durablememory.v1 import recall_pb2 as pb

NO_WORD, CURRENT = LexicalCut.NO_MATCH, VectorState.CURRENT
FOUND = SemanticStanding(state=CURRENT, score=BranchScore(1, 0.9))
TOO_FAR = SemanticStanding(state=CURRENT, score=BranchScore(9, 0.1), cut=SemanticCut.MIN_SIMILARITY)
TOO_MANY = SemanticStanding(state=CURRENT, score=BranchScore(9, 0.1), cut=SemanticCut.CANDIDATE_LIMIT)
MISSING = SemanticStanding(state=VectorState.MISSING)
AT = datetime(2030, 1, 1, tzinfo=UTC)
NODE = NodeRevision(
    node_id="a",
    revision=1,
    kind=NodeKind.SEMANTIC,
    status=NodeStatus.ACTIVE,
    content="Tea.",
    content_digest="0" * 64,
    occurred_at=AT,
    created_at=AT,
    updated_at=AT,
    committed_at=AT,
    valid_from=1,
)


def encoded(
    mode: RecallMode,
    cut: LexicalCut | None,
    semantic: SemanticStanding,
    *,
    rank: int | None = None,
    recalled: bool = False,
    without: DegradationReason | None = None,
) -> pb.RecallExplanation:
    return encode_explanation(
        Explanation(
            token=ChangeToken(history_id="h", namespace_revision=1),
            node=NODE,
            mode=mode,
            degradation=None if without is None else degradation(without),
            lexical=LexicalExplanation("a", 1, (), 0.0, 0.0, None if cut is NO_WORD else 1, 0.0, cut),
            semantic=semantic,
            rank=rank,
            recalled=recalled,
        )
    )


@pytest.mark.parametrize(
    ("mode", "cut", "semantic", "rank", "exclusion"),
    [
        (RecallMode.HYBRID, LexicalCut.LABEL, FOUND, None, pb.RECALL_EXCLUSION_LABEL),
        (RecallMode.SEMANTIC, LexicalCut.LABEL, FOUND, None, pb.RECALL_EXCLUSION_LABEL),
        (RecallMode.HYBRID, NO_WORD, MISSING, None, pb.RECALL_EXCLUSION_NO_MATCH),
        (RecallMode.SEMANTIC, None, MISSING, None, pb.RECALL_EXCLUSION_NO_MATCH),
        (RecallMode.HYBRID, NO_WORD, TOO_FAR, None, pb.RECALL_EXCLUSION_MIN_SIMILARITY),
        (RecallMode.SEMANTIC, None, TOO_MANY, None, pb.RECALL_EXCLUSION_CANDIDATE_LIMIT),
        (RecallMode.HYBRID, LexicalCut.MIN_SCORE, TOO_FAR, None, pb.RECALL_EXCLUSION_MIN_SCORE),
        (RecallMode.HYBRID, LexicalCut.LIMIT, MISSING, None, pb.RECALL_EXCLUSION_CANDIDATE_LIMIT),
        (RecallMode.HYBRID, LexicalCut.MIN_SCORE, FOUND, 7, pb.RECALL_EXCLUSION_MAX_RESULTS),
        (RecallMode.SEMANTIC, NO_WORD, FOUND, 7, pb.RECALL_EXCLUSION_MAX_RESULTS),
        (RecallMode.LEXICAL, LexicalCut.LIMIT, NOT_USED, 7, pb.RECALL_EXCLUSION_MAX_RESULTS),
        (RecallMode.LEXICAL, LexicalCut.MIN_RELATIVE_SCORE, NOT_USED, 2, pb.RECALL_EXCLUSION_MIN_RELATIVE_SCORE),
    ],
)
def test_what_cut_a_memory_off_is_judged_by_the_branches_that_the_mode_has(
    mode: RecallMode, cut: LexicalCut | None, semantic: SemanticStanding, rank: int | None, exclusion: int
) -> None:
    assert encoded(mode, cut, semantic, rank=rank).exclusion == exclusion


def test_what_is_recalled_has_no_exclusion_whatever_one_branch_says() -> None:
    message = encoded(RecallMode.HYBRID, NO_WORD, FOUND, rank=1, recalled=True)
    assert message.recalled
    assert not message.HasField("exclusion")
    assert (message.semantic.rank, message.semantic.score) == (1, 0.9)
    assert message.vector_state == pb.VECTOR_STATE_CURRENT
    assert not message.HasField("degradation")


def test_the_rank_and_similarity_of_what_was_cut_are_told_and_why_there_are_none() -> None:
    cut = encoded(RecallMode.HYBRID, NO_WORD, TOO_FAR)
    assert (cut.semantic.rank, cut.semantic.score) == (9, 0.1)
    degraded = encoded(RecallMode.LEXICAL, None, NOT_USED, rank=1, recalled=True, without=DegradationReason.DEADLINE)
    assert not degraded.HasField("semantic")
    assert degraded.degradation.reason == pb.DEGRADATION_REASON_DEADLINE
    assert degraded.degradation.message
