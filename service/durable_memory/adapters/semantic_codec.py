"""Rows of the SQL stores for what they keep for semantic recall, and the values that they hold; see `codec`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from durable_memory.adapters.codec import Columns, Row, decode_json, encode_json, reads
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Generation, Metric, Normalization, Partition
from durable_memory.ports.semantic_records import (
    Intent,
    MaintenanceRun,
    Receipt,
    RefreshWork,
    RunOutcome,
    Schedule,
)


class SemanticCodec:
    """Rows to values and back. `from_time` makes a column's value of an aware UTC time, `to_time` is its inverse."""

    def __init__(self, from_time: Callable[[datetime], Any], to_time: Callable[[Any], datetime]) -> None:
        self._column = from_time
        self._time = to_time

    def generation_columns(self, generation: Generation, at: datetime) -> Columns:
        return {
            "provider": generation.provider,
            "model": generation.model,
            "revision": generation.revision,
            "dimension": generation.dimension,
            "normalization": generation.normalization.value,
            "metric": generation.metric.value,
            "text_form": generation.text_form,
            "similarity_floor": float(generation.similarity_floor),
            "authority_digest": generation.authority_digest,
            "recorded_at": self._column(at),
        }

    @reads("served generation")
    def generation(self, row: Row) -> Generation:
        generation = Generation(
            provider=row["provider"],
            model=row["model"],
            revision=row["revision"],
            dimension=row["dimension"],
            normalization=Normalization(row["normalization"]),
            metric=Metric(row["metric"]),
            text_form=row["text_form"],
            similarity_floor=row["similarity_floor"],
        )
        if generation.authority_digest != row["authority_digest"]:
            raise ValueError("a generation is not the one that was recorded")
        return generation

    def intent_columns(self, intent: Intent) -> Columns:
        return {
            "fence": intent.fence,
            "nonce": intent.nonce,
            "expected_index_revision": intent.expected_index_revision,
            "history_digest": intent.history_digest,
            "source_history_id": intent.source_history_id,
            "source_revision": intent.source_revision,
            "active_count": intent.active_count,
            "work": encode_json(asdict(intent.work)),
            "started_at": self._column(intent.started_at),
        }

    @reads("refresh intent")
    def intent(self, row: Row) -> Intent:
        return Intent(
            fence=row["fence"],
            nonce=row["nonce"],
            expected_index_revision=row["expected_index_revision"],
            history_digest=row["history_digest"],
            source_history_id=row["source_history_id"],
            source_revision=row["source_revision"],
            active_count=row["active_count"],
            work=_work(row["work"]),
            started_at=self._time(row["started_at"]),
        )

    def receipt_columns(self, receipt: Receipt) -> Columns:
        return {
            "fence": receipt.fence,
            "index_revision": receipt.index_revision,
            "source_revision": receipt.source_revision,
            "source_history_id": receipt.source_history_id,
            "history_digest": receipt.history_digest,
            "active_count": receipt.active_count,
            "indexed_count": receipt.indexed_count,
            "consistency": receipt.consistency,
            "work": encode_json(asdict(receipt.work)),
            "at": self._column(receipt.at),
            "completed_by_successor": receipt.completed_by_successor,
        }

    @reads("refresh receipt")
    def receipt(self, row: Row) -> Receipt:
        return Receipt(
            authority_digest=row["authority_digest"],
            fence=row["fence"],
            index_revision=row["index_revision"],
            history_digest=row["history_digest"],
            source_history_id=row["source_history_id"],
            source_revision=row["source_revision"],
            active_count=row["active_count"],
            indexed_count=row["indexed_count"],
            consistency=row["consistency"],
            work=_work(row["work"]),
            at=self._time(row["at"]),
            completed_by_successor=bool(row["completed_by_successor"]),
        )

    def run_columns(self, run: MaintenanceRun) -> Columns:
        return {
            "started_at": self._column(run.started_at),
            "ended_at": self._column(run.ended_at),
            "outcome": int(run.outcome),
            "error": run.error,
            "index_revision": run.index_revision,
            "fence": run.fence,
        }

    @reads("maintenance run")
    def run(self, row: Row) -> MaintenanceRun:
        return MaintenanceRun(
            started_at=self._time(row["started_at"]),
            ended_at=self._time(row["ended_at"]),
            outcome=RunOutcome(row["outcome"]),
            error=row["error"],
            index_revision=row["index_revision"],
            fence=row["fence"],
        )

    def schedule_columns(self, schedule: Schedule) -> Columns:
        return {
            "authority_digest": schedule.authority_digest,
            "interval_seconds": _optional_float(schedule.interval_seconds),
            "on_change_delay_seconds": _optional_float(schedule.on_change_delay_seconds),
            "set_by": schedule.set_by,
            "set_at": self._column(schedule.set_at),
        }

    @reads("refresh schedule", DomainError)
    def schedule(self, row: Row) -> Schedule:
        return Schedule(
            authority_digest=row["authority_digest"],
            interval_seconds=row["interval_seconds"],
            on_change_delay_seconds=row["on_change_delay_seconds"],
            set_by=row["set_by"],
            set_at=self._time(row["set_at"]),
        )


def require_own(partition: Partition, receipt: Receipt) -> None:
    """Raises: INTERNAL for a receipt of another generation than its partition's."""
    if receipt.authority_digest != partition.authority_digest:
        raise DomainError(Reason.INTERNAL, "a receipt names another generation than its partition")


def _optional_float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _work(text: str) -> RefreshWork:
    """Counts that another version keeps and this one does not know say nothing of the index, and are left out."""
    held = decode_json(text)
    known = {part.name: held[part.name] for part in fields(RefreshWork) if part.name in held}
    if not all(isinstance(count, int) for count in known.values()):
        raise TypeError("a count is no number")
    return RefreshWork(**known)
