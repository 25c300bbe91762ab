"""Answers of recalls, and explanations of them."""

from __future__ import annotations

from typing import Final

from durable_memory.app.recall_result import Explanation, RecallAnswer, RecallHit, SemanticCut
from durable_memory.app.views.explanation import LexicalCut
from durable_memory.domain.citation import Citation
from durable_memory.domain.node import NodeRevision
from durable_memory.domain.session import RecallMode
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.node import encode_citation
from durable_memory.rpc.encode.times import encode_time, set_duration
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

_BY_FILTER: Final = frozenset(
    {
        LexicalCut.NOT_INDEXED,
        LexicalCut.EXCLUDED_ID,
        LexicalCut.KIND,
        LexicalCut.LABEL,
        LexicalCut.OCCURRED_AT,
        LexicalCut.UPDATED_AT,
    }
)
_SEMANTIC_CUTS: Final = {
    SemanticCut.MIN_SIMILARITY: pb.RECALL_EXCLUSION_MIN_SIMILARITY,
    SemanticCut.CANDIDATE_LIMIT: pb.RECALL_EXCLUSION_CANDIDATE_LIMIT,
}


def fill_result(result: pb.RecallResult, answer: RecallAnswer, *, with_surroundings: bool) -> None:
    """Encode into the response's own message: recall is what is called most, and copies are what costs."""
    result.mode_used = number(answer.mode)
    result.searched_node_count = answer.searched_nodes
    for hit in answer.hits:
        _fill(result.hits.add(), hit, with_surroundings=with_surroundings)
    if answer.semantic is not None:
        semantic = result.semantic
        semantic.index_revision = answer.semantic.index_revision
        semantic.index_history_digest = answer.semantic.index_history_digest
        semantic.vectors_searched = answer.semantic.vectors_searched
        semantic.candidates_dropped = answer.semantic.dropped
        semantic.candidates_refilled = answer.semantic.refilled
        semantic.unindexed_active_count = answer.semantic.unindexed_active
    if answer.degradation is not None:
        result.degradation.reason = number(answer.degradation.reason)
        result.degradation.message = answer.degradation.message


def encode_explanation(explanation: Explanation) -> pb.RecallExplanation:
    lexical, semantic = explanation.lexical, explanation.semantic.score
    degradation = explanation.degradation
    return pb.RecallExplanation(
        citation=encode_citation(Citation.of(explanation.node)),
        status=number(explanation.node.status),
        recalled=explanation.recalled,
        exclusion=_exclusion(explanation),
        rank=explanation.rank,
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
        vector_state=number(explanation.semantic.state),
        semantic=None if semantic is None else pb.BranchScore(rank=semantic.rank, score=semantic.score),
        degradation=None
        if degradation is None
        else pb.Degradation(reason=number(degradation.reason), message=degradation.message),
    )


def _exclusion(explanation: Explanation) -> pb.RecallExclusion | None:
    """The first of the contract's order that applies. A floor of one branch excludes nothing that the other found."""
    if explanation.recalled:
        return None
    cut = explanation.lexical.cut
    if cut in _BY_FILTER or explanation.mode is RecallMode.LEXICAL:
        return pb.RECALL_EXCLUSION_MAX_RESULTS if cut is None else _CUTS[cut]
    if explanation.rank is not None:
        return pb.RECALL_EXCLUSION_MAX_RESULTS
    cuts = []
    if explanation.mode is RecallMode.HYBRID and cut is not None and cut is not LexicalCut.NO_MATCH:
        cuts.append(pb.RECALL_EXCLUSION_CANDIDATE_LIMIT if cut is LexicalCut.LIMIT else _CUTS[cut])
    if explanation.semantic.cut is not None:
        cuts.append(_SEMANTIC_CUTS[explanation.semantic.cut])
    if cuts:
        return min(cuts)
    # What a branch did find and the fusion counts as nothing is beaten by all others.
    found = explanation.semantic.score is not None or (explanation.mode is RecallMode.HYBRID and cut is None)
    return pb.RECALL_EXCLUSION_MAX_RESULTS if found else pb.RECALL_EXCLUSION_NO_MATCH


def _fill(message: pb.RecallHit, hit: RecallHit, *, with_surroundings: bool) -> None:
    # What a hit says of its memory is encoded once and kept with the text: a fifth of the time of setting it anew.
    if hit.held.encoded is None:
        hit.held.encoded = _memory(hit.node).SerializeToString()
    message.MergeFromString(hit.held.encoded)
    message.rank = hit.rank
    message.score = hit.score
    message.channel = number(hit.channel)
    if hit.lexical is not None:
        lexical = message.lexical
        lexical.rank = hit.lexical.rank
        lexical.score = hit.lexical.score
    if hit.semantic is not None:
        semantic = message.semantic
        semantic.rank = hit.semantic.rank
        semantic.score = hit.semantic.score
    if hit.related_to is not None:
        message.related_to_node_id = hit.related_to
    if with_surroundings:
        message.surroundings.extend(hit.node.surroundings)
    if hit.relations:
        message.disputed = hit.disputed
        for relation in hit.relations:
            message.relations.add(kind=number(relation.kind), node_id=relation.node_id, status=number(relation.status))
    set_duration(message.freshness.age, hit.age)


def _memory(node: NodeRevision) -> pb.RecallHit:
    """A hit with what is the same in every answer that the text is in."""
    return pb.RecallHit(
        citation=encode_citation(Citation.of(node)),
        trust=pb.TRUST_UNTRUSTED_HISTORY,
        kind=number(node.kind),
        content=node.content,
        author=node.author,
        occurred_at=encode_time(node.occurred_at),
        created_at=encode_time(node.created_at),
        updated_at=encode_time(node.updated_at),
        confidence=node.confidence,
        importance=node.importance,
        labels=node.labels,
    )
