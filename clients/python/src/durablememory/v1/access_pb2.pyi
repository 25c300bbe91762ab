import datetime

from durablememory.v1 import citation_pb2 as _citation_pb2
from durablememory.v1 import item_error_pb2 as _item_error_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AdmissionVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ADMISSION_VERDICT_UNSPECIFIED: _ClassVar[AdmissionVerdict]
    ADMISSION_VERDICT_ADMITTED: _ClassVar[AdmissionVerdict]
    ADMISSION_VERDICT_REFUSED: _ClassVar[AdmissionVerdict]

class UseVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    USE_VERDICT_UNSPECIFIED: _ClassVar[UseVerdict]
    USE_VERDICT_RECORDED: _ClassVar[UseVerdict]
    USE_VERDICT_REFUSED: _ClassVar[UseVerdict]

class AccessKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCESS_KIND_UNSPECIFIED: _ClassVar[AccessKind]
    ACCESS_KIND_ADMISSION: _ClassVar[AccessKind]
    ACCESS_KIND_USE: _ClassVar[AccessKind]
ADMISSION_VERDICT_UNSPECIFIED: AdmissionVerdict
ADMISSION_VERDICT_ADMITTED: AdmissionVerdict
ADMISSION_VERDICT_REFUSED: AdmissionVerdict
USE_VERDICT_UNSPECIFIED: UseVerdict
USE_VERDICT_RECORDED: UseVerdict
USE_VERDICT_REFUSED: UseVerdict
ACCESS_KIND_UNSPECIFIED: AccessKind
ACCESS_KIND_ADMISSION: AccessKind
ACCESS_KIND_USE: AccessKind

class AdmissionOutcome(_message.Message):
    __slots__ = ("node_revision", "verdict", "citation", "event_id", "error")
    NODE_REVISION_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    node_revision: _citation_pb2.NodeRevisionRef
    verdict: AdmissionVerdict
    citation: _citation_pb2.Citation
    event_id: str
    error: _item_error_pb2.ItemError
    def __init__(self, node_revision: _Optional[_Union[_citation_pb2.NodeRevisionRef, _Mapping]] = ..., verdict: _Optional[_Union[AdmissionVerdict, str]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., event_id: _Optional[str] = ..., error: _Optional[_Union[_item_error_pb2.ItemError, _Mapping]] = ...) -> None: ...

class UseEvent(_message.Message):
    __slots__ = ("citation", "node_revision", "event_id")
    CITATION_FIELD_NUMBER: _ClassVar[int]
    NODE_REVISION_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    citation: _citation_pb2.Citation
    node_revision: _citation_pb2.NodeRevisionRef
    event_id: str
    def __init__(self, citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., node_revision: _Optional[_Union[_citation_pb2.NodeRevisionRef, _Mapping]] = ..., event_id: _Optional[str] = ...) -> None: ...

class UseOutcome(_message.Message):
    __slots__ = ("verdict", "citation", "event_id", "error")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    verdict: UseVerdict
    citation: _citation_pb2.Citation
    event_id: str
    error: _item_error_pb2.ItemError
    def __init__(self, verdict: _Optional[_Union[UseVerdict, str]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., event_id: _Optional[str] = ..., error: _Optional[_Union[_item_error_pb2.ItemError, _Mapping]] = ...) -> None: ...

class UsageSummary(_message.Message):
    __slots__ = ("node_revision", "admission_count", "use_count", "last_admitted_at", "last_used_at")
    NODE_REVISION_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    USE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_ADMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_AT_FIELD_NUMBER: _ClassVar[int]
    node_revision: _citation_pb2.NodeRevisionRef
    admission_count: int
    use_count: int
    last_admitted_at: _timestamp_pb2.Timestamp
    last_used_at: _timestamp_pb2.Timestamp
    def __init__(self, node_revision: _Optional[_Union[_citation_pb2.NodeRevisionRef, _Mapping]] = ..., admission_count: _Optional[int] = ..., use_count: _Optional[int] = ..., last_admitted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_used_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AccessEvent(_message.Message):
    __slots__ = ("event_id", "kind", "node_revision", "session_id", "context_id", "caller", "recorded_at")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NODE_REVISION_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_ID_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    kind: AccessKind
    node_revision: _citation_pb2.NodeRevisionRef
    session_id: str
    context_id: str
    caller: str
    recorded_at: _timestamp_pb2.Timestamp
    def __init__(self, event_id: _Optional[str] = ..., kind: _Optional[_Union[AccessKind, str]] = ..., node_revision: _Optional[_Union[_citation_pb2.NodeRevisionRef, _Mapping]] = ..., session_id: _Optional[str] = ..., context_id: _Optional[str] = ..., caller: _Optional[str] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
