"""Admissions, uses, and how often there were any."""

from __future__ import annotations

from durable_memory.app.access import AccessOutcome
from durable_memory.domain.access import AccessEvent, UsageSummary
from durable_memory.domain.node import NodeRef
from durable_memory.rpc.encode.enums import number
from durable_memory.rpc.encode.item_error import encode_item_error
from durable_memory.rpc.encode.node import encode_citation, encode_ref
from durable_memory.rpc.encode.times import encode_optional_time, encode_time
from durablememory.v1 import access_pb2 as pb


def encode_admission(outcome: AccessOutcome) -> pb.AdmissionOutcome:
    if outcome.citation is None:
        return pb.AdmissionOutcome(
            node_revision=encode_ref(outcome.ref),
            verdict=pb.ADMISSION_VERDICT_REFUSED,
            error=None if outcome.error is None else encode_item_error(outcome.error),
        )
    return pb.AdmissionOutcome(
        node_revision=encode_ref(outcome.ref),
        verdict=pb.ADMISSION_VERDICT_ADMITTED,
        citation=encode_citation(outcome.citation),
        event_id=outcome.event_id,
    )


def encode_use(outcome: AccessOutcome) -> pb.UseOutcome:
    if outcome.citation is None:
        return pb.UseOutcome(
            verdict=pb.USE_VERDICT_REFUSED,
            error=None if outcome.error is None else encode_item_error(outcome.error),
        )
    return pb.UseOutcome(
        verdict=pb.USE_VERDICT_RECORDED,
        citation=encode_citation(outcome.citation),
        event_id=outcome.event_id,
    )


def encode_usage(summary: UsageSummary) -> pb.UsageSummary:
    return pb.UsageSummary(
        node_revision=encode_ref(NodeRef(summary.node_id, summary.revision)),
        admission_count=summary.admissions,
        use_count=summary.uses,
        last_admitted_at=encode_optional_time(summary.last_admitted_at),
        last_used_at=encode_optional_time(summary.last_used_at),
    )


def encode_event(event: AccessEvent) -> pb.AccessEvent:
    return pb.AccessEvent(
        event_id=event.event_id,
        kind=number(event.kind),
        node_revision=encode_ref(event.ref),
        session_id=event.session_id,
        context_id=event.context_id,
        caller=event.caller,
        recorded_at=encode_time(event.at),
    )
