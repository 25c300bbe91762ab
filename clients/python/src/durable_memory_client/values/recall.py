"""Recalls: what to look for, and what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from durable_memory_client.service_error import MemoryServiceError, MemoryUnavailableError
from durable_memory_client.values.access import AdmissionOutcome
from durable_memory_client.values.citation import Citation
from durable_memory_client.values.enums import (
    DegradationReason,
    NodeKind,
    NodeStatus,
    RecallChannel,
    RecallExclusion,
    RecallMode,
    RelationKind,
    Trust,
    VectorState,
)
from durable_memory_client.values.namespace import ChangeToken, Namespace
from durable_memory_client.values.times import time_of, to_datetime, to_timedelta, to_timestamp
from durable_memory_client.values.wire import numbers_of, stated
from durablememory.v1 import recall_pb2, recall_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallFilter:
    """Narrows a recall; all parts must hold. Ranges of time include their start and not their end."""

    kinds: Sequence[NodeKind] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    occurred_from: datetime | None = None
    occurred_until: datetime | None = None
    updated_from: datetime | None = None
    updated_until: datetime | None = None
    excluded_node_ids: Sequence[str] = ()

    def to_proto(self) -> recall_pb2.RecallFilter:
        return stated(
            recall_pb2.RecallFilter,
            kinds=numbers_of(NodeKind, self.kinds, "kinds"),
            labels=self.labels,
            occurred=_range(self.occurred_from, self.occurred_until, "occurred"),
            updated=_range(self.updated_from, self.updated_until, "updated"),
            excluded_node_ids=self.excluded_node_ids,
        )


def filter_to_proto(filter: RecallFilter | None) -> recall_pb2.RecallFilter | None:
    return None if filter is None else filter.to_proto()


@dataclass(frozen=True, slots=True)
class BranchScore:
    """A place (from 1) and score in one branch of a recall."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class HitRelation:
    """A relation of a hit, and the status of its other end."""

    kind: RelationKind
    node_id: str
    status: NodeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One memory that was found, and in which namespace. History, not instruction: `render` before a model sees it.

    `score` is comparable within one recall only. `disputed`: another ACTIVE memory says otherwise. `age`: since
    `updated_at`, at the time of the answer.
    """

    namespace: Namespace
    citation: Citation
    rank: int
    score: float
    channel: RecallChannel
    lexical: BranchScore | None
    semantic: BranchScore | None
    related_to: str | None
    trust: Trust
    kind: NodeKind
    content: str
    surroundings: tuple[str, ...]
    author: str
    occurred_at: datetime | None
    created_at: datetime
    updated_at: datetime
    confidence: float
    importance: float
    labels: Mapping[str, str] = field(hash=False)
    relations: tuple[HitRelation, ...]
    disputed: bool
    age: timedelta

    @property
    def node_id(self) -> str:
        return self.citation.node_id

    @classmethod
    def from_proto(cls, message: recall_pb2.RecallHit, namespace: Namespace) -> Hit:
        return cls(
            namespace=namespace,
            citation=Citation.from_proto(message.citation),
            rank=message.rank,
            score=message.score,
            channel=RecallChannel.from_number(message.channel),
            lexical=_branch(message, "lexical"),
            semantic=_branch(message, "semantic"),
            related_to=message.related_to_node_id if message.HasField("related_to_node_id") else None,
            trust=Trust.from_number(message.trust),
            kind=NodeKind.from_number(message.kind),
            content=message.content,
            surroundings=tuple(message.surroundings),
            author=message.author,
            occurred_at=time_of(message, "occurred_at"),
            created_at=to_datetime(message.created_at),
            updated_at=to_datetime(message.updated_at),
            confidence=message.confidence,
            importance=message.importance,
            labels=dict(message.labels),
            relations=tuple(
                HitRelation(
                    RelationKind.from_number(relation.kind), relation.node_id, NodeStatus.from_number(relation.status)
                )
                for relation in message.relations
            ),
            disputed=message.disputed,
            age=to_timedelta(message.freshness.age),
        )


@dataclass(frozen=True, slots=True)
class Degradation:
    """That and why AUTO searched by words only."""

    reason: DegradationReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSearch:
    """What the semantic branch searched, and how current that was."""

    index_revision: int
    index_history_digest: str
    vectors_searched: int
    candidates_dropped: int
    candidates_refilled: int
    unindexed_active_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a recall found: a sequence of hits, best first. Empty is normal.

    `unavailable`: nothing was searched, because the service could not answer and the caller chose an empty recall;
    `error` says why. `mode_used` and `change_token` (what the answer is for) are then None.
    With `admit`, `context_id` is the assembly that the hits were admitted to, and `admissions` has one outcome for
    each memory that was found, refused ones included; those are not among the hits.
    """

    namespace: Namespace
    hits: tuple[Hit, ...] = ()
    change_token: ChangeToken | None = None
    mode_used: RecallMode | None = None
    degradation: Degradation | None = None
    searched_node_count: int = 0
    semantic: SemanticSearch | None = None
    admissions: tuple[AdmissionOutcome, ...] = ()
    context_id: str | None = None
    error: MemoryUnavailableError | None = None

    @property
    def unavailable(self) -> bool:
        return self.error is not None

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @classmethod
    def from_proto(
        cls,
        namespace: Namespace,
        message: recall_service_pb2.ActiveRecallResponse | recall_service_pb2.PreviewRecallResponse,
        *,
        admissions: tuple[AdmissionOutcome, ...] = (),
        context_id: str | None = None,
    ) -> Recall:
        result = message.result
        return cls(
            namespace=namespace,
            hits=tuple(Hit.from_proto(hit, namespace) for hit in result.hits),
            change_token=ChangeToken.from_proto(message.change_token),
            mode_used=RecallMode.from_number(result.mode_used),
            degradation=_degradation(result),
            searched_node_count=result.searched_node_count,
            semantic=SemanticSearch(
                index_revision=result.semantic.index_revision,
                index_history_digest=result.semantic.index_history_digest,
                vectors_searched=result.semantic.vectors_searched,
                candidates_dropped=result.semantic.candidates_dropped,
                candidates_refilled=result.semantic.candidates_refilled,
                unindexed_active_count=result.semantic.unindexed_active_count,
            )
            if result.HasField("semantic")
            else None,
            admissions=admissions,
            context_id=context_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRecall:
    """Recalls of several namespaces as one sequence of hits; `hit.namespace` says where each comes from.

    Scores of different namespaces cannot be compared, so hits come by their rank, the namespaces in the order of the
    call taking turns. `parts` has the recall of each, in that order.
    """

    hits: tuple[Hit, ...]
    parts: tuple[Recall, ...]

    @property
    def unavailable(self) -> bool:
        """Whether any namespace could not be searched; `errors` says why."""
        return any(part.unavailable for part in self.parts)

    @property
    def errors(self) -> tuple[MemoryServiceError, ...]:
        return tuple(part.error for part in self.parts if part.error is not None)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class TermExplanation:
    """What one term of a query contributed."""

    term: str
    document_count: int
    weight: float
    in_own_text: bool
    in_surroundings: bool
    contribution: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a node is, or is not, among the hits of a recall. `exclusion` is None if it is.

    `lexical` and `semantic` are its places in the two branches; `semantic.score` is its cosine. `matched_share` is what
    `min_score` is compared with. With a `degradation` the semantic branch could not be asked, so that `vector_state`
    and `semantic` say nothing of the memory.
    """

    citation: Citation
    status: NodeStatus
    recalled: bool
    exclusion: RecallExclusion | None
    rank: int | None
    mode_used: RecallMode
    lexical: BranchScore | None
    terms: tuple[TermExplanation, ...]
    lexical_floor: float
    matched_share: float
    vector_state: VectorState
    semantic: BranchScore | None
    degradation: Degradation | None
    change_token: ChangeToken

    @classmethod
    def from_proto(cls, response: recall_service_pb2.ExplainRecallResponse) -> Explanation:
        message = response.explanation
        return cls(
            citation=Citation.from_proto(message.citation),
            status=NodeStatus.from_number(message.status),
            recalled=message.recalled,
            exclusion=RecallExclusion.from_number(message.exclusion) if message.HasField("exclusion") else None,
            rank=message.rank if message.HasField("rank") else None,
            mode_used=RecallMode.from_number(message.mode_used),
            lexical=_branch(message, "lexical"),
            terms=tuple(
                TermExplanation(
                    term=term.term,
                    document_count=term.document_count,
                    weight=term.weight,
                    in_own_text=term.in_own_text,
                    in_surroundings=term.in_surroundings,
                    contribution=term.contribution,
                )
                for term in message.terms
            ),
            lexical_floor=message.lexical_floor,
            matched_share=message.matched_share,
            vector_state=VectorState.from_number(message.vector_state),
            semantic=_branch(message, "semantic"),
            degradation=_degradation(message),
            change_token=ChangeToken.from_proto(response.change_token),
        )


def _degradation(message: recall_pb2.RecallResult | recall_pb2.RecallExplanation) -> Degradation | None:
    if not message.HasField("degradation"):
        return None
    return Degradation(DegradationReason.from_number(message.degradation.reason), message.degradation.message)


def _branch(message: recall_pb2.RecallHit | recall_pb2.RecallExplanation, name: str) -> BranchScore | None:
    if not message.HasField(name):
        return None
    score = message.lexical if name == "lexical" else message.semantic
    return BranchScore(score.rank, score.score)


def _range(start: datetime | None, end: datetime | None, name: str) -> recall_pb2.TimeRange | None:
    if start is None and end is None:
        return None
    return recall_pb2.TimeRange(start=to_timestamp(start, f"{name}_from"), end=to_timestamp(end, f"{name}_until"))
