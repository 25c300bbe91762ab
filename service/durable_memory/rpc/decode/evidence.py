"""Evidence, and the decisions from which the server makes evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from durable_memory.domain.errors import invalid_field, limit_exceeded
from durable_memory.domain.evidence import DecisionInput, EvidenceInput, EvidenceKind, check_unique_uris
from durable_memory.domain.limits import EVIDENCE_MAX_COUNT
from durable_memory.rpc.decode.fields import enum, optional_time
from durablememory.v1.decision_pb2 import Decision, DecisionKind
from durablememory.v1.node_pb2 import Evidence

SERVER_URI_PREFIX: Final = "dm:"
"""URIs of the evidence that the server makes; a caller's would pass for it."""

BESIDE_A_DECISION: Final = EVIDENCE_MAX_COUNT - 1
"""How many references a call may bring whose decision becomes another one."""

_KINDS: Final = {
    DecisionKind.DECISION_KIND_MANUAL: EvidenceKind.MANUAL,
    DecisionKind.DECISION_KIND_VERIFICATION: EvidenceKind.VERIFICATION,
}


def decode_evidence(
    field: str, given: Sequence[Evidence], *, least: int = 0, most: int = EVIDENCE_MAX_COUNT
) -> tuple[EvidenceInput, ...]:
    """`least` to `most` references with URIs of their own.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    if len(given) < least:
        raise invalid_field(field, "is empty")
    if len(given) > most:
        raise limit_exceeded(field, most, len(given), "items")
    decoded = tuple(_evidence(f"{field}[{index}]", item) for index, item in enumerate(given))
    check_unique_uris(field, decoded)
    return decoded


def decode_decision(field: str, given: Decision) -> DecisionInput:
    """A decision as it is stated.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    kind = _KINDS.get(given.kind)
    if kind is None:
        raise invalid_field(f"{field}.kind", "is missing" if given.kind == 0 else "is not a kind of decision")
    return DecisionInput.checked(field, kind=kind, decider=given.decider, note=given.note)


def _evidence(field: str, given: Evidence) -> EvidenceInput:
    if given.uri.startswith(SERVER_URI_PREFIX):
        raise invalid_field(f"{field}.uri", f"starts with {SERVER_URI_PREFIX}, which only the server's own may")
    source = given.WhichOneof("source")
    if source == "body" and not given.body:
        raise invalid_field(f"{field}.body", "is empty")
    return EvidenceInput.checked(
        field,
        uri=given.uri,
        kind=enum(f"{field}.kind", EvidenceKind, given.kind),
        digest=given.digest if source == "digest" else None,
        body=given.body if source == "body" else None,
        occurred_at=optional_time(f"{field}.", given, "occurred_at"),
    )
