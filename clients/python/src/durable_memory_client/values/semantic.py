"""How the vector index of a namespace stands, and what its refreshes did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from durable_memory_client.values.enums import (
    IndexConsistency,
    IndexState,
    MaintenancePhase,
    MaintenanceRunOutcome,
    RefreshPhase,
)
from durable_memory_client.values.namespace import ChangeToken
from durable_memory_client.values.session import SemanticGeneration
from durable_memory_client.values.times import time_of, to_datetime, to_timedelta
from durablememory.v1 import semantic_pb2, semantic_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshProgress:
    """What a refresh has reached: `done` of `total` texts have their vectors, as far as it knows."""

    phase: RefreshPhase
    done: int
    total: int

    @classmethod
    def from_proto(cls, message: semantic_pb2.RefreshProgress) -> RefreshProgress:
        return cls(phase=RefreshPhase.from_number(message.phase), done=message.done, total=message.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshWork:
    """What one refresh did. `provider_calls` is 0 when every vector was cached; `refused` texts have none."""

    added: int
    replaced: int
    removed: int
    cache_hits: int
    provider_calls: int
    provider_inputs: int
    provider_bytes: int
    staged_bytes: int
    duration: timedelta
    refused: int

    @classmethod
    def from_proto(cls, message: semantic_pb2.RefreshWork) -> RefreshWork:
        return cls(
            added=message.added,
            replaced=message.replaced,
            removed=message.removed,
            cache_hits=message.cache_hits,
            provider_calls=message.provider_calls,
            provider_inputs=message.provider_inputs,
            provider_bytes=message.provider_bytes,
            staged_bytes=message.staged_bytes,
            duration=to_timedelta(message.duration),
            refused=message.refused,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshReceipt:
    """The record of one refresh: what the index covers since then. `index_revision` 0: nothing is published."""

    authority_digest: str
    fence: int
    index_revision: int
    index_history_digest: str
    source: ChangeToken
    active_count: int
    indexed_count: int
    consistency: IndexConsistency
    work: RefreshWork
    completed_by_successor: bool
    written_at: datetime

    @classmethod
    def from_proto(cls, message: semantic_pb2.RefreshReceipt) -> RefreshReceipt:
        return cls(
            authority_digest=message.authority_digest,
            fence=message.fence,
            index_revision=message.index_revision,
            index_history_digest=message.index_history_digest,
            source=ChangeToken.from_proto(message.source),
            active_count=message.active_count,
            indexed_count=message.indexed_count,
            consistency=IndexConsistency.from_number(message.consistency),
            work=RefreshWork.from_proto(message.work),
            completed_by_successor=message.completed_by_successor,
            written_at=to_datetime(message.written_at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSchedule:
    """When an index is refreshed by itself; None is off."""

    interval: timedelta | None
    on_change_delay: timedelta | None
    set_by: str
    set_at: datetime

    @classmethod
    def from_proto(cls, message: semantic_pb2.RefreshSchedule) -> RefreshSchedule:
        return cls(
            interval=to_timedelta(message.interval) if message.HasField("interval") else None,
            on_change_delay=to_timedelta(message.on_change_delay) if message.HasField("on_change_delay") else None,
            set_by=message.set_by,
            set_at=to_datetime(message.set_at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedIndex:
    """A published index. `dead_count` vectors are stored and no longer count; `stored_bytes` includes them."""

    index_revision: int
    index_history_digest: str
    fence: int
    source: ChangeToken
    live_count: int
    dead_count: int
    stored_bytes: int
    segment_count: int
    float_bits: int

    @classmethod
    def from_proto(cls, message: semantic_pb2.PublishedIndex) -> PublishedIndex:
        return cls(
            index_revision=message.index_revision,
            index_history_digest=message.index_history_digest,
            fence=message.fence,
            source=ChangeToken.from_proto(message.source),
            live_count=message.live_count,
            dead_count=message.dead_count,
            stored_bytes=message.stored_bytes,
            segment_count=message.segment_count,
            float_bits=message.float_bits,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """How the index of a namespace stands.

    `unindexed_active_count`: ACTIVE memories that are found by words only, as of `change_token`. `refused_count`: those
    of the last receipt's that are, because the provider refuses to embed them. `last_failure`: why the latest run
    failed, empty if it did not, or a refresh has come through since. `schedule`: None where the server's default holds.
    """

    change_token: ChangeToken
    generation: SemanticGeneration
    state: IndexState
    published: PublishedIndex | None
    last_receipt: RefreshReceipt | None
    unindexed_active_count: int
    refused_count: int
    last_failure: str
    schedule: RefreshSchedule | None

    @classmethod
    def from_proto(cls, message: semantic_pb2.IndexStatus) -> IndexStatus:
        return cls(
            change_token=ChangeToken.from_proto(message.change_token),
            generation=SemanticGeneration.from_proto(message.generation),
            state=IndexState.from_number(message.state),
            published=PublishedIndex.from_proto(message.published) if message.HasField("published") else None,
            last_receipt=RefreshReceipt.from_proto(message.last_receipt) if message.HasField("last_receipt") else None,
            unindexed_active_count=message.unindexed_active_count,
            refused_count=message.refused_count,
            last_failure=message.last_failure,
            schedule=RefreshSchedule.from_proto(message.schedule) if message.HasField("schedule") else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceRun:
    """A refresh that was run by schedule, or that failed. `error` names the reason and its cause, without content.

    `fence` is that of its lease, 0 if it ended before it had one.
    """

    started_at: datetime
    ended_at: datetime
    outcome: MaintenanceRunOutcome
    error: str
    index_revision: int
    fence: int

    @classmethod
    def from_proto(cls, message: semantic_pb2.MaintenanceRun) -> MaintenanceRun:
        return cls(
            started_at=to_datetime(message.started_at),
            ended_at=to_datetime(message.ended_at),
            outcome=MaintenanceRunOutcome.from_number(message.outcome),
            error=message.error,
            index_revision=message.index_revision,
            fence=message.fence,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceHealth:
    """The namespace's last receipt and runs, newest first, whoever ran them; and how the answering process is doing.

    What is of the process, `phase` to `last_error_at`, is told to operators, and None for everybody else.
    """

    phase: MaintenancePhase | None
    worker_count: int | None
    running_count: int | None
    run_count: int | None
    failure_count: int | None
    last_error: str | None
    last_error_at: datetime | None
    last_receipt: RefreshReceipt | None
    runs: tuple[MaintenanceRun, ...]

    @classmethod
    def from_proto(cls, message: semantic_service_pb2.GetMaintenanceHealthResponse) -> MaintenanceHealth:
        health = message.health if message.HasField("health") else None
        return cls(
            phase=None if health is None else MaintenancePhase.from_number(health.phase),
            worker_count=None if health is None else health.worker_count,
            running_count=None if health is None else health.running_count,
            run_count=None if health is None else health.run_count,
            failure_count=None if health is None else health.failure_count,
            last_error=None if health is None else health.last_error,
            last_error_at=None if health is None else time_of(health, "last_error_at"),
            last_receipt=RefreshReceipt.from_proto(message.last_receipt) if message.HasField("last_receipt") else None,
            runs=tuple(map(MaintenanceRun.from_proto, message.runs)),
        )
