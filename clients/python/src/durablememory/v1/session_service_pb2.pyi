import datetime

from durablememory.v1 import namespace_pb2 as _namespace_pb2
from durablememory.v1 import recall_pb2 as _recall_pb2
from durablememory.v1 import session_pb2 as _session_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OpenSessionOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPEN_SESSION_OUTCOME_UNSPECIFIED: _ClassVar[OpenSessionOutcome]
    OPEN_SESSION_OUTCOME_OPENED: _ClassVar[OpenSessionOutcome]
    OPEN_SESSION_OUTCOME_EXISTING: _ClassVar[OpenSessionOutcome]

class BeginRunOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BEGIN_RUN_OUTCOME_UNSPECIFIED: _ClassVar[BeginRunOutcome]
    BEGIN_RUN_OUTCOME_BEGUN: _ClassVar[BeginRunOutcome]
    BEGIN_RUN_OUTCOME_TAKEN_OVER: _ClassVar[BeginRunOutcome]
OPEN_SESSION_OUTCOME_UNSPECIFIED: OpenSessionOutcome
OPEN_SESSION_OUTCOME_OPENED: OpenSessionOutcome
OPEN_SESSION_OUTCOME_EXISTING: OpenSessionOutcome
BEGIN_RUN_OUTCOME_UNSPECIFIED: BeginRunOutcome
BEGIN_RUN_OUTCOME_BEGUN: BeginRunOutcome
BEGIN_RUN_OUTCOME_TAKEN_OVER: BeginRunOutcome

class OpenSessionRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "session_id", "policy")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    session_id: str
    policy: _session_pb2.RecallPolicy
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., policy: _Optional[_Union[_session_pb2.RecallPolicy, _Mapping]] = ...) -> None: ...

class OpenSessionResponse(_message.Message):
    __slots__ = ("session", "outcome")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    outcome: OpenSessionOutcome
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ..., outcome: _Optional[_Union[OpenSessionOutcome, str]] = ...) -> None: ...

class ResumeSessionRequest(_message.Message):
    __slots__ = ("namespace", "session_id", "binding", "binding_digest")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    BINDING_FIELD_NUMBER: _ClassVar[int]
    BINDING_DIGEST_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    session_id: str
    binding: _session_pb2.SessionBinding
    binding_digest: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., session_id: _Optional[str] = ..., binding: _Optional[_Union[_session_pb2.SessionBinding, _Mapping]] = ..., binding_digest: _Optional[str] = ...) -> None: ...

class ResumeSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class RebindSessionRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "session_id", "expected_binding_digest", "policy")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_BINDING_DIGEST_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    session_id: str
    expected_binding_digest: str
    policy: _session_pb2.RecallPolicy
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., expected_binding_digest: _Optional[str] = ..., policy: _Optional[_Union[_session_pb2.RecallPolicy, _Mapping]] = ...) -> None: ...

class RebindSessionResponse(_message.Message):
    __slots__ = ("session", "previous_binding_digest")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_BINDING_DIGEST_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    previous_binding_digest: str
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ..., previous_binding_digest: _Optional[str] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("namespace", "session_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    session_id: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., session_id: _Optional[str] = ...) -> None: ...

class GetSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions", "next_page_token")
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[_session_pb2.Session]
    next_page_token: str
    def __init__(self, sessions: _Optional[_Iterable[_Union[_session_pb2.Session, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CloseSessionRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "session_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    session_id: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class CloseSessionResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ...) -> None: ...

class BeginRunRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "session_id", "run_id", "host_instance")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    session_id: str
    run_id: str
    host_instance: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., host_instance: _Optional[str] = ...) -> None: ...

class BeginRunResponse(_message.Message):
    __slots__ = ("run", "outcome")
    RUN_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    run: _session_pb2.Run
    outcome: BeginRunOutcome
    def __init__(self, run: _Optional[_Union[_session_pb2.Run, _Mapping]] = ..., outcome: _Optional[_Union[BeginRunOutcome, str]] = ...) -> None: ...

class EndRunRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "session_id", "run_id", "incarnation")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    session_id: str
    run_id: str
    incarnation: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., run_id: _Optional[str] = ..., incarnation: _Optional[str] = ...) -> None: ...

class EndRunResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: _session_pb2.Run
    def __init__(self, run: _Optional[_Union[_session_pb2.Run, _Mapping]] = ...) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "caller", "lexical_profiles", "fusion_profiles", "semantic_generations", "recall_modes", "default_policy", "limits")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_PROFILES_FIELD_NUMBER: _ClassVar[int]
    FUSION_PROFILES_FIELD_NUMBER: _ClassVar[int]
    SEMANTIC_GENERATIONS_FIELD_NUMBER: _ClassVar[int]
    RECALL_MODES_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_POLICY_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    version: str
    caller: str
    lexical_profiles: _containers.RepeatedScalarFieldContainer[str]
    fusion_profiles: _containers.RepeatedScalarFieldContainer[str]
    semantic_generations: _containers.RepeatedCompositeFieldContainer[_session_pb2.SemanticGeneration]
    recall_modes: _containers.RepeatedScalarFieldContainer[_recall_pb2.RecallMode]
    default_policy: _session_pb2.RecallPolicy
    limits: ServerLimits
    def __init__(self, version: _Optional[str] = ..., caller: _Optional[str] = ..., lexical_profiles: _Optional[_Iterable[str]] = ..., fusion_profiles: _Optional[_Iterable[str]] = ..., semantic_generations: _Optional[_Iterable[_Union[_session_pb2.SemanticGeneration, _Mapping]]] = ..., recall_modes: _Optional[_Iterable[_Union[_recall_pb2.RecallMode, str]]] = ..., default_policy: _Optional[_Union[_session_pb2.RecallPolicy, _Mapping]] = ..., limits: _Optional[_Union[ServerLimits, _Mapping]] = ...) -> None: ...

class ServerLimits(_message.Message):
    __slots__ = ("max_request_bytes", "max_response_bytes", "max_id_bytes", "max_content_bytes", "max_surroundings", "max_surrounding_bytes", "max_author_bytes", "max_evidence", "max_evidence_uri_bytes", "max_evidence_body_bytes", "max_relations", "max_labels", "max_label_key_bytes", "max_label_value_bytes", "max_note_bytes", "max_operations", "max_batch_items", "max_query_bytes", "max_results", "max_related_lookups", "max_filter_values", "max_page_size", "default_page_size", "max_snapshot_nodes", "max_snapshot_bytes", "max_namespace_active_nodes", "max_namespace_active_bytes", "max_clock_skew", "run_idle_timeout", "max_import_bytes")
    MAX_REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RESPONSE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_ID_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    MAX_SURROUNDING_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_AUTHOR_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    MAX_EVIDENCE_URI_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_EVIDENCE_BODY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RELATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_LABELS_FIELD_NUMBER: _ClassVar[int]
    MAX_LABEL_KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_LABEL_VALUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_NOTE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_ITEMS_FIELD_NUMBER: _ClassVar[int]
    MAX_QUERY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULTS_FIELD_NUMBER: _ClassVar[int]
    MAX_RELATED_LOOKUPS_FIELD_NUMBER: _ClassVar[int]
    MAX_FILTER_VALUES_FIELD_NUMBER: _ClassVar[int]
    MAX_PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_SNAPSHOT_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_SNAPSHOT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_NAMESPACE_ACTIVE_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_NAMESPACE_ACTIVE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_CLOCK_SKEW_FIELD_NUMBER: _ClassVar[int]
    RUN_IDLE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    MAX_IMPORT_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_request_bytes: int
    max_response_bytes: int
    max_id_bytes: int
    max_content_bytes: int
    max_surroundings: int
    max_surrounding_bytes: int
    max_author_bytes: int
    max_evidence: int
    max_evidence_uri_bytes: int
    max_evidence_body_bytes: int
    max_relations: int
    max_labels: int
    max_label_key_bytes: int
    max_label_value_bytes: int
    max_note_bytes: int
    max_operations: int
    max_batch_items: int
    max_query_bytes: int
    max_results: int
    max_related_lookups: int
    max_filter_values: int
    max_page_size: int
    default_page_size: int
    max_snapshot_nodes: int
    max_snapshot_bytes: int
    max_namespace_active_nodes: int
    max_namespace_active_bytes: int
    max_clock_skew: _duration_pb2.Duration
    run_idle_timeout: _duration_pb2.Duration
    max_import_bytes: int
    def __init__(self, max_request_bytes: _Optional[int] = ..., max_response_bytes: _Optional[int] = ..., max_id_bytes: _Optional[int] = ..., max_content_bytes: _Optional[int] = ..., max_surroundings: _Optional[int] = ..., max_surrounding_bytes: _Optional[int] = ..., max_author_bytes: _Optional[int] = ..., max_evidence: _Optional[int] = ..., max_evidence_uri_bytes: _Optional[int] = ..., max_evidence_body_bytes: _Optional[int] = ..., max_relations: _Optional[int] = ..., max_labels: _Optional[int] = ..., max_label_key_bytes: _Optional[int] = ..., max_label_value_bytes: _Optional[int] = ..., max_note_bytes: _Optional[int] = ..., max_operations: _Optional[int] = ..., max_batch_items: _Optional[int] = ..., max_query_bytes: _Optional[int] = ..., max_results: _Optional[int] = ..., max_related_lookups: _Optional[int] = ..., max_filter_values: _Optional[int] = ..., max_page_size: _Optional[int] = ..., default_page_size: _Optional[int] = ..., max_snapshot_nodes: _Optional[int] = ..., max_snapshot_bytes: _Optional[int] = ..., max_namespace_active_nodes: _Optional[int] = ..., max_namespace_active_bytes: _Optional[int] = ..., max_clock_skew: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., run_idle_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_import_bytes: _Optional[int] = ...) -> None: ...
