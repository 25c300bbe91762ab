"""Answers of recalls, and explanations of them."""

from __future__ import annotations

from typing import Final

from durable_memory.app.recall_result import Explanation, RecallAnswer, RecallChannel, RecallHit
from durable_memory.app.views.explanation import LexicalCut
from durable_memory.domain.citation import Citation
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.node import encode_citation
from durable_memory.rpc.encode.times import encode_duration, encode_time
from durablememory.v1 import recall_pb2 as pb

_CUTS: Final = {
    LexicalCut.NOT_INDEXED: pb.RECALL_EXCLUSION_NOT_ACTIVE,
    LexicalCut.EXCLUDED_ID: pb.RECALL_EXCLUSION_EXCLUDED_ID,
    LexicalCut.KIND: pb.RECALL_EXCLUSION_KIND,
    LexicalCut.LABEL: pb.RECALL_EXCLUSION_LABEL,
    LexicalCut.OCCURRED_AT: pb.RECALL_EXCLUSION_TIME,
    LexicalCut.UPDATED_AT: pb.RECALL_EXCLUSION_TIME,
    LexicalCut.NO_MATCH: pb.RECALL_EXCLUSION_NO_MATCH,
    LexicalCut.MIN_SCORE: pb.RECALL_EXCLUSION_MIN_SCORE,
    LexicalCut.MIN_RELATIVE_SCORE: pb.RECALL_EXCLUSION_MIN_RELATIVE_SCORE,
    LexicalCut.LIMIT: pb.RECALL_EXCLUSION_MAX_RESULTS,
}


def encode_answer(answer: RecallAnswer, *, with_surroundings: bool) -> pb.RecallResult:
    degradation = answer.degradation
    return pb.RecallResult(
        hits=[_hit(hit, with_surroundings=with_surroundings) for hit in answer.hits],
        mode_used=number(answer.mode),
        degradation=(
            None
            if degradation is None
            else pb.Degradation(reason=number(degradation.reason), message=degradation.message)
        ),
        searched_node_count=answer.searched_nodes,
    )


def encode_explanation(explanation: Explanation) -> pb.RecallExplanation:
    lexical = explanation.lexical
    return pb.RecallExplanation(
        citation=encode_citation(Citation.of(explanation.node)),
        status=number(explanation.node.status),
        recalled=lexical.cut is None,
        exclusion=None if lexical.cut is None else _CUTS[lexical.cut],
        rank=lexical.rank,
        mode_used=number(explanation.mode),
        lexical=None if lexical.rank is None else pb.BranchScore(rank=lexical.rank, score=lexical.score),
        matched_share=lexical.matched_share,
        terms=[
            pb.TermExplanation(
                term=term.term,
                document_count=term.document_count,
                weight=term.weight,
                in_own_text=bool(term.counts) and term.counts[0] > 0,
                in_surroundings=any(term.counts[1:]),
                contribution=term.contribution,
            )
            for term in lexical.terms
        ],
        lexical_floor=lexical.floor,
        vector_state=pb.VECTOR_STATE_NOT_USED,
    )


def _hit(hit: RecallHit, *, with_surroundings: bool) -> pb.RecallHit:
    node = hit.node
    return pb.RecallHit(
        citation=encode_citation(Citation.of(node)),
        rank=hit.rank,
        score=hit.score,
        channel=number(hit.channel),
        lexical=None if hit.lexical is None else pb.BranchScore(rank=hit.lexical.rank, score=hit.lexical.score),
        related_to_node_id=hit.related_to if hit.channel is RecallChannel.RELATED else None,
        trust=pb.TRUST_UNTRUSTED_HISTORY,
        kind=number(node.kind),
        content=node.content,
        surroundings=node.surroundings if with_surroundings else (),
        author=node.author,
        occurred_at=encode_time(node.occurred_at),
        created_at=encode_time(node.created_at),
        updated_at=encode_time(node.updated_at),
        confidence=node.confidence,
        importance=node.importance,
        labels=node.labels,
        relations=[
            pb.HitRelation(kind=number(relation.kind), node_id=relation.node_id, status=number(relation.status))
            for relation in hit.relations
        ],
        disputed=hit.disputed,
        freshness=pb.Freshness(age=encode_duration(hit.age)),
    )
