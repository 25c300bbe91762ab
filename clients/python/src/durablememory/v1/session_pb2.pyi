import datetime

from durablememory.v1 import namespace_pb2 as _namespace_pb2
from durablememory.v1 import recall_pb2 as _recall_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SESSION_STATE_UNSPECIFIED: _ClassVar[SessionState]
    SESSION_STATE_OPEN: _ClassVar[SessionState]
    SESSION_STATE_CLOSED: _ClassVar[SessionState]

class VectorNormalization(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VECTOR_NORMALIZATION_UNSPECIFIED: _ClassVar[VectorNormalization]
    VECTOR_NORMALIZATION_NONE: _ClassVar[VectorNormalization]
    VECTOR_NORMALIZATION_L2: _ClassVar[VectorNormalization]

class VectorMetric(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VECTOR_METRIC_UNSPECIFIED: _ClassVar[VectorMetric]
    VECTOR_METRIC_COSINE: _ClassVar[VectorMetric]
    VECTOR_METRIC_DOT_PRODUCT: _ClassVar[VectorMetric]

class RunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATE_UNSPECIFIED: _ClassVar[RunState]
    RUN_STATE_OPEN: _ClassVar[RunState]
    RUN_STATE_ENDED: _ClassVar[RunState]
    RUN_STATE_TAKEN_OVER: _ClassVar[RunState]
    RUN_STATE_IDLE_ENDED: _ClassVar[RunState]
SESSION_STATE_UNSPECIFIED: SessionState
SESSION_STATE_OPEN: SessionState
SESSION_STATE_CLOSED: SessionState
VECTOR_NORMALIZATION_UNSPECIFIED: VectorNormalization
VECTOR_NORMALIZATION_NONE: VectorNormalization
VECTOR_NORMALIZATION_L2: VectorNormalization
VECTOR_METRIC_UNSPECIFIED: VectorMetric
VECTOR_METRIC_COSINE: VectorMetric
VECTOR_METRIC_DOT_PRODUCT: VectorMetric
RUN_STATE_UNSPECIFIED: RunState
RUN_STATE_OPEN: RunState
RUN_STATE_ENDED: RunState
RUN_STATE_TAKEN_OVER: RunState
RUN_STATE_IDLE_ENDED: RunState

class Session(_message.Message):
    __slots__ = ("session_id", "binding", "binding_digest", "state", "binding_version", "opened_by", "opened_at", "rebound_at", "closed_at")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    BINDING_FIELD_NUMBER: _ClassVar[int]
    BINDING_DIGEST_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    BINDING_VERSION_FIELD_NUMBER: _ClassVar[int]
    OPENED_BY_FIELD_NUMBER: _ClassVar[int]
    OPENED_AT_FIELD_NUMBER: _ClassVar[int]
    REBOUND_AT_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    binding: SessionBinding
    binding_digest: str
    state: SessionState
    binding_version: int
    opened_by: str
    opened_at: _timestamp_pb2.Timestamp
    rebound_at: _timestamp_pb2.Timestamp
    closed_at: _timestamp_pb2.Timestamp
    def __init__(self, session_id: _Optional[str] = ..., binding: _Optional[_Union[SessionBinding, _Mapping]] = ..., binding_digest: _Optional[str] = ..., state: _Optional[_Union[SessionState, str]] = ..., binding_version: _Optional[int] = ..., opened_by: _Optional[str] = ..., opened_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., rebound_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., closed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SessionBinding(_message.Message):
    __slots__ = ("schema_version", "namespace", "mode", "max_results", "min_score", "min_relative_score", "related_lookups", "lexical_profile", "fusion_profile", "semantic_generation")
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULTS_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    MIN_RELATIVE_SCORE_FIELD_NUMBER: _ClassVar[int]
    RELATED_LOOKUPS_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_PROFILE_FIELD_NUMBER: _ClassVar[int]
    FUSION_PROFILE_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_GENERATION_FIELD_NUMBER: _ClassVar[int]
    schema_version: int
    namespace: _namespace_pb2.NamespaceRef
    mode: _recall_pb2.RecallMode
    max_results: int
    min_score: float
    min_relative_score: float
    related_lookups: int
    lexical_profile: str
    fusion_profile: str
    semantic_generation: SemanticGeneration
    def __init__(self, schema_version: _Optional[int] = ..., namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., mode: _Optional[_Union[_recall_pb2.RecallMode, str]] = ..., max_results: _Optional[int] = ..., min_score: _Optional[float] = ..., min_relative_score: _Optional[float] = ..., related_lookups: _Optional[int] = ..., lexical_profile: _Optional[str] = ..., fusion_profile: _Optional[str] = ..., semantic_generation: _Optional[_Union[SemanticGeneration, _Mapping]] = ...) -> None: ...

class SemanticGeneration(_message.Message):
    __slots__ = ("authority_digest", "provider", "model", "model_revision", "dimension", "normalization", "metric", "candidate_limit", "min_similarity")
    AUTHORITY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_REVISION_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    NORMALIZATION_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    authority_digest: str
    provider: str
    model: str
    model_revision: str
    dimension: int
    normalization: VectorNormalization
    metric: VectorMetric
    candidate_limit: int
    min_similarity: float
    def __init__(self, authority_digest: _Optional[str] = ..., provider: _Optional[str] = ..., model: _Optional[str] = ..., model_revision: _Optional[str] = ..., dimension: _Optional[int] = ..., normalization: _Optional[_Union[VectorNormalization, str]] = ..., metric: _Optional[_Union[VectorMetric, str]] = ..., candidate_limit: _Optional[int] = ..., min_similarity: _Optional[float] = ...) -> None: ...

class RecallPolicy(_message.Message):
    __slots__ = ("mode", "max_results", "min_score", "min_relative_score", "related_lookups", "lexical_profile", "fusion_profile", "semantic")
    MODE_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULTS_FIELD_NUMBER: _ClassVar[int]
    MIN_SCORE_FIELD_NUMBER: _ClassVar[int]
    MIN_RELATIVE_SCORE_FIELD_NUMBER: _ClassVar[int]
    RELATED_LOOKUPS_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_PROFILE_FIELD_NUMBER: _ClassVar[int]
    FUSION_PROFILE_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_FIELD_NUMBER: _ClassVar[int]
    mode: _recall_pb2.RecallMode
    max_results: int
    min_score: float
    min_relative_score: float
    related_lookups: int
    lexical_profile: str
    fusion_profile: str
    semantic: SemanticPolicy
    def __init__(self, mode: _Optional[_Union[_recall_pb2.RecallMode, str]] = ..., max_results: _Optional[int] = ..., min_score: _Optional[float] = ..., min_relative_score: _Optional[float] = ..., related_lookups: _Optional[int] = ..., lexical_profile: _Optional[str] = ..., fusion_profile: _Optional[str] = ..., semantic: _Optional[_Union[SemanticPolicy, _Mapping]] = ...) -> None: ...

class SemanticPolicy(_message.Message):
    __slots__ = ("authority_digest", "candidate_limit", "min_similarity")
    AUTHORITY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    MIN_SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    authority_digest: str
    candidate_limit: int
    min_similarity: float
    def __init__(self, authority_digest: _Optional[str] = ..., candidate_limit: _Optional[int] = ..., min_similarity: _Optional[float] = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ("session_id", "run_id", "incarnation", "host_instance", "state", "opened_at", "active_at", "ended_at", "context_id", "sequence", "begun_by")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    HOST_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OPENED_AT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BEGUN_BY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    run_id: str
    incarnation: str
    host_instance: str
    state: RunState
    opened_at: _timestamp_pb2.Timestamp
    active_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    context_id: str
    sequence: int
    begun_by: str
    def __init__(self, session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., incarnation: _Optional[str] = ..., host_instance: _Optional[str] = ..., state: _Optional[_Union[RunState, str]] = ..., opened_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., active_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., context_id: _Optional[str] = ..., sequence: _Optional[int] = ..., begun_by: _Optional[str] = ...) -> None: ...
