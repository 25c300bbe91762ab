import datetime

from durablememory.v1 import change_token_pb2 as _change_token_pb2
from durablememory.v1 import session_pb2 as _session_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class IndexState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INDEX_STATE_UNSPECIFIED: _ClassVar[IndexState]
    INDEX_STATE_NOT_BUILT: _ClassVar[IndexState]
    INDEX_STATE_CURRENT: _ClassVar[IndexState]
    INDEX_STATE_REGRESSED: _ClassVar[IndexState]
    INDEX_STATE_CORRUPTED: _ClassVar[IndexState]

class IndexConsistency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INDEX_CONSISTENCY_UNSPECIFIED: _ClassVar[IndexConsistency]
    INDEX_CONSISTENCY_INDEX_REVISION_CAS: _ClassVar[IndexConsistency]
    INDEX_CONSISTENCY_LAST_WRITER_WINS: _ClassVar[IndexConsistency]

class RefreshPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REFRESH_PHASE_UNSPECIFIED: _ClassVar[RefreshPhase]
    REFRESH_PHASE_DIFFING: _ClassVar[RefreshPhase]
    REFRESH_PHASE_EMBEDDING: _ClassVar[RefreshPhase]
    REFRESH_PHASE_STAGING: _ClassVar[RefreshPhase]
    REFRESH_PHASE_PUBLISHED: _ClassVar[RefreshPhase]
    REFRESH_PHASE_UNCHANGED: _ClassVar[RefreshPhase]

class MaintenancePhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MAINTENANCE_PHASE_UNSPECIFIED: _ClassVar[MaintenancePhase]
    MAINTENANCE_PHASE_STOPPED: _ClassVar[MaintenancePhase]
    MAINTENANCE_PHASE_IDLE: _ClassVar[MaintenancePhase]
    MAINTENANCE_PHASE_REFRESHING: _ClassVar[MaintenancePhase]
    MAINTENANCE_PHASE_FAILING: _ClassVar[MaintenancePhase]

class MaintenanceRunOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MAINTENANCE_RUN_OUTCOME_UNSPECIFIED: _ClassVar[MaintenanceRunOutcome]
    MAINTENANCE_RUN_OUTCOME_PUBLISHED: _ClassVar[MaintenanceRunOutcome]
    MAINTENANCE_RUN_OUTCOME_UNCHANGED: _ClassVar[MaintenanceRunOutcome]
    MAINTENANCE_RUN_OUTCOME_FAILED: _ClassVar[MaintenanceRunOutcome]
    MAINTENANCE_RUN_OUTCOME_CANCELLED: _ClassVar[MaintenanceRunOutcome]
INDEX_STATE_UNSPECIFIED: IndexState
INDEX_STATE_NOT_BUILT: IndexState
INDEX_STATE_CURRENT: IndexState
INDEX_STATE_REGRESSED: IndexState
INDEX_STATE_CORRUPTED: IndexState
INDEX_CONSISTENCY_UNSPECIFIED: IndexConsistency
INDEX_CONSISTENCY_INDEX_REVISION_CAS: IndexConsistency
INDEX_CONSISTENCY_LAST_WRITER_WINS: IndexConsistency
REFRESH_PHASE_UNSPECIFIED: RefreshPhase
REFRESH_PHASE_DIFFING: RefreshPhase
REFRESH_PHASE_EMBEDDING: RefreshPhase
REFRESH_PHASE_STAGING: RefreshPhase
REFRESH_PHASE_PUBLISHED: RefreshPhase
REFRESH_PHASE_UNCHANGED: RefreshPhase
MAINTENANCE_PHASE_UNSPECIFIED: MaintenancePhase
MAINTENANCE_PHASE_STOPPED: MaintenancePhase
MAINTENANCE_PHASE_IDLE: MaintenancePhase
MAINTENANCE_PHASE_REFRESHING: MaintenancePhase
MAINTENANCE_PHASE_FAILING: MaintenancePhase
MAINTENANCE_RUN_OUTCOME_UNSPECIFIED: MaintenanceRunOutcome
MAINTENANCE_RUN_OUTCOME_PUBLISHED: MaintenanceRunOutcome
MAINTENANCE_RUN_OUTCOME_UNCHANGED: MaintenanceRunOutcome
MAINTENANCE_RUN_OUTCOME_FAILED: MaintenanceRunOutcome
MAINTENANCE_RUN_OUTCOME_CANCELLED: MaintenanceRunOutcome

class IndexStatus(_message.Message):
    __slots__ = ("change_token", "generation", "state", "published", "last_receipt", "unindexed_active_count", "last_failure", "schedule", "refused_count")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    LAST_RECEIPT_FIELD_NUMBER: _ClassVar[int]
    UNINDEXED_ACTIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_FAILURE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    REFUSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    generation: _session_pb2.SemanticGeneration
    state: IndexState
    published: PublishedIndex
    last_receipt: RefreshReceipt
    unindexed_active_count: int
    last_failure: str
    schedule: RefreshSchedule
    refused_count: int
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., generation: _Optional[_Union[_session_pb2.SemanticGeneration, _Mapping]] = ..., state: _Optional[_Union[IndexState, str]] = ..., published: _Optional[_Union[PublishedIndex, _Mapping]] = ..., last_receipt: _Optional[_Union[RefreshReceipt, _Mapping]] = ..., unindexed_active_count: _Optional[int] = ..., last_failure: _Optional[str] = ..., schedule: _Optional[_Union[RefreshSchedule, _Mapping]] = ..., refused_count: _Optional[int] = ...) -> None: ...

class PublishedIndex(_message.Message):
    __slots__ = ("index_revision", "index_history_digest", "fence", "source", "live_count", "dead_count", "stored_bytes", "segment_count", "float_bits")
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    INDEX_HISTORY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    LIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    FLOAT_BITS_FIELD_NUMBER: _ClassVar[int]
    index_revision: int
    index_history_digest: str
    fence: int
    source: _change_token_pb2.ChangeToken
    live_count: int
    dead_count: int
    stored_bytes: int
    segment_count: int
    float_bits: int
    def __init__(self, index_revision: _Optional[int] = ..., index_history_digest: _Optional[str] = ..., fence: _Optional[int] = ..., source: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., live_count: _Optional[int] = ..., dead_count: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., segment_count: _Optional[int] = ..., float_bits: _Optional[int] = ...) -> None: ...

class RefreshProgress(_message.Message):
    __slots__ = ("phase", "done", "total")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    phase: RefreshPhase
    done: int
    total: int
    def __init__(self, phase: _Optional[_Union[RefreshPhase, str]] = ..., done: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class RefreshReceipt(_message.Message):
    __slots__ = ("authority_digest", "fence", "index_revision", "index_history_digest", "source", "active_count", "indexed_count", "consistency", "work", "completed_by_successor", "written_at")
    AUTHORITY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    INDEX_HISTORY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    INDEXED_COUNT_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_BY_SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_AT_FIELD_NUMBER: _ClassVar[int]
    authority_digest: str
    fence: int
    index_revision: int
    index_history_digest: str
    source: _change_token_pb2.ChangeToken
    active_count: int
    indexed_count: int
    consistency: IndexConsistency
    work: RefreshWork
    completed_by_successor: bool
    written_at: _timestamp_pb2.Timestamp
    def __init__(self, authority_digest: _Optional[str] = ..., fence: _Optional[int] = ..., index_revision: _Optional[int] = ..., index_history_digest: _Optional[str] = ..., source: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., active_count: _Optional[int] = ..., indexed_count: _Optional[int] = ..., consistency: _Optional[_Union[IndexConsistency, str]] = ..., work: _Optional[_Union[RefreshWork, _Mapping]] = ..., completed_by_successor: _Optional[bool] = ..., written_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RefreshWork(_message.Message):
    __slots__ = ("added", "replaced", "removed", "cache_hits", "provider_calls", "provider_inputs", "provider_bytes", "staged_bytes", "duration", "refused")
    ADDED_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    CACHE_HITS_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_CALLS_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_INPUTS_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_BYTES_FIELD_NUMBER: _ClassVar[int]
    STAGED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    added: int
    replaced: int
    removed: int
    cache_hits: int
    provider_calls: int
    provider_inputs: int
    provider_bytes: int
    staged_bytes: int
    duration: _duration_pb2.Duration
    refused: int
    def __init__(self, added: _Optional[int] = ..., replaced: _Optional[int] = ..., removed: _Optional[int] = ..., cache_hits: _Optional[int] = ..., provider_calls: _Optional[int] = ..., provider_inputs: _Optional[int] = ..., provider_bytes: _Optional[int] = ..., staged_bytes: _Optional[int] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., refused: _Optional[int] = ...) -> None: ...

class RefreshSchedule(_message.Message):
    __slots__ = ("interval", "on_change_delay", "set_by", "set_at")
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    ON_CHANGE_DELAY_FIELD_NUMBER: _ClassVar[int]
    SET_BY_FIELD_NUMBER: _ClassVar[int]
    SET_AT_FIELD_NUMBER: _ClassVar[int]
    interval: _duration_pb2.Duration
    on_change_delay: _duration_pb2.Duration
    set_by: str
    set_at: _timestamp_pb2.Timestamp
    def __init__(self, interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., on_change_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., set_by: _Optional[str] = ..., set_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class MaintenanceHealth(_message.Message):
    __slots__ = ("phase", "worker_count", "running_count", "run_count", "failure_count", "last_error", "last_error_at")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    WORKER_COUNT_FIELD_NUMBER: _ClassVar[int]
    RUNNING_COUNT_FIELD_NUMBER: _ClassVar[int]
    RUN_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_AT_FIELD_NUMBER: _ClassVar[int]
    phase: MaintenancePhase
    worker_count: int
    running_count: int
    run_count: int
    failure_count: int
    last_error: str
    last_error_at: _timestamp_pb2.Timestamp
    def __init__(self, phase: _Optional[_Union[MaintenancePhase, str]] = ..., worker_count: _Optional[int] = ..., running_count: _Optional[int] = ..., run_count: _Optional[int] = ..., failure_count: _Optional[int] = ..., last_error: _Optional[str] = ..., last_error_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class MaintenanceRun(_message.Message):
    __slots__ = ("started_at", "ended_at", "outcome", "error", "index_revision", "fence")
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    INDEX_REVISION_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    outcome: MaintenanceRunOutcome
    error: str
    index_revision: int
    fence: int
    def __init__(self, started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[MaintenanceRunOutcome, str]] = ..., error: _Optional[str] = ..., index_revision: _Optional[int] = ..., fence: _Optional[int] = ...) -> None: ...
