"""Answers of recalls, and explanations of them."""

from __future__ import annotations

from typing import Final

from durable_memory.app.recall_result import Explanation, RecallAnswer, RecallHit
from durable_memory.app.views.explanation import LexicalCut
from durable_memory.domain.citation import Citation
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.node import encode_citation
from durable_memory.rpc.encode.times import encode_duration, set_time
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


def fill_result(result: pb.RecallResult, answer: RecallAnswer, *, with_surroundings: bool) -> None:
    """Encode into the response's own message: recall is what is called most, and copies are what costs."""
    result.mode_used = number(answer.mode)
    result.searched_node_count = answer.searched_nodes
    for hit in answer.hits:
        _fill(result.hits.add(), hit, with_surroundings=with_surroundings)
    if answer.degradation is not None:
        result.degradation.reason = number(answer.degradation.reason)
        result.degradation.message = answer.degradation.message


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


def _fill(message: pb.RecallHit, hit: RecallHit, *, with_surroundings: bool) -> None:
    node = hit.node
    citation = message.citation
    citation.namespace_revision = node.valid_from
    citation.node_id = node.node_id
    citation.node_revision = node.revision
    citation.content_digest = node.content_digest
    citation.canonical = str(Citation.of(node))
    message.rank = hit.rank
    message.score = hit.score
    message.channel = number(hit.channel)
    if hit.lexical is not None:
        message.lexical.rank = hit.lexical.rank
        message.lexical.score = hit.lexical.score
    if hit.related_to is not None:
        message.related_to_node_id = hit.related_to
    message.trust = pb.TRUST_UNTRUSTED_HISTORY
    message.kind = number(node.kind)
    message.content = node.content
    if with_surroundings:
        message.surroundings.extend(node.surroundings)
    message.author = node.author
    set_time(message.occurred_at, node.occurred_at)
    set_time(message.created_at, node.created_at)
    set_time(message.updated_at, node.updated_at)
    message.confidence = node.confidence
    message.importance = node.importance
    labels = message.labels
    for key, value in node.labels.items():
        labels[key] = value
    for relation in hit.relations:
        message.relations.add(kind=number(relation.kind), node_id=relation.node_id, status=number(relation.status))
    message.disputed = hit.disputed
    message.freshness.age.CopyFrom(encode_duration(hit.age))
