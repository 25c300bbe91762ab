import datetime

from durablememory.v1 import citation_pb2 as _citation_pb2
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

class OperationKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_KIND_UNSPECIFIED: _ClassVar[OperationKind]
    OPERATION_KIND_CREATE: _ClassVar[OperationKind]
    OPERATION_KIND_ACTIVATE: _ClassVar[OperationKind]
    OPERATION_KIND_CORROBORATE: _ClassVar[OperationKind]
    OPERATION_KIND_REVISE: _ClassVar[OperationKind]
    OPERATION_KIND_ADD_RELATION: _ClassVar[OperationKind]
    OPERATION_KIND_REMOVE_RELATION: _ClassVar[OperationKind]
    OPERATION_KIND_SET_STATUS: _ClassVar[OperationKind]

class RevisionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REVISION_KIND_UNSPECIFIED: _ClassVar[RevisionKind]
    REVISION_KIND_REFINEMENT: _ClassVar[RevisionKind]
    REVISION_KIND_CORRECTION: _ClassVar[RevisionKind]
OPERATION_KIND_UNSPECIFIED: OperationKind
OPERATION_KIND_CREATE: OperationKind
OPERATION_KIND_ACTIVATE: OperationKind
OPERATION_KIND_CORROBORATE: OperationKind
OPERATION_KIND_REVISE: OperationKind
OPERATION_KIND_ADD_RELATION: OperationKind
OPERATION_KIND_REMOVE_RELATION: OperationKind
OPERATION_KIND_SET_STATUS: OperationKind
REVISION_KIND_UNSPECIFIED: RevisionKind
REVISION_KIND_REFINEMENT: RevisionKind
REVISION_KIND_CORRECTION: RevisionKind

class ChangeSet(_message.Message):
    __slots__ = ("namespace", "namespace_revision", "method", "idempotency_key", "occurred_at", "committed_at", "caller", "changes", "note", "digest", "chain_digest")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CHAIN_DIGEST_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    namespace_revision: int
    method: str
    idempotency_key: str
    occurred_at: _timestamp_pb2.Timestamp
    committed_at: _timestamp_pb2.Timestamp
    caller: str
    changes: _containers.RepeatedCompositeFieldContainer[NodeChange]
    note: str
    digest: str
    chain_digest: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., namespace_revision: _Optional[int] = ..., method: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., committed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., caller: _Optional[str] = ..., changes: _Optional[_Iterable[_Union[NodeChange, _Mapping]]] = ..., note: _Optional[str] = ..., digest: _Optional[str] = ..., chain_digest: _Optional[str] = ...) -> None: ...

class NodeChange(_message.Message):
    __slots__ = ("citation", "revision_digest", "operations", "status_before", "status_after", "content_changed")
    CITATION_FIELD_NUMBER: _ClassVar[int]
    REVISION_DIGEST_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    STATUS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    STATUS_AFTER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_CHANGED_FIELD_NUMBER: _ClassVar[int]
    citation: _citation_pb2.Citation
    revision_digest: str
    operations: _containers.RepeatedScalarFieldContainer[OperationKind]
    status_before: _node_pb2.NodeStatus
    status_after: _node_pb2.NodeStatus
    content_changed: bool
    def __init__(self, citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., revision_digest: _Optional[str] = ..., operations: _Optional[_Iterable[_Union[OperationKind, str]]] = ..., status_before: _Optional[_Union[_node_pb2.NodeStatus, str]] = ..., status_after: _Optional[_Union[_node_pb2.NodeStatus, str]] = ..., content_changed: _Optional[bool] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("create", "activate", "corroborate", "revise", "add_relation", "remove_relation", "set_status")
    CREATE_FIELD_NUMBER: _ClassVar[int]
    ACTIVATE_FIELD_NUMBER: _ClassVar[int]
    CORROBORATE_FIELD_NUMBER: _ClassVar[int]
    REVISE_FIELD_NUMBER: _ClassVar[int]
    ADD_RELATION_FIELD_NUMBER: _ClassVar[int]
    REMOVE_RELATION_FIELD_NUMBER: _ClassVar[int]
    SET_STATUS_FIELD_NUMBER: _ClassVar[int]
    create: CreateOperation
    activate: ActivateOperation
    corroborate: CorroborateOperation
    revise: ReviseOperation
    add_relation: AddRelationOperation
    remove_relation: RemoveRelationOperation
    set_status: SetStatusOperation
    def __init__(self, create: _Optional[_Union[CreateOperation, _Mapping]] = ..., activate: _Optional[_Union[ActivateOperation, _Mapping]] = ..., corroborate: _Optional[_Union[CorroborateOperation, _Mapping]] = ..., revise: _Optional[_Union[ReviseOperation, _Mapping]] = ..., add_relation: _Optional[_Union[AddRelationOperation, _Mapping]] = ..., remove_relation: _Optional[_Union[RemoveRelationOperation, _Mapping]] = ..., set_status: _Optional[_Union[SetStatusOperation, _Mapping]] = ...) -> None: ...

class CreateOperation(_message.Message):
    __slots__ = ("node_id", "status", "memory", "relations", "created_at")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    status: _node_pb2.NodeStatus
    memory: _node_pb2.MemoryDraft
    relations: _containers.RepeatedCompositeFieldContainer[_node_pb2.Relation]
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, node_id: _Optional[str] = ..., status: _Optional[_Union[_node_pb2.NodeStatus, str]] = ..., memory: _Optional[_Union[_node_pb2.MemoryDraft, _Mapping]] = ..., relations: _Optional[_Iterable[_Union[_node_pb2.Relation, _Mapping]]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ActivateOperation(_message.Message):
    __slots__ = ("node_id", "expected_revision", "evidence")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    expected_revision: int
    evidence: _containers.RepeatedCompositeFieldContainer[_node_pb2.Evidence]
    def __init__(self, node_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., evidence: _Optional[_Iterable[_Union[_node_pb2.Evidence, _Mapping]]] = ...) -> None: ...

class CorroborateOperation(_message.Message):
    __slots__ = ("node_id", "expected_revision", "evidence")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    expected_revision: int
    evidence: _containers.RepeatedCompositeFieldContainer[_node_pb2.Evidence]
    def __init__(self, node_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., evidence: _Optional[_Iterable[_Union[_node_pb2.Evidence, _Mapping]]] = ...) -> None: ...

class ReviseOperation(_message.Message):
    __slots__ = ("node_id", "expected_revision", "kind", "content", "surroundings", "author", "occurred_at", "confidence", "importance", "set_labels", "remove_labels", "evidence")
    class SetLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    SET_LABELS_FIELD_NUMBER: _ClassVar[int]
    REMOVE_LABELS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    expected_revision: int
    kind: RevisionKind
    content: str
    surroundings: Surroundings
    author: str
    occurred_at: _timestamp_pb2.Timestamp
    confidence: float
    importance: float
    set_labels: _containers.ScalarMap[str, str]
    remove_labels: _containers.RepeatedScalarFieldContainer[str]
    evidence: _containers.RepeatedCompositeFieldContainer[_node_pb2.Evidence]
    def __init__(self, node_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., kind: _Optional[_Union[RevisionKind, str]] = ..., content: _Optional[str] = ..., surroundings: _Optional[_Union[Surroundings, _Mapping]] = ..., author: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., confidence: _Optional[float] = ..., importance: _Optional[float] = ..., set_labels: _Optional[_Mapping[str, str]] = ..., remove_labels: _Optional[_Iterable[str]] = ..., evidence: _Optional[_Iterable[_Union[_node_pb2.Evidence, _Mapping]]] = ...) -> None: ...

class Surroundings(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, texts: _Optional[_Iterable[str]] = ...) -> None: ...

class AddRelationOperation(_message.Message):
    __slots__ = ("node_id", "expected_revision", "relation")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    expected_revision: int
    relation: _node_pb2.Relation
    def __init__(self, node_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., relation: _Optional[_Union[_node_pb2.Relation, _Mapping]] = ...) -> None: ...

class RemoveRelationOperation(_message.Message):
    __slots__ = ("node_id", "expected_revision", "relation")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    expected_revision: int
    relation: _node_pb2.Relation
    def __init__(self, node_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., relation: _Optional[_Union[_node_pb2.Relation, _Mapping]] = ...) -> None: ...

class SetStatusOperation(_message.Message):
    __slots__ = ("node_id", "expected_revision", "status", "evidence")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    expected_revision: int
    status: _node_pb2.NodeStatus
    evidence: _containers.RepeatedCompositeFieldContainer[_node_pb2.Evidence]
    def __init__(self, node_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., status: _Optional[_Union[_node_pb2.NodeStatus, str]] = ..., evidence: _Optional[_Iterable[_Union[_node_pb2.Evidence, _Mapping]]] = ...) -> None: ...
