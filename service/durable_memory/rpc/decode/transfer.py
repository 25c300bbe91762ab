"""Records of an import. Whether they belong together is verified afterwards; here each has to be well-formed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from typing import Final

from google.protobuf.message import Message

from durable_memory.app.transfer_records import ExportFooter, ExportHeader, ExportRecord, SessionExport, TransferCounts
from durable_memory.domain.access import AccessEvent, AccessKind
from durable_memory.domain.canonical import JsonObject, canonical_json
from durable_memory.domain.change_set import ChangeSetRecord, NodeChange
from durable_memory.domain.errors import invalid_field, limit_exceeded
from durable_memory.domain.evidence import Evidence, EvidenceInput, EvidenceKind
from durable_memory.domain.limits import (
    AUTHOR_MAX_BYTES,
    CHANGE_SET_MAX_OPERATIONS,
    CONTENT_MAX_BYTES,
    EVIDENCE_MAX_COUNT,
    LABEL_VALUE_MAX_BYTES,
    LABELS_MAX_COUNT,
    NOTE_MAX_BYTES,
    RELATIONS_MAX_COUNT,
)
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus
from durable_memory.domain.session import BindingRecord, Run, RunState, Session, SessionState
from durable_memory.domain.state import ChangeToken
from durable_memory.domain.text import check_name, check_text, check_unit_interval
from durable_memory.ports.store import RequestKey, RequestRecord
from durable_memory.rpc.decode.citation import decode_citation, decode_ref
from durable_memory.rpc.decode.fields import (
    at_most,
    enum,
    hex_digest,
    label_keys,
    namespace_revision,
    optional_time,
    revision,
    time,
)
from durable_memory.rpc.decode.memory import decode_relation, decode_surroundings
from durable_memory.rpc.decode.session import decode_binding
from durable_memory.rpc.encode.change_set import OPERATION_KINDS
from durable_memory.rpc.encode.transfer import FORMAT_VERSION
from durablememory.v1 import access_pb2, change_set_pb2, node_pb2, session_pb2
from durablememory.v1 import transfer_pb2 as pb

_OPERATION_NAMES: Final = {number: name for name, number in OPERATION_KINDS.items()}
_RESULT_MAX_BYTES: Final = 1_048_576


def decode_record(field: str, given: pb.ExportRecord) -> ExportRecord:
    """One record; `field` is its path in the import as a whole, `records[17]`.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED.
    """
    case = given.WhichOneof("record")
    if case is None:
        raise invalid_field(f"{field}.record", "is missing")
    return _RECORDS[case](f"{field}.{case}", getattr(given, case))


def _header(field: str, given: pb.ExportHeader) -> ExportHeader:
    if given.format_version != FORMAT_VERSION:
        raise invalid_field(f"{field}.format_version", f"is not {FORMAT_VERSION}", given=given.format_version)
    return ExportHeader(
        namespace=Namespace(
            check_name(f"{field}.namespace.tenant_id", given.namespace.tenant_id),
            check_name(f"{field}.namespace.principal_id", given.namespace.principal_id),
            check_name(f"{field}.namespace.scope_id", given.namespace.scope_id),
        ),
        token=ChangeToken(
            history_id=check_name(f"{field}.change_token.history_id", given.change_token.history_id),
            namespace_revision=namespace_revision(
                f"{field}.change_token.namespace_revision", given.change_token.namespace_revision
            ),
        ),
        chain_digest=hex_digest(f"{field}.chain_digest", given.chain_digest),
        exported_at=_time(field, given, "exported_at"),
    )


def _node(field: str, given: node_pb2.Node) -> NodeRevision:
    at_most(f"{field}.evidence", given.evidence, EVIDENCE_MAX_COUNT)
    at_most(f"{field}.relations", given.relations, RELATIONS_MAX_COUNT)
    label_keys(f"{field}.labels", given.labels, limit=LABELS_MAX_COUNT + 1)  # a rejection adds one of the server's
    return NodeRevision(
        node_id=check_name(f"{field}.id", given.id),
        revision=revision(f"{field}.revision", given.revision),
        kind=enum(f"{field}.kind", NodeKind, given.kind),
        status=enum(f"{field}.status", NodeStatus, given.status),
        content=check_text(f"{field}.content", given.content, CONTENT_MAX_BYTES),
        content_digest=hex_digest(f"{field}.content_digest", given.content_digest),
        surroundings=decode_surroundings(f"{field}.surroundings", given.surroundings),
        author=check_text(f"{field}.author", given.author, AUTHOR_MAX_BYTES, blank_allowed=True),
        occurred_at=_time(field, given, "occurred_at"),
        confidence=check_unit_interval(f"{field}.confidence", given.confidence),
        importance=check_unit_interval(f"{field}.importance", given.importance),
        evidence=tuple(_evidence(f"{field}.evidence[{place}]", item) for place, item in enumerate(given.evidence)),
        relations=tuple(
            decode_relation(f"{field}.relations[{place}]", item) for place, item in enumerate(given.relations)
        ),
        labels={
            key: check_text(f"{field}.labels", value, LABEL_VALUE_MAX_BYTES, blank_allowed=True)
            for key, value in sorted(given.labels.items())
        },
        created_at=_time(field, given, "created_at"),
        updated_at=_time(field, given, "updated_at"),
        committed_at=_time(field, given, "committed_at"),
        decided_by=_optional_name(f"{field}.decided_by", given.decided_by),
        valid_from=revision(f"{field}.valid_from_namespace_revision", given.valid_from_namespace_revision),
    )


def _evidence(field: str, given: node_pb2.Evidence) -> Evidence:
    if given.WhichOneof("source") != "digest":
        raise invalid_field(f"{field}.digest", "is missing")
    checked = EvidenceInput.checked(
        field, uri=given.uri, kind=enum(f"{field}.kind", EvidenceKind, given.kind), digest=given.digest
    )
    return checked.at(_time(field, given, "occurred_at"))


def _change_set(field: str, given: change_set_pb2.ChangeSet) -> ChangeSetRecord:
    at_most(f"{field}.changes", given.changes, 2 * CHANGE_SET_MAX_OPERATIONS)
    record = ChangeSetRecord(
        namespace_revision=revision(f"{field}.namespace_revision", given.namespace_revision),
        method=check_name(f"{field}.method", given.method),
        request_id=check_name(f"{field}.idempotency_key", given.idempotency_key),
        caller=check_name(f"{field}.caller", given.caller),
        note=check_text(f"{field}.note", given.note, NOTE_MAX_BYTES, blank_allowed=True),
        occurred_at=_time(field, given, "occurred_at"),
        committed_at=_time(field, given, "committed_at"),
        changes=tuple(_change(f"{field}.changes[{place}]", item) for place, item in enumerate(given.changes)),
        chain_digest=hex_digest(f"{field}.chain_digest", given.chain_digest),
    )
    if record.digest() != given.digest:
        raise invalid_field(f"{field}.digest", "is not that of the change set")
    return record


def _change(field: str, given: change_set_pb2.NodeChange) -> NodeChange:
    citation = decode_citation(f"{field}.citation", given.citation)
    at_most(f"{field}.operations", given.operations, CHANGE_SET_MAX_OPERATIONS)
    operations = []
    for place, number in enumerate(given.operations):
        if number not in _OPERATION_NAMES:
            raise invalid_field(f"{field}.operations[{place}]", "is not an operation")
        operations.append(_OPERATION_NAMES[number])
    return NodeChange(
        node_id=citation.node_id,
        revision=citation.revision,
        content_digest=citation.content_digest,
        content_changed=given.content_changed,
        revision_digest=hex_digest(f"{field}.revision_digest", given.revision_digest),
        operations=tuple(operations),
        status_before=(
            enum(f"{field}.status_before", NodeStatus, given.status_before) if given.HasField("status_before") else None
        ),
        status_after=enum(f"{field}.status_after", NodeStatus, given.status_after),
    )


def _request(field: str, given: pb.RequestRecord) -> RequestRecord:
    return RequestRecord(
        request=RequestKey(
            method=check_name(f"{field}.method", given.method),
            key=check_name(f"{field}.request_id", given.request_id),
            fingerprint=check_name(f"{field}.fingerprint", given.fingerprint),
        ),
        result=_result(f"{field}.result_json", given.result_json),
        namespace_revision=namespace_revision(f"{field}.namespace_revision", given.namespace_revision),
    )


def _result(field: str, text: str) -> JsonObject:
    size = len(text.encode())
    if size > _RESULT_MAX_BYTES:
        raise limit_exceeded(field, _RESULT_MAX_BYTES, size, "bytes")
    try:
        value = json.loads(text)
        canonical_json(value)  # of which its digest is made: no NaN, and no integer that is not exact everywhere
    except (ValueError, RecursionError) as error:
        raise invalid_field(field, "is not JSON") from error
    if not isinstance(value, dict):
        raise invalid_field(field, "is not a JSON object")
    return value


def _session(field: str, given: pb.SessionRecord) -> SessionExport:
    session = given.session
    session_id = check_name(f"{field}.session.session_id", session.session_id)
    return SessionExport(
        session=Session(
            session_id=session_id,
            binding=decode_binding(f"{field}.session.binding", session.binding),
            binding_version=revision(f"{field}.session.binding_version", session.binding_version),
            request_digest=hex_digest(f"{field}.request_digest", given.request_digest),
            state=enum(f"{field}.session.state", SessionState, session.state),
            opened_by=check_name(f"{field}.session.opened_by", session.opened_by),
            opened_at=_time(f"{field}.session", session, "opened_at"),
            rebound_at=optional_time(f"{field}.session.", session, "rebound_at"),
            closed_at=optional_time(f"{field}.session.", session, "closed_at"),
        ),
        bindings=tuple(
            BindingRecord(
                session_id=session_id,
                binding_version=revision(f"{field}.bindings[{place}].binding_version", item.binding_version),
                binding=decode_binding(f"{field}.bindings[{place}].binding", item.binding),
                bound_at=_time(f"{field}.bindings[{place}]", item, "bound_at"),
                bound_by=check_name(f"{field}.bindings[{place}].bound_by", item.bound_by),
            )
            for place, item in enumerate(given.bindings)
        ),
    )


def _run(field: str, given: session_pb2.Run) -> Run:
    return Run(
        session_id=check_name(f"{field}.session_id", given.session_id),
        run_id=check_name(f"{field}.run_id", given.run_id),
        incarnation=check_name(f"{field}.incarnation", given.incarnation),
        host_instance=check_name(f"{field}.host_instance", given.host_instance),
        state=enum(f"{field}.state", RunState, given.state),
        sequence=namespace_revision(f"{field}.sequence", given.sequence),
        context_id=hex_digest(f"{field}.context_id", given.context_id),
        begun_by=check_name(f"{field}.begun_by", given.begun_by),
        opened_at=_time(field, given, "opened_at"),
        active_at=_time(field, given, "active_at"),
        ended_at=optional_time(f"{field}.", given, "ended_at"),
    )


def _event(field: str, given: access_pb2.AccessEvent) -> AccessEvent:
    ref = decode_ref(f"{field}.node_revision", given.node_revision)
    return AccessEvent(
        event_id=check_name(f"{field}.event_id", given.event_id),
        kind=enum(f"{field}.kind", AccessKind, given.kind),
        session_id=check_name(f"{field}.session_id", given.session_id),
        context_id=hex_digest(f"{field}.context_id", given.context_id),
        node_id=ref.node_id,
        revision=ref.revision,
        caller=check_name(f"{field}.caller", given.caller),
        at=_time(field, given, "recorded_at"),
    )


def _footer(field: str, given: pb.ExportFooter) -> ExportFooter:
    counts = {part.name: namespace_revision(f"{field}.counts.{part.name}", getattr(given.counts, part.name))
              for part in fields(TransferCounts)}  # fmt: skip
    return ExportFooter(counts=TransferCounts(**counts), digest=hex_digest(f"{field}.digest", given.digest))


def _time(field: str, message: Message, name: str) -> datetime:
    if not message.HasField(name):
        raise invalid_field(f"{field}.{name}", "is missing")
    return time(f"{field}.{name}", getattr(message, name))


def _optional_name(field: str, value: str) -> str:
    return check_name(field, value) if value else ""


_RECORDS: Final[dict[str, Callable[..., ExportRecord]]] = {
    "header": _header,
    "node_revision": _node,
    "change_set": _change_set,
    "request": _request,
    "session": _session,
    "run": _run,
    "access_event": _event,
    "footer": _footer,
}
