import datetime

from durablememory.v1 import change_set_pb2 as _change_set_pb2
from durablememory.v1 import change_token_pb2 as _change_token_pb2
from durablememory.v1 import citation_pb2 as _citation_pb2
from durablememory.v1 import decision_pb2 as _decision_pb2
from durablememory.v1 import namespace_pb2 as _namespace_pb2
from durablememory.v1 import node_pb2 as _node_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RememberOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REMEMBER_OUTCOME_UNSPECIFIED: _ClassVar[RememberOutcome]
    REMEMBER_OUTCOME_CREATED: _ClassVar[RememberOutcome]
    REMEMBER_OUTCOME_UNCHANGED: _ClassVar[RememberOutcome]

class PutMemoryOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUT_MEMORY_OUTCOME_UNSPECIFIED: _ClassVar[PutMemoryOutcome]
    PUT_MEMORY_OUTCOME_CREATED: _ClassVar[PutMemoryOutcome]
    PUT_MEMORY_OUTCOME_REVISED: _ClassVar[PutMemoryOutcome]
    PUT_MEMORY_OUTCOME_UNCHANGED: _ClassVar[PutMemoryOutcome]

class ReactivateMemoryOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REACTIVATE_MEMORY_OUTCOME_UNSPECIFIED: _ClassVar[ReactivateMemoryOutcome]
    REACTIVATE_MEMORY_OUTCOME_REACTIVATED: _ClassVar[ReactivateMemoryOutcome]
    REACTIVATE_MEMORY_OUTCOME_UNCHANGED: _ClassVar[ReactivateMemoryOutcome]
REMEMBER_OUTCOME_UNSPECIFIED: RememberOutcome
REMEMBER_OUTCOME_CREATED: RememberOutcome
REMEMBER_OUTCOME_UNCHANGED: RememberOutcome
PUT_MEMORY_OUTCOME_UNSPECIFIED: PutMemoryOutcome
PUT_MEMORY_OUTCOME_CREATED: PutMemoryOutcome
PUT_MEMORY_OUTCOME_REVISED: PutMemoryOutcome
PUT_MEMORY_OUTCOME_UNCHANGED: PutMemoryOutcome
REACTIVATE_MEMORY_OUTCOME_UNSPECIFIED: ReactivateMemoryOutcome
REACTIVATE_MEMORY_OUTCOME_REACTIVATED: ReactivateMemoryOutcome
REACTIVATE_MEMORY_OUTCOME_UNCHANGED: ReactivateMemoryOutcome

class RememberRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "memory", "node_id", "decision", "expected_namespace_revision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    memory: _node_pb2.MemoryDraft
    node_id: str
    decision: _decision_pb2.Decision
    expected_namespace_revision: int
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., memory: _Optional[_Union[_node_pb2.MemoryDraft, _Mapping]] = ..., node_id: _Optional[str] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., expected_namespace_revision: _Optional[int] = ...) -> None: ...

class RememberResponse(_message.Message):
    __slots__ = ("change_token", "outcome", "citation")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    outcome: RememberOutcome
    citation: _citation_pb2.Citation
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., outcome: _Optional[_Union[RememberOutcome, str]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ...) -> None: ...

class PutMemoryRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "node_id", "memory", "decision", "revision_kind", "expected_revision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    REVISION_KIND_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    node_id: str
    memory: _node_pb2.MemoryDraft
    decision: _decision_pb2.Decision
    revision_kind: _change_set_pb2.RevisionKind
    expected_revision: int
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., node_id: _Optional[str] = ..., memory: _Optional[_Union[_node_pb2.MemoryDraft, _Mapping]] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., revision_kind: _Optional[_Union[_change_set_pb2.RevisionKind, str]] = ..., expected_revision: _Optional[int] = ...) -> None: ...

class PutMemoryResponse(_message.Message):
    __slots__ = ("change_token", "outcome", "citation")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    outcome: PutMemoryOutcome
    citation: _citation_pb2.Citation
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., outcome: _Optional[_Union[PutMemoryOutcome, str]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ...) -> None: ...

class ReviseMemoryRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "citation", "revision_kind", "content", "surroundings", "author", "occurred_at", "confidence", "importance", "set_labels", "remove_labels", "evidence", "decision")
    class SetLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    REVISION_KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    SET_LABELS_FIELD_NUMBER: _ClassVar[int]
    REMOVE_LABELS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    citation: _citation_pb2.Citation
    revision_kind: _change_set_pb2.RevisionKind
    content: str
    surroundings: _change_set_pb2.Surroundings
    author: str
    occurred_at: _timestamp_pb2.Timestamp
    confidence: float
    importance: float
    set_labels: _containers.ScalarMap[str, str]
    remove_labels: _containers.RepeatedScalarFieldContainer[str]
    evidence: _containers.RepeatedCompositeFieldContainer[_node_pb2.Evidence]
    decision: _decision_pb2.Decision
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., revision_kind: _Optional[_Union[_change_set_pb2.RevisionKind, str]] = ..., content: _Optional[str] = ..., surroundings: _Optional[_Union[_change_set_pb2.Surroundings, _Mapping]] = ..., author: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., confidence: _Optional[float] = ..., importance: _Optional[float] = ..., set_labels: _Optional[_Mapping[str, str]] = ..., remove_labels: _Optional[_Iterable[str]] = ..., evidence: _Optional[_Iterable[_Union[_node_pb2.Evidence, _Mapping]]] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ...) -> None: ...

class ReviseMemoryResponse(_message.Message):
    __slots__ = ("change_token", "citation")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    citation: _citation_pb2.Citation
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ...) -> None: ...

class RetireMemoryRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "citation", "evidence", "decision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    citation: _citation_pb2.Citation
    evidence: _containers.RepeatedCompositeFieldContainer[_node_pb2.Evidence]
    decision: _decision_pb2.Decision
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., evidence: _Optional[_Iterable[_Union[_node_pb2.Evidence, _Mapping]]] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ...) -> None: ...

class RetireMemoryResponse(_message.Message):
    __slots__ = ("change_token", "citation")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    citation: _citation_pb2.Citation
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ...) -> None: ...

class ReactivateMemoryRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "citation", "evidence", "decision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    citation: _citation_pb2.Citation
    evidence: _containers.RepeatedCompositeFieldContainer[_node_pb2.Evidence]
    decision: _decision_pb2.Decision
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., evidence: _Optional[_Iterable[_Union[_node_pb2.Evidence, _Mapping]]] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ...) -> None: ...

class ReactivateMemoryResponse(_message.Message):
    __slots__ = ("change_token", "outcome", "citation")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    outcome: ReactivateMemoryOutcome
    citation: _citation_pb2.Citation
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., outcome: _Optional[_Union[ReactivateMemoryOutcome, str]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ...) -> None: ...

class SupersedeMemoryRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "citation", "memory", "node_id", "decision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    citation: _citation_pb2.Citation
    memory: _node_pb2.MemoryDraft
    node_id: str
    decision: _decision_pb2.Decision
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., memory: _Optional[_Union[_node_pb2.MemoryDraft, _Mapping]] = ..., node_id: _Optional[str] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ...) -> None: ...

class SupersedeMemoryResponse(_message.Message):
    __slots__ = ("change_token", "citation", "superseded_citation")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_CITATION_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    citation: _citation_pb2.Citation
    superseded_citation: _citation_pb2.Citation
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., superseded_citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ...) -> None: ...

class GetMemoryRequest(_message.Message):
    __slots__ = ("namespace", "citation")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    citation: _citation_pb2.Citation
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ...) -> None: ...

class GetMemoryResponse(_message.Message):
    __slots__ = ("change_token", "node", "current_citation", "current_status")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CURRENT_CITATION_FIELD_NUMBER: _ClassVar[int]
    CURRENT_STATUS_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    node: _node_pb2.Node
    current_citation: _citation_pb2.Citation
    current_status: _node_pb2.NodeStatus
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., node: _Optional[_Union[_node_pb2.Node, _Mapping]] = ..., current_citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., current_status: _Optional[_Union[_node_pb2.NodeStatus, str]] = ...) -> None: ...
