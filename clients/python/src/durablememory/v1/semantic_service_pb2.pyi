import datetime

from durablememory.v1 import namespace_pb2 as _namespace_pb2
from durablememory.v1 import semantic_pb2 as _semantic_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RefreshSemanticRecallRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "session_id", "requirement", "rebuild")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENT_FIELD_NUMBER: _ClassVar[int]
    REBUILD_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    session_id: str
    requirement: _semantic_pb2.IndexConsistency
    rebuild: bool
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., requirement: _Optional[_Union[_semantic_pb2.IndexConsistency, str]] = ..., rebuild: _Optional[bool] = ...) -> None: ...

class RefreshSemanticRecallResponse(_message.Message):
    __slots__ = ("progress", "receipt")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    progress: _semantic_pb2.RefreshProgress
    receipt: _semantic_pb2.RefreshReceipt
    def __init__(self, progress: _Optional[_Union[_semantic_pb2.RefreshProgress, _Mapping]] = ..., receipt: _Optional[_Union[_semantic_pb2.RefreshReceipt, _Mapping]] = ...) -> None: ...

class GetIndexStatusRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ...) -> None: ...

class GetIndexStatusResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: _semantic_pb2.IndexStatus
    def __init__(self, status: _Optional[_Union[_semantic_pb2.IndexStatus, _Mapping]] = ...) -> None: ...

class ListReceiptsRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListReceiptsResponse(_message.Message):
    __slots__ = ("receipts", "next_page_token")
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    receipts: _containers.RepeatedCompositeFieldContainer[_semantic_pb2.RefreshReceipt]
    next_page_token: str
    def __init__(self, receipts: _Optional[_Iterable[_Union[_semantic_pb2.RefreshReceipt, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ClearPartitionRequest(_message.Message):
    __slots__ = ("namespace", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ClearPartitionResponse(_message.Message):
    __slots__ = ("receipt",)
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    receipt: _semantic_pb2.RefreshReceipt
    def __init__(self, receipt: _Optional[_Union[_semantic_pb2.RefreshReceipt, _Mapping]] = ...) -> None: ...

class SetScheduleRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "interval", "on_change_delay")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    ON_CHANGE_DELAY_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    interval: _duration_pb2.Duration
    on_change_delay: _duration_pb2.Duration
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., on_change_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SetScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: _semantic_pb2.RefreshSchedule
    def __init__(self, schedule: _Optional[_Union[_semantic_pb2.RefreshSchedule, _Mapping]] = ...) -> None: ...

class GetMaintenanceHealthRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ...) -> None: ...

class GetMaintenanceHealthResponse(_message.Message):
    __slots__ = ("health", "last_receipt", "runs")
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    LAST_RECEIPT_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    health: _semantic_pb2.MaintenanceHealth
    last_receipt: _semantic_pb2.RefreshReceipt
    runs: _containers.RepeatedCompositeFieldContainer[_semantic_pb2.MaintenanceRun]
    def __init__(self, health: _Optional[_Union[_semantic_pb2.MaintenanceHealth, _Mapping]] = ..., last_receipt: _Optional[_Union[_semantic_pb2.RefreshReceipt, _Mapping]] = ..., runs: _Optional[_Iterable[_Union[_semantic_pb2.MaintenanceRun, _Mapping]]] = ...) -> None: ...
