import datetime

from durablememory.v1 import citation_pb2 as _citation_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_KIND_UNSPECIFIED: _ClassVar[NodeKind]
    NODE_KIND_EPISODIC: _ClassVar[NodeKind]
    NODE_KIND_SEMANTIC: _ClassVar[NodeKind]
    NODE_KIND_PROCEDURAL: _ClassVar[NodeKind]

class NodeStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_STATUS_UNSPECIFIED: _ClassVar[NodeStatus]
    NODE_STATUS_CANDIDATE: _ClassVar[NodeStatus]
    NODE_STATUS_ACTIVE: _ClassVar[NodeStatus]
    NODE_STATUS_CONFLICTED: _ClassVar[NodeStatus]
    NODE_STATUS_SUPERSEDED: _ClassVar[NodeStatus]
    NODE_STATUS_ARCHIVED: _ClassVar[NodeStatus]
    NODE_STATUS_TOMBSTONED: _ClassVar[NodeStatus]

class EvidenceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVIDENCE_KIND_UNSPECIFIED: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_USER_STATEMENT: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_TOOL_RESULT: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_ARTIFACT: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_SESSION_TURN: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_VERIFICATION: _ClassVar[EvidenceKind]
    EVIDENCE_KIND_MANUAL: _ClassVar[EvidenceKind]

class RelationKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RELATION_KIND_UNSPECIFIED: _ClassVar[RelationKind]
    RELATION_KIND_SUPERSEDES: _ClassVar[RelationKind]
    RELATION_KIND_SUPERSEDED_BY: _ClassVar[RelationKind]
    RELATION_KIND_CONFLICTS_WITH: _ClassVar[RelationKind]
    RELATION_KIND_RELATED_TO: _ClassVar[RelationKind]
NODE_KIND_UNSPECIFIED: NodeKind
NODE_KIND_EPISODIC: NodeKind
NODE_KIND_SEMANTIC: NodeKind
NODE_KIND_PROCEDURAL: NodeKind
NODE_STATUS_UNSPECIFIED: NodeStatus
NODE_STATUS_CANDIDATE: NodeStatus
NODE_STATUS_ACTIVE: NodeStatus
NODE_STATUS_CONFLICTED: NodeStatus
NODE_STATUS_SUPERSEDED: NodeStatus
NODE_STATUS_ARCHIVED: NodeStatus
NODE_STATUS_TOMBSTONED: NodeStatus
EVIDENCE_KIND_UNSPECIFIED: EvidenceKind
EVIDENCE_KIND_USER_STATEMENT: EvidenceKind
EVIDENCE_KIND_TOOL_RESULT: EvidenceKind
EVIDENCE_KIND_ARTIFACT: EvidenceKind
EVIDENCE_KIND_SESSION_TURN: EvidenceKind
EVIDENCE_KIND_VERIFICATION: EvidenceKind
EVIDENCE_KIND_MANUAL: EvidenceKind
RELATION_KIND_UNSPECIFIED: RelationKind
RELATION_KIND_SUPERSEDES: RelationKind
RELATION_KIND_SUPERSEDED_BY: RelationKind
RELATION_KIND_CONFLICTS_WITH: RelationKind
RELATION_KIND_RELATED_TO: RelationKind

class Node(_message.Message):
    __slots__ = ("id", "revision", "kind", "status", "content", "surroundings", "content_digest", "author", "occurred_at", "confidence", "importance", "evidence", "relations", "labels", "created_at", "updated_at", "committed_at", "decided_by", "citation", "valid_from_namespace_revision", "superseded_at_namespace_revision")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    RELATIONS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_AT_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    id: str
    revision: int
    kind: NodeKind
    status: NodeStatus
    content: str
    surroundings: _containers.RepeatedScalarFieldContainer[str]
    content_digest: str
    author: str
    occurred_at: _timestamp_pb2.Timestamp
    confidence: float
    importance: float
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    relations: _containers.RepeatedCompositeFieldContainer[Relation]
    labels: _containers.ScalarMap[str, str]
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    committed_at: _timestamp_pb2.Timestamp
    decided_by: str
    citation: _citation_pb2.Citation
    valid_from_namespace_revision: int
    superseded_at_namespace_revision: int
    def __init__(self, id: _Optional[str] = ..., revision: _Optional[int] = ..., kind: _Optional[_Union[NodeKind, str]] = ..., status: _Optional[_Union[NodeStatus, str]] = ..., content: _Optional[str] = ..., surroundings: _Optional[_Iterable[str]] = ..., content_digest: _Optional[str] = ..., author: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., confidence: _Optional[float] = ..., importance: _Optional[float] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ..., relations: _Optional[_Iterable[_Union[Relation, _Mapping]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., committed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., decided_by: _Optional[str] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., valid_from_namespace_revision: _Optional[int] = ..., superseded_at_namespace_revision: _Optional[int] = ...) -> None: ...

class MemoryDraft(_message.Message):
    __slots__ = ("kind", "content", "surroundings", "author", "occurred_at", "confidence", "importance", "labels", "evidence")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    kind: NodeKind
    content: str
    surroundings: _containers.RepeatedScalarFieldContainer[str]
    author: str
    occurred_at: _timestamp_pb2.Timestamp
    confidence: float
    importance: float
    labels: _containers.ScalarMap[str, str]
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    def __init__(self, kind: _Optional[_Union[NodeKind, str]] = ..., content: _Optional[str] = ..., surroundings: _Optional[_Iterable[str]] = ..., author: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., confidence: _Optional[float] = ..., importance: _Optional[float] = ..., labels: _Optional[_Mapping[str, str]] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("uri", "digest", "body", "kind", "occurred_at")
    URI_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    uri: str
    digest: str
    body: bytes
    kind: EvidenceKind
    occurred_at: _timestamp_pb2.Timestamp
    def __init__(self, uri: _Optional[str] = ..., digest: _Optional[str] = ..., body: _Optional[bytes] = ..., kind: _Optional[_Union[EvidenceKind, str]] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Relation(_message.Message):
    __slots__ = ("kind", "node_id")
    KIND_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    kind: RelationKind
    node_id: str
    def __init__(self, kind: _Optional[_Union[RelationKind, str]] = ..., node_id: _Optional[str] = ...) -> None: ...
