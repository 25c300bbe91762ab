from durablememory.v1 import access_pb2 as _access_pb2
from durablememory.v1 import change_token_pb2 as _change_token_pb2
from durablememory.v1 import citation_pb2 as _citation_pb2
from durablememory.v1 import namespace_pb2 as _namespace_pb2
from durablememory.v1 import recall_pb2 as _recall_pb2
from durablememory.v1 import session_pb2 as _session_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ActiveRecallRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "session_id", "query", "filter", "mode", "include_surroundings", "admit", "context_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    ADMIT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    session_id: str
    query: str
    filter: _recall_pb2.RecallFilter
    mode: _recall_pb2.RecallMode
    include_surroundings: bool
    admit: bool
    context_id: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., query: _Optional[str] = ..., filter: _Optional[_Union[_recall_pb2.RecallFilter, _Mapping]] = ..., mode: _Optional[_Union[_recall_pb2.RecallMode, str]] = ..., include_surroundings: _Optional[bool] = ..., admit: _Optional[bool] = ..., context_id: _Optional[str] = ...) -> None: ...

class ActiveRecallResponse(_message.Message):
    __slots__ = ("change_token", "result", "admissions", "next_context_id")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ADMISSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CONTEXT_ID_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    result: _recall_pb2.RecallResult
    admissions: _containers.RepeatedCompositeFieldContainer[_access_pb2.AdmissionOutcome]
    next_context_id: str
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., result: _Optional[_Union[_recall_pb2.RecallResult, _Mapping]] = ..., admissions: _Optional[_Iterable[_Union[_access_pb2.AdmissionOutcome, _Mapping]]] = ..., next_context_id: _Optional[str] = ...) -> None: ...

class PreviewRecallRequest(_message.Message):
    __slots__ = ("namespace", "query", "policy", "filter", "include_surroundings")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    query: str
    policy: _session_pb2.RecallPolicy
    filter: _recall_pb2.RecallFilter
    include_surroundings: bool
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., query: _Optional[str] = ..., policy: _Optional[_Union[_session_pb2.RecallPolicy, _Mapping]] = ..., filter: _Optional[_Union[_recall_pb2.RecallFilter, _Mapping]] = ..., include_surroundings: _Optional[bool] = ...) -> None: ...

class PreviewRecallResponse(_message.Message):
    __slots__ = ("change_token", "result")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    result: _recall_pb2.RecallResult
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., result: _Optional[_Union[_recall_pb2.RecallResult, _Mapping]] = ...) -> None: ...

class ExplainRecallRequest(_message.Message):
    __slots__ = ("namespace", "session_id", "node_id", "query", "filter", "mode")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    session_id: str
    node_id: str
    query: str
    filter: _recall_pb2.RecallFilter
    mode: _recall_pb2.RecallMode
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., session_id: _Optional[str] = ..., node_id: _Optional[str] = ..., query: _Optional[str] = ..., filter: _Optional[_Union[_recall_pb2.RecallFilter, _Mapping]] = ..., mode: _Optional[_Union[_recall_pb2.RecallMode, str]] = ...) -> None: ...

class ExplainRecallResponse(_message.Message):
    __slots__ = ("change_token", "explanation")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    explanation: _recall_pb2.RecallExplanation
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., explanation: _Optional[_Union[_recall_pb2.RecallExplanation, _Mapping]] = ...) -> None: ...

class AdmitMemoriesRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "session_id", "context_id", "items")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    session_id: str
    context_id: str
    items: _containers.RepeatedCompositeFieldContainer[AdmissionItem]
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., context_id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[AdmissionItem, _Mapping]]] = ...) -> None: ...

class AdmissionItem(_message.Message):
    __slots__ = ("node_revision", "event_id")
    NODE_REVISION_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    node_revision: _citation_pb2.NodeRevisionRef
    event_id: str
    def __init__(self, node_revision: _Optional[_Union[_citation_pb2.NodeRevisionRef, _Mapping]] = ..., event_id: _Optional[str] = ...) -> None: ...

class AdmitMemoriesResponse(_message.Message):
    __slots__ = ("change_token", "outcomes", "next_context_id")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    NEXT_CONTEXT_ID_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    outcomes: _containers.RepeatedCompositeFieldContainer[_access_pb2.AdmissionOutcome]
    next_context_id: str
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., outcomes: _Optional[_Iterable[_Union[_access_pb2.AdmissionOutcome, _Mapping]]] = ..., next_context_id: _Optional[str] = ...) -> None: ...

class RecordUseRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "session_id", "context_id", "items")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    session_id: str
    context_id: str
    items: _containers.RepeatedCompositeFieldContainer[_access_pb2.UseEvent]
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., context_id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_access_pb2.UseEvent, _Mapping]]] = ...) -> None: ...

class RecordUseResponse(_message.Message):
    __slots__ = ("change_token", "outcomes")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    outcomes: _containers.RepeatedCompositeFieldContainer[_access_pb2.UseOutcome]
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., outcomes: _Optional[_Iterable[_Union[_access_pb2.UseOutcome, _Mapping]]] = ...) -> None: ...

class GetUsageSummaryRequest(_message.Message):
    __slots__ = ("namespace", "node_ids", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    node_ids: _containers.RepeatedScalarFieldContainer[str]
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., node_ids: _Optional[_Iterable[str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class GetUsageSummaryResponse(_message.Message):
    __slots__ = ("change_token", "summaries", "next_page_token")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    summaries: _containers.RepeatedCompositeFieldContainer[_access_pb2.UsageSummary]
    next_page_token: str
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., summaries: _Optional[_Iterable[_Union[_access_pb2.UsageSummary, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
