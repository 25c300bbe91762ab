import datetime

from durablememory.v1 import access_pb2 as _access_pb2
from durablememory.v1 import change_set_pb2 as _change_set_pb2
from durablememory.v1 import change_token_pb2 as _change_token_pb2
from durablememory.v1 import namespace_pb2 as _namespace_pb2
from durablememory.v1 import node_pb2 as _node_pb2
from durablememory.v1 import session_pb2 as _session_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExportRecord(_message.Message):
    __slots__ = ("header", "node_revision", "change_set", "request", "session", "run", "access_event", "footer")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NODE_REVISION_FIELD_NUMBER: _ClassVar[int]
    CHANGE_SET_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    ACCESS_EVENT_FIELD_NUMBER: _ClassVar[int]
    FOOTER_FIELD_NUMBER: _ClassVar[int]
    header: ExportHeader
    node_revision: _node_pb2.Node
    change_set: _change_set_pb2.ChangeSet
    request: RequestRecord
    session: SessionRecord
    run: _session_pb2.Run
    access_event: _access_pb2.AccessEvent
    footer: ExportFooter
    def __init__(self, header: _Optional[_Union[ExportHeader, _Mapping]] = ..., node_revision: _Optional[_Union[_node_pb2.Node, _Mapping]] = ..., change_set: _Optional[_Union[_change_set_pb2.ChangeSet, _Mapping]] = ..., request: _Optional[_Union[RequestRecord, _Mapping]] = ..., session: _Optional[_Union[SessionRecord, _Mapping]] = ..., run: _Optional[_Union[_session_pb2.Run, _Mapping]] = ..., access_event: _Optional[_Union[_access_pb2.AccessEvent, _Mapping]] = ..., footer: _Optional[_Union[ExportFooter, _Mapping]] = ...) -> None: ...

class ExportHeader(_message.Message):
    __slots__ = ("format_version", "namespace", "change_token", "exported_at", "server_version", "chain_digest")
    FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPORTED_AT_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    CHAIN_DIGEST_FIELD_NUMBER: _ClassVar[int]
    format_version: int
    namespace: _namespace_pb2.NamespaceRef
    change_token: _change_token_pb2.ChangeToken
    exported_at: _timestamp_pb2.Timestamp
    server_version: str
    chain_digest: str
    def __init__(self, format_version: _Optional[int] = ..., namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., exported_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., server_version: _Optional[str] = ..., chain_digest: _Optional[str] = ...) -> None: ...

class RequestRecord(_message.Message):
    __slots__ = ("method", "request_id", "fingerprint", "result_json", "namespace_revision")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    method: str
    request_id: str
    fingerprint: str
    result_json: str
    namespace_revision: int
    def __init__(self, method: _Optional[str] = ..., request_id: _Optional[str] = ..., fingerprint: _Optional[str] = ..., result_json: _Optional[str] = ..., namespace_revision: _Optional[int] = ...) -> None: ...

class SessionRecord(_message.Message):
    __slots__ = ("session", "request_digest", "bindings")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    BINDINGS_FIELD_NUMBER: _ClassVar[int]
    session: _session_pb2.Session
    request_digest: str
    bindings: _containers.RepeatedCompositeFieldContainer[BindingRecord]
    def __init__(self, session: _Optional[_Union[_session_pb2.Session, _Mapping]] = ..., request_digest: _Optional[str] = ..., bindings: _Optional[_Iterable[_Union[BindingRecord, _Mapping]]] = ...) -> None: ...

class BindingRecord(_message.Message):
    __slots__ = ("binding_version", "binding", "binding_digest", "bound_by", "bound_at")
    BINDING_VERSION_FIELD_NUMBER: _ClassVar[int]
    BINDING_FIELD_NUMBER: _ClassVar[int]
    BINDING_DIGEST_FIELD_NUMBER: _ClassVar[int]
    BOUND_BY_FIELD_NUMBER: _ClassVar[int]
    BOUND_AT_FIELD_NUMBER: _ClassVar[int]
    binding_version: int
    binding: _session_pb2.SessionBinding
    binding_digest: str
    bound_by: str
    bound_at: _timestamp_pb2.Timestamp
    def __init__(self, binding_version: _Optional[int] = ..., binding: _Optional[_Union[_session_pb2.SessionBinding, _Mapping]] = ..., binding_digest: _Optional[str] = ..., bound_by: _Optional[str] = ..., bound_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ExportFooter(_message.Message):
    __slots__ = ("counts", "digest")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    counts: TransferCounts
    digest: str
    def __init__(self, counts: _Optional[_Union[TransferCounts, _Mapping]] = ..., digest: _Optional[str] = ...) -> None: ...

class TransferCounts(_message.Message):
    __slots__ = ("nodes", "node_revisions", "change_sets", "requests", "sessions", "runs", "access_events")
    NODES_FIELD_NUMBER: _ClassVar[int]
    NODE_REVISIONS_FIELD_NUMBER: _ClassVar[int]
    CHANGE_SETS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    ACCESS_EVENTS_FIELD_NUMBER: _ClassVar[int]
    nodes: int
    node_revisions: int
    change_sets: int
    requests: int
    sessions: int
    runs: int
    access_events: int
    def __init__(self, nodes: _Optional[int] = ..., node_revisions: _Optional[int] = ..., change_sets: _Optional[int] = ..., requests: _Optional[int] = ..., sessions: _Optional[int] = ..., runs: _Optional[int] = ..., access_events: _Optional[int] = ...) -> None: ...
