import datetime

from durablememory.v1 import citation_pb2 as _citation_pb2
from durablememory.v1 import node_pb2 as _node_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RecallMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECALL_MODE_UNSPECIFIED: _ClassVar[RecallMode]
    RECALL_MODE_AUTO: _ClassVar[RecallMode]
    RECALL_MODE_LEXICAL: _ClassVar[RecallMode]
    RECALL_MODE_SEMANTIC: _ClassVar[RecallMode]
    RECALL_MODE_HYBRID: _ClassVar[RecallMode]

class Trust(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRUST_UNSPECIFIED: _ClassVar[Trust]
    TRUST_UNTRUSTED_HISTORY: _ClassVar[Trust]

class RecallChannel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECALL_CHANNEL_UNSPECIFIED: _ClassVar[RecallChannel]
    RECALL_CHANNEL_LEXICAL: _ClassVar[RecallChannel]
    RECALL_CHANNEL_SEMANTIC: _ClassVar[RecallChannel]
    RECALL_CHANNEL_HYBRID: _ClassVar[RecallChannel]
    RECALL_CHANNEL_RELATED: _ClassVar[RecallChannel]

class DegradationReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEGRADATION_REASON_UNSPECIFIED: _ClassVar[DegradationReason]
    DEGRADATION_REASON_SEMANTIC_NOT_CONFIGURED: _ClassVar[DegradationReason]
    DEGRADATION_REASON_INDEX_UNAVAILABLE: _ClassVar[DegradationReason]
    DEGRADATION_REASON_INDEX_NOT_BUILT: _ClassVar[DegradationReason]
    DEGRADATION_REASON_INDEX_REGRESSED: _ClassVar[DegradationReason]
    DEGRADATION_REASON_INDEX_CORRUPTED: _ClassVar[DegradationReason]
    DEGRADATION_REASON_PROVIDER_FAILED: _ClassVar[DegradationReason]
    DEGRADATION_REASON_DEADLINE: _ClassVar[DegradationReason]
    DEGRADATION_REASON_GENERATION_NOT_SERVED: _ClassVar[DegradationReason]

class RecallExclusion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECALL_EXCLUSION_UNSPECIFIED: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_NOT_ACTIVE: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_EXCLUDED_ID: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_KIND: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_LABEL: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_TIME: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_NO_MATCH: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_MIN_SCORE: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_MIN_RELATIVE_SCORE: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_MIN_SIMILARITY: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_CANDIDATE_LIMIT: _ClassVar[RecallExclusion]
    RECALL_EXCLUSION_MAX_RESULTS: _ClassVar[RecallExclusion]

class VectorState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VECTOR_STATE_UNSPECIFIED: _ClassVar[VectorState]
    VECTOR_STATE_NOT_USED: _ClassVar[VectorState]
    VECTOR_STATE_MISSING: _ClassVar[VectorState]
    VECTOR_STATE_OUTDATED: _ClassVar[VectorState]
    VECTOR_STATE_CURRENT: _ClassVar[VectorState]
RECALL_MODE_UNSPECIFIED: RecallMode
RECALL_MODE_AUTO: RecallMode
RECALL_MODE_LEXICAL: RecallMode
RECALL_MODE_SEMANTIC: RecallMode
RECALL_MODE_HYBRID: RecallMode
TRUST_UNSPECIFIED: Trust
TRUST_UNTRUSTED_HISTORY: Trust
RECALL_CHANNEL_UNSPECIFIED: RecallChannel
RECALL_CHANNEL_LEXICAL: RecallChannel
RECALL_CHANNEL_SEMANTIC: RecallChannel
RECALL_CHANNEL_HYBRID: RecallChannel
RECALL_CHANNEL_RELATED: RecallChannel
DEGRADATION_REASON_UNSPECIFIED: DegradationReason
DEGRADATION_REASON_SEMANTIC_NOT_CONFIGURED: DegradationReason
DEGRADATION_REASON_INDEX_UNAVAILABLE: DegradationReason
DEGRADATION_REASON_INDEX_NOT_BUILT: DegradationReason
DEGRADATION_REASON_INDEX_REGRESSED: DegradationReason
DEGRADATION_REASON_INDEX_CORRUPTED: DegradationReason
DEGRADATION_REASON_PROVIDER_FAILED: DegradationReason
DEGRADATION_REASON_DEADLINE: DegradationReason
DEGRADATION_REASON_GENERATION_NOT_SERVED: DegradationReason
RECALL_EXCLUSION_UNSPECIFIED: RecallExclusion
RECALL_EXCLUSION_NOT_ACTIVE: RecallExclusion
RECALL_EXCLUSION_EXCLUDED_ID: RecallExclusion
RECALL_EXCLUSION_KIND: RecallExclusion
RECALL_EXCLUSION_LABEL: RecallExclusion
RECALL_EXCLUSION_TIME: RecallExclusion
RECALL_EXCLUSION_NO_MATCH: RecallExclusion
RECALL_EXCLUSION_MIN_SCORE: RecallExclusion
RECALL_EXCLUSION_MIN_RELATIVE_SCORE: RecallExclusion
RECALL_EXCLUSION_MIN_SIMILARITY: RecallExclusion
RECALL_EXCLUSION_CANDIDATE_LIMIT: RecallExclusion
RECALL_EXCLUSION_MAX_RESULTS: RecallExclusion
VECTOR_STATE_UNSPECIFIED: VectorState
VECTOR_STATE_NOT_USED: VectorState
VECTOR_STATE_MISSING: VectorState
VECTOR_STATE_OUTDATED: VectorState
VECTOR_STATE_CURRENT: VectorState

class RecallFilter(_message.Message):
    __slots__ = ("kinds", "labels", "occurred", "updated", "excluded_node_ids")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KINDS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedScalarFieldContainer[_node_pb2.NodeKind]
    labels: _containers.ScalarMap[str, str]
    occurred: TimeRange
    updated: TimeRange
    excluded_node_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, kinds: _Optional[_Iterable[_Union[_node_pb2.NodeKind, str]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., occurred: _Optional[_Union[TimeRange, _Mapping]] = ..., updated: _Optional[_Union[TimeRange, _Mapping]] = ..., excluded_node_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class TimeRange(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: _timestamp_pb2.Timestamp
    end: _timestamp_pb2.Timestamp
    def __init__(self, start: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RecallResult(_message.Message):
    __slots__ = ("hits", "mode_used", "degradation", "searched_node_count", "semantic")
    HITS_FIELD_NUMBER: _ClassVar[int]
    MODE_USED_FIELD_NUMBER: _ClassVar[int]
    DEGRADATION_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[RecallHit]
    mode_used: RecallMode
    degradation: Degradation
    searched_node_count: int
    semantic: SemanticSearch
    def __init__(self, hits: _Optional[_Iterable[_Union[RecallHit, _Mapping]]] = ..., mode_used: _Optional[_Union[RecallMode, str]] = ..., degradation: _Optional[_Union[Degradation, _Mapping]] = ..., searched_node_count: _Optional[int] = ..., semantic: _Optional[_Union[SemanticSearch, _Mapping]] = ...) -> None: ...

class RecallHit(_message.Message):
    __slots__ = ("citation", "rank", "score", "channel", "lexical", "semantic", "related_to_node_id", "trust", "kind", "content", "surroundings", "author", "occurred_at", "created_at", "updated_at", "confidence", "importance", "labels", "relations", "disputed", "freshness")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CITATION_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_FIELD_NUMBER: _ClassVar[int]
    RELATED_TO_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    DISPUTED_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_FIELD_NUMBER: _ClassVar[int]
    citation: _citation_pb2.Citation
    rank: int
    score: float
    channel: RecallChannel
    lexical: BranchScore
    semantic: BranchScore
    related_to_node_id: str
    trust: Trust
    kind: _node_pb2.NodeKind
    content: str
    surroundings: _containers.RepeatedScalarFieldContainer[str]
    author: str
    occurred_at: _timestamp_pb2.Timestamp
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    confidence: float
    importance: float
    labels: _containers.ScalarMap[str, str]
    relations: _containers.RepeatedCompositeFieldContainer[HitRelation]
    disputed: bool
    freshness: Freshness
    def __init__(self, citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., rank: _Optional[int] = ..., score: _Optional[float] = ..., channel: _Optional[_Union[RecallChannel, str]] = ..., lexical: _Optional[_Union[BranchScore, _Mapping]] = ..., semantic: _Optional[_Union[BranchScore, _Mapping]] = ..., related_to_node_id: _Optional[str] = ..., trust: _Optional[_Union[Trust, str]] = ..., kind: _Optional[_Union[_node_pb2.NodeKind, str]] = ..., content: _Optional[str] = ..., surroundings: _Optional[_Iterable[str]] = ..., author: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., confidence: _Optional[float] = ..., importance: _Optional[float] = ..., labels: _Optional[_Mapping[str, str]] = ..., relations: _Optional[_Iterable[_Union[HitRelation, _Mapping]]] = ..., disputed: _Optional[bool] = ..., freshness: _Optional[_Union[Freshness, _Mapping]] = ...) -> None: ...

class BranchScore(_message.Message):
    __slots__ = ("rank", "score")
    RANK_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    rank: int
    score: float
    def __init__(self, rank: _Optional[int] = ..., score: _Optional[float] = ...) -> None: ...

class HitRelation(_message.Message):
    __slots__ = ("kind", "node_id", "status")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    kind: _node_pb2.RelationKind
    node_id: str
    status: _node_pb2.NodeStatus
    def __init__(self, kind: _Optional[_Union[_node_pb2.RelationKind, str]] = ..., node_id: _Optional[str] = ..., status: _Optional[_Union[_node_pb2.NodeStatus, str]] = ...) -> None: ...

class Freshness(_message.Message):
    __slots__ = ("age",)
    AGE_FIELD_NUMBER: _ClassVar[int]
    age: _duration_pb2.Duration
    def __init__(self, age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Degradation(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: DegradationReason
    message: str
    def __init__(self, reason: _Optional[_Union[DegradationReason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class SemanticSearch(_message.Message):
    __slots__ = ("index_revision", "index_history_digest", "vectors_searched", "candidates_dropped", "candidates_refilled", "unindexed_active_count")
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    INDEX_HISTORY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    VECTORS_SEARCHED_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_DROPPED_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_REFILLED_FIELD_NUMBER: _ClassVar[int]
    UNINDEXED_ACTIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    index_revision: int
    index_history_digest: str
    vectors_searched: int
    candidates_dropped: int
    candidates_refilled: int
    unindexed_active_count: int
    def __init__(self, index_revision: _Optional[int] = ..., index_history_digest: _Optional[str] = ..., vectors_searched: _Optional[int] = ..., candidates_dropped: _Optional[int] = ..., candidates_refilled: _Optional[int] = ..., unindexed_active_count: _Optional[int] = ...) -> None: ...

class RecallExplanation(_message.Message):
    __slots__ = ("citation", "status", "recalled", "exclusion", "rank", "mode_used", "lexical", "terms", "lexical_floor", "vector_state", "semantic", "matched_share", "degradation")
    CITATION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RECALLED_FIELD_NUMBER: _ClassVar[int]
    EXCLUSION_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    MODE_USED_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_FLOOR_FIELD_NUMBER: _ClassVar[int]
    VECTOR_STATE_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_FIELD_NUMBER: _ClassVar[int]
    MATCHED_SHARE_FIELD_NUMBER: _ClassVar[int]
    DEGRADATION_FIELD_NUMBER: _ClassVar[int]
    citation: _citation_pb2.Citation
    status: _node_pb2.NodeStatus
    recalled: bool
    exclusion: RecallExclusion
    rank: int
    mode_used: RecallMode
    lexical: BranchScore
    terms: _containers.RepeatedCompositeFieldContainer[TermExplanation]
    lexical_floor: float
    vector_state: VectorState
    semantic: BranchScore
    matched_share: float
    degradation: Degradation
    def __init__(self, citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., status: _Optional[_Union[_node_pb2.NodeStatus, str]] = ..., recalled: _Optional[bool] = ..., exclusion: _Optional[_Union[RecallExclusion, str]] = ..., rank: _Optional[int] = ..., mode_used: _Optional[_Union[RecallMode, str]] = ..., lexical: _Optional[_Union[BranchScore, _Mapping]] = ..., terms: _Optional[_Iterable[_Union[TermExplanation, _Mapping]]] = ..., lexical_floor: _Optional[float] = ..., vector_state: _Optional[_Union[VectorState, str]] = ..., semantic: _Optional[_Union[BranchScore, _Mapping]] = ..., matched_share: _Optional[float] = ..., degradation: _Optional[_Union[Degradation, _Mapping]] = ...) -> None: ...

class TermExplanation(_message.Message):
    __slots__ = ("term", "document_count", "weight", "in_own_text", "in_surroundings", "contribution")
    TERM_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    IN_OWN_TEXT_FIELD_NUMBER: _ClassVar[int]
    IN_SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    term: str
    document_count: int
    weight: float
    in_own_text: bool
    in_surroundings: bool
    contribution: float
    def __init__(self, term: _Optional[str] = ..., document_count: _Optional[int] = ..., weight: _Optional[float] = ..., in_own_text: _Optional[bool] = ..., in_surroundings: _Optional[bool] = ..., contribution: _Optional[float] = ...) -> None: ...
