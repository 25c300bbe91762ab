import datetime

from durablememory.v1 import change_set_pb2 as _change_set_pb2
from durablememory.v1 import change_token_pb2 as _change_token_pb2
from durablememory.v1 import citation_pb2 as _citation_pb2
from durablememory.v1 import namespace_pb2 as _namespace_pb2
from durablememory.v1 import node_pb2 as _node_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ApplyChangeSetRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "operations", "occurred_at", "expected_namespace_revision", "note")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    operations: _containers.RepeatedCompositeFieldContainer[_change_set_pb2.Operation]
    occurred_at: _timestamp_pb2.Timestamp
    expected_namespace_revision: int
    note: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., operations: _Optional[_Iterable[_Union[_change_set_pb2.Operation, _Mapping]]] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expected_namespace_revision: _Optional[int] = ..., note: _Optional[str] = ...) -> None: ...

class ApplyChangeSetResponse(_message.Message):
    __slots__ = ("change_token", "change_set")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHANGE_SET_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    change_set: _change_set_pb2.ChangeSet
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., change_set: _Optional[_Union[_change_set_pb2.ChangeSet, _Mapping]] = ...) -> None: ...

class GetNodeRequest(_message.Message):
    __slots__ = ("namespace", "node_id", "at_namespace_revision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    AT_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    node_id: str
    at_namespace_revision: int
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., node_id: _Optional[str] = ..., at_namespace_revision: _Optional[int] = ...) -> None: ...

class GetNodeResponse(_message.Message):
    __slots__ = ("change_token", "node")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    node: _node_pb2.Node
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., node: _Optional[_Union[_node_pb2.Node, _Mapping]] = ...) -> None: ...

class BatchGetNodesRequest(_message.Message):
    __slots__ = ("namespace", "node_ids", "at_namespace_revision", "omit_content", "include_surroundings")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    AT_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    OMIT_CONTENT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    node_ids: _containers.RepeatedScalarFieldContainer[str]
    at_namespace_revision: int
    omit_content: bool
    include_surroundings: bool
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., node_ids: _Optional[_Iterable[str]] = ..., at_namespace_revision: _Optional[int] = ..., omit_content: _Optional[bool] = ..., include_surroundings: _Optional[bool] = ...) -> None: ...

class BatchGetNodesResponse(_message.Message):
    __slots__ = ("change_token", "nodes", "missing_node_ids")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    MISSING_NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    nodes: _containers.RepeatedCompositeFieldContainer[_node_pb2.Node]
    missing_node_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[_node_pb2.Node, _Mapping]]] = ..., missing_node_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ListNodesRequest(_message.Message):
    __slots__ = ("namespace", "statuses", "kinds", "labels", "at_namespace_revision", "omit_content", "include_surroundings", "page_size", "page_token")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    AT_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    OMIT_CONTENT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    statuses: _containers.RepeatedScalarFieldContainer[_node_pb2.NodeStatus]
    kinds: _containers.RepeatedScalarFieldContainer[_node_pb2.NodeKind]
    labels: _containers.ScalarMap[str, str]
    at_namespace_revision: int
    omit_content: bool
    include_surroundings: bool
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., statuses: _Optional[_Iterable[_Union[_node_pb2.NodeStatus, str]]] = ..., kinds: _Optional[_Iterable[_Union[_node_pb2.NodeKind, str]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., at_namespace_revision: _Optional[int] = ..., omit_content: _Optional[bool] = ..., include_surroundings: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListNodesResponse(_message.Message):
    __slots__ = ("change_token", "nodes", "next_page_token")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    nodes: _containers.RepeatedCompositeFieldContainer[_node_pb2.Node]
    next_page_token: str
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[_node_pb2.Node, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListRevisionsRequest(_message.Message):
    __slots__ = ("namespace", "node_id", "omit_content", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    OMIT_CONTENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    node_id: str
    omit_content: bool
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., node_id: _Optional[str] = ..., omit_content: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRevisionsResponse(_message.Message):
    __slots__ = ("change_token", "revisions", "next_page_token")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    revisions: _containers.RepeatedCompositeFieldContainer[_node_pb2.Node]
    next_page_token: str
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., revisions: _Optional[_Iterable[_Union[_node_pb2.Node, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetRevisionRequest(_message.Message):
    __slots__ = ("namespace", "citation", "node_revision")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    NODE_REVISION_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    citation: _citation_pb2.Citation
    node_revision: _citation_pb2.NodeRevisionRef
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., node_revision: _Optional[_Union[_citation_pb2.NodeRevisionRef, _Mapping]] = ...) -> None: ...

class GetRevisionResponse(_message.Message):
    __slots__ = ("change_token", "node")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    node: _node_pb2.Node
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., node: _Optional[_Union[_node_pb2.Node, _Mapping]] = ...) -> None: ...

class ListChangeSetsRequest(_message.Message):
    __slots__ = ("namespace", "after_namespace_revision", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    after_namespace_revision: int
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., after_namespace_revision: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListChangeSetsResponse(_message.Message):
    __slots__ = ("change_token", "change_sets", "next_page_token")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHANGE_SETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    change_sets: _containers.RepeatedCompositeFieldContainer[_change_set_pb2.ChangeSet]
    next_page_token: str
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., change_sets: _Optional[_Iterable[_Union[_change_set_pb2.ChangeSet, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetChangeSetRequest(_message.Message):
    __slots__ = ("namespace", "namespace_revision", "key")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    namespace_revision: int
    key: ChangeSetKey
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., namespace_revision: _Optional[int] = ..., key: _Optional[_Union[ChangeSetKey, _Mapping]] = ...) -> None: ...

class ChangeSetKey(_message.Message):
    __slots__ = ("method", "idempotency_key")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    method: str
    idempotency_key: str
    def __init__(self, method: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class GetChangeSetResponse(_message.Message):
    __slots__ = ("change_token", "change_set")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHANGE_SET_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    change_set: _change_set_pb2.ChangeSet
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., change_set: _Optional[_Union[_change_set_pb2.ChangeSet, _Mapping]] = ...) -> None: ...

class SnapshotRequest(_message.Message):
    __slots__ = ("namespace", "statuses", "at_namespace_revision", "omit_content")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    AT_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    OMIT_CONTENT_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    statuses: _containers.RepeatedScalarFieldContainer[_node_pb2.NodeStatus]
    at_namespace_revision: int
    omit_content: bool
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., statuses: _Optional[_Iterable[_Union[_node_pb2.NodeStatus, str]]] = ..., at_namespace_revision: _Optional[int] = ..., omit_content: _Optional[bool] = ...) -> None: ...

class SnapshotResponse(_message.Message):
    __slots__ = ("header", "node", "footer")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    FOOTER_FIELD_NUMBER: _ClassVar[int]
    header: SnapshotHeader
    node: _node_pb2.Node
    footer: SnapshotFooter
    def __init__(self, header: _Optional[_Union[SnapshotHeader, _Mapping]] = ..., node: _Optional[_Union[_node_pb2.Node, _Mapping]] = ..., footer: _Optional[_Union[SnapshotFooter, _Mapping]] = ...) -> None: ...

class SnapshotHeader(_message.Message):
    __slots__ = ("namespace", "change_token", "statuses")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    change_token: _change_token_pb2.ChangeToken
    statuses: _containers.RepeatedScalarFieldContainer[_node_pb2.NodeStatus]
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., statuses: _Optional[_Iterable[_Union[_node_pb2.NodeStatus, str]]] = ...) -> None: ...

class SnapshotFooter(_message.Message):
    __slots__ = ("node_count", "content_bytes", "digest")
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    node_count: int
    content_bytes: int
    digest: str
    def __init__(self, node_count: _Optional[int] = ..., content_bytes: _Optional[int] = ..., digest: _Optional[str] = ...) -> None: ...

class GetChangeTokenRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ...) -> None: ...

class GetChangeTokenResponse(_message.Message):
    __slots__ = ("change_token",)
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ...) -> None: ...

class WatchNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "after_namespace_revision", "history_id", "include_nodes")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    HISTORY_ID_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_NODES_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    after_namespace_revision: int
    history_id: str
    include_nodes: bool
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., after_namespace_revision: _Optional[int] = ..., history_id: _Optional[str] = ..., include_nodes: _Optional[bool] = ...) -> None: ...

class WatchNamespaceResponse(_message.Message):
    __slots__ = ("change", "heartbeat")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    change: WatchedChange
    heartbeat: WatchHeartbeat
    def __init__(self, change: _Optional[_Union[WatchedChange, _Mapping]] = ..., heartbeat: _Optional[_Union[WatchHeartbeat, _Mapping]] = ...) -> None: ...

class WatchedChange(_message.Message):
    __slots__ = ("change_token", "change_set", "nodes")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHANGE_SET_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    change_set: _change_set_pb2.ChangeSet
    nodes: _containers.RepeatedCompositeFieldContainer[_node_pb2.Node]
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., change_set: _Optional[_Union[_change_set_pb2.ChangeSet, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[_node_pb2.Node, _Mapping]]] = ...) -> None: ...

class WatchHeartbeat(_message.Message):
    __slots__ = ("change_token",)
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ...) -> None: ...
