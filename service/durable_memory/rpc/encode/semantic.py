"""How the vector index stands, what refreshes did, and when the next one is due."""

from __future__ import annotations

from datetime import timedelta

from durable_memory.app.semantic.maintenance import MaintenanceHealth
from durable_memory.app.semantic.refresh_progress import RefreshProgress
from durable_memory.app.semantic.service import IndexStatus
from durable_memory.domain.semantic.generation import Generation
from durable_memory.domain.semantic.manifest import Manifest
from durable_memory.domain.session import DEFAULT_CANDIDATE_LIMIT, DEFAULT_MIN_SIMILARITY
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.semantic_records import MaintenanceRun, Receipt, RefreshWork, Schedule
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.node import encode_token
from durable_memory.rpc.encode.times import encode_duration, encode_optional_time, encode_time
from durablememory.v1 import change_token_pb2, session_pb2
from durablememory.v1 import semantic_pb2 as pb


def encode_offered_generation(generation: Generation) -> session_pb2.SemanticGeneration:
    """The generation with the bounds that a session gets by default."""
    return session_pb2.SemanticGeneration(
        authority_digest=generation.authority_digest,
        provider=generation.provider,
        model=generation.model,
        model_revision=generation.revision,
        dimension=generation.dimension,
        normalization=f"VECTOR_NORMALIZATION_{generation.normalization}",
        metric=f"VECTOR_METRIC_{generation.metric}",
        candidate_limit=DEFAULT_CANDIDATE_LIMIT,
        min_similarity=DEFAULT_MIN_SIMILARITY,
    )


def encode_status(status: IndexStatus) -> pb.IndexStatus:
    return pb.IndexStatus(
        change_token=encode_token(status.token),
        generation=encode_offered_generation(status.generation),
        state=number(status.state),
        published=None if status.manifest is None else _published(status.manifest),
        last_receipt=None if status.last_receipt is None else encode_receipt(status.last_receipt),
        unindexed_active_count=status.unindexed_active_count,
        last_failure=status.last_failure,
        schedule=None if status.schedule is None else encode_schedule(status.schedule),
        refused_count=status.refused_count,
    )


def encode_receipt(receipt: Receipt) -> pb.RefreshReceipt:
    return pb.RefreshReceipt(
        authority_digest=receipt.authority_digest,
        fence=receipt.fence,
        index_revision=receipt.index_revision,
        index_history_digest=receipt.history_digest,
        source=_source(receipt.source_history_id, receipt.source_revision),
        active_count=receipt.active_count,
        indexed_count=receipt.indexed_count,
        consistency=f"INDEX_CONSISTENCY_{receipt.consistency}",
        work=_work(receipt.work),
        completed_by_successor=receipt.completed_by_successor,
        written_at=encode_time(receipt.at),
    )


def encode_progress(progress: RefreshProgress) -> pb.RefreshProgress:
    return pb.RefreshProgress(phase=f"REFRESH_PHASE_{progress.phase}", done=progress.done, total=progress.total)


def encode_schedule(schedule: Schedule) -> pb.RefreshSchedule:
    interval, delay = schedule.interval_seconds, schedule.on_change_delay_seconds
    return pb.RefreshSchedule(
        interval=None if interval is None else encode_duration(timedelta(seconds=interval)),
        on_change_delay=None if delay is None else encode_duration(timedelta(seconds=delay)),
        set_by=schedule.set_by,
        set_at=encode_time(schedule.set_at),
    )


def encode_health(health: MaintenanceHealth) -> pb.MaintenanceHealth:
    return pb.MaintenanceHealth(
        phase=number(health.phase),
        worker_count=health.workers,
        running_count=health.running,
        run_count=health.runs,
        failure_count=health.failures,
        last_error=health.last_error,
        last_error_at=encode_optional_time(health.last_error_at),
    )


def encode_maintenance_run(run: MaintenanceRun) -> pb.MaintenanceRun:
    return pb.MaintenanceRun(
        started_at=encode_time(run.started_at),
        ended_at=encode_time(run.ended_at),
        outcome=number(run.outcome),
        error=run.error,
        index_revision=run.index_revision,
        fence=run.fence,
    )


def _published(manifest: Manifest) -> pb.PublishedIndex:
    return pb.PublishedIndex(
        index_revision=manifest.index_revision,
        index_history_digest=manifest.history_digest,
        fence=manifest.fence,
        source=_source(manifest.source_history_id, manifest.source_revision),
        live_count=manifest.live_count,
        dead_count=manifest.dead_count,
        stored_bytes=manifest.nbytes,
        segment_count=len(manifest.segments),
        float_bits=manifest.descriptor.width,
    )


def _source(history_id: str, revision: int) -> change_token_pb2.ChangeToken:
    return encode_token(ChangeToken(history_id=history_id, namespace_revision=revision))


def _work(work: RefreshWork) -> pb.RefreshWork:
    return pb.RefreshWork(
        added=work.added,
        replaced=work.replaced,
        removed=work.removed,
        cache_hits=work.cache_hits,
        provider_calls=work.provider_calls,
        provider_inputs=work.provider_inputs,
        provider_bytes=work.provider_bytes,
        staged_bytes=work.staged_bytes,
        duration=encode_duration(timedelta(milliseconds=work.milliseconds)),
        refused=work.refused,
    )
