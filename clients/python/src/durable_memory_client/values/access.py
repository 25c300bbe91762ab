"""Admissions and uses: what entered a model's input, and what was cited or acted on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from durable_memory_client.failures import error_of_item
from durable_memory_client.service_error import MemoryServiceError, MemoryUnavailableError
from durable_memory_client.values.citation import Citation, NodeRevision
from durable_memory_client.values.enums import AdmissionVerdict, UseVerdict
from durable_memory_client.values.namespace import ChangeToken
from durable_memory_client.values.times import time_of
from durablememory.v1 import access_pb2

if TYPE_CHECKING:
    from durable_memory_client.values.recall import Hit


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionOutcome:
    """What happened to one memory that was to enter a model's input. Refused: it must leave the input."""

    node_revision: NodeRevision
    verdict: AdmissionVerdict
    citation: Citation | None
    event_id: str
    error: MemoryServiceError | None

    @property
    def admitted(self) -> bool:
        return self.verdict is AdmissionVerdict.ADMITTED

    @classmethod
    def from_proto(cls, message: access_pb2.AdmissionOutcome) -> AdmissionOutcome:
        return cls(
            node_revision=NodeRevision.from_proto(message.node_revision),
            verdict=AdmissionVerdict.from_number(message.verdict),
            citation=Citation.from_proto(message.citation) if message.HasField("citation") else None,
            event_id=message.event_id,
            error=error_of_item(message.error) if message.HasField("error") else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What may stay in a model's input (`hits`) and what must leave it (`refused`).

    `unavailable`: the service could not answer and the caller chose to carry on; then nothing may stay.
    """

    hits: tuple[Hit, ...] = ()
    outcomes: tuple[AdmissionOutcome, ...] = ()
    context_id: str | None = None
    change_token: ChangeToken | None = None
    error: MemoryUnavailableError | None = None

    @property
    def refused(self) -> tuple[AdmissionOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if not outcome.admitted)

    @property
    def unavailable(self) -> bool:
        return self.error is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class UseOutcome:
    """What happened to one use that was to be recorded."""

    verdict: UseVerdict
    citation: Citation | None
    event_id: str
    error: MemoryServiceError | None

    @property
    def recorded(self) -> bool:
        return self.verdict is UseVerdict.RECORDED

    @classmethod
    def from_proto(cls, message: access_pb2.UseOutcome) -> UseOutcome:
        return cls(
            verdict=UseVerdict.from_number(message.verdict),
            citation=Citation.from_proto(message.citation) if message.HasField("citation") else None,
            event_id=message.event_id,
            error=error_of_item(message.error) if message.HasField("error") else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSummary:
    """How often one node revision entered a model's input, and how often it was used."""

    node_revision: NodeRevision
    admission_count: int
    use_count: int
    last_admitted_at: datetime | None
    last_used_at: datetime | None

    @classmethod
    def from_proto(cls, message: access_pb2.UsageSummary) -> UsageSummary:
        return cls(
            node_revision=NodeRevision.from_proto(message.node_revision),
            admission_count=message.admission_count,
            use_count=message.use_count,
            last_admitted_at=time_of(message, "last_admitted_at"),
            last_used_at=time_of(message, "last_used_at"),
        )
