"""Rows of the SQL stores, and the domain values that they hold.

One vocabulary of column names for every SQL adapter. Enums are their numbers; digests and ids are text; evidence,
relations, labels, surroundings, changes, bindings and results are JSON text. Inside JSON, times are whole
microseconds; in columns they are what the database has for them, so a `Codec` is made with both conversions.

Whatever cannot be read back raises DATA_CORRUPTED. A binding that a newer version wrote raises BINDING_DRIFT instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, Final, Protocol, TypeVar

from durable_memory.domain.access import AccessEvent, AccessKind, UsageSummary
from durable_memory.domain.canonical import JsonObject, JsonValue, from_micros, to_micros
from durable_memory.domain.change_set import ChangeSetRecord, NodeChange
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.evidence import Evidence, EvidenceKind
from durable_memory.domain.node import NO_LABELS, NodeKind, NodeRevision, NodeStatus, Relation, RelationKind
from durable_memory.domain.session import (
    BindingRecord,
    Context,
    Run,
    RunState,
    Session,
    SessionBinding,
    SessionState,
    decode_binding,
)
from durable_memory.ports.store import RequestKey, RequestRecord


class Row(Protocol):
    """What a driver answers: columns by name. `sqlite3.Row`, `asyncpg.Record` and any dict are rows."""

    def __getitem__(self, column: str, /) -> Any: ...


Columns = dict[str, Any]
"""Column names and values to write, always in the same order for the same kind of row."""

C = TypeVar("C")
T = TypeVar("T")

_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


def corrupted(what: str) -> DomainError:
    """DATA_CORRUPTED: `what` is stored, and cannot be understood."""
    return DomainError(Reason.DATA_CORRUPTED, f"a stored {what} cannot be read", what=what)


def reads(what: str, *also: type[Exception]) -> Callable[[Callable[[C, Row], T]], Callable[[C, Row], T]]:
    """For a codec's methods that read a row: what cannot be read raises DATA_CORRUPTED. `also`: what else says so."""

    unreadable: tuple[type[Exception], ...] = (*_UNREADABLE, *also)

    def decorate(read: Callable[[C, Row], T]) -> Callable[[C, Row], T]:
        @wraps(read)
        def checked(codec: C, row: Row, /) -> T:
            try:
                return read(codec, row)
            except unreadable as error:
                raise corrupted(what) from error

        return checked

    return decorate


class Codec:
    """Rows to values and back. `from_time` makes a column's value of an aware UTC time, `to_time` is its inverse."""

    def __init__(self, from_time: Callable[[datetime], Any], to_time: Callable[[Any], datetime]) -> None:
        self._column = from_time
        self._time = to_time

    def _optional_column(self, time: datetime | None) -> Any:
        return None if time is None else self._column(time)

    def _optional_time(self, value: Any) -> datetime | None:
        return None if value is None else self._time(value)

    # Nodes

    def node_revision_columns(self, node: NodeRevision) -> Columns:
        return {
            "node_id": node.node_id,
            "revision": node.revision,
            "kind": int(node.kind),
            "status": int(node.status),
            "content": node.content,
            "content_digest": node.content_digest,
            "surroundings": encode_json(list(node.surroundings)),
            "author": node.author,
            "occurred_at": self._column(node.occurred_at),
            "confidence": float(node.confidence),
            "importance": float(node.importance),
            "evidence": encode_evidence(node.evidence),
            "relations": encode_relations(node.relations),
            "labels": encode_json(node.labels),
            "created_at": self._column(node.created_at),
            "updated_at": self._column(node.updated_at),
            "committed_at": self._column(node.committed_at),
            "decided_by": node.decided_by,
            "valid_from": node.valid_from,
            "valid_to": node.valid_to,
        }

    @reads("node revision")
    def node_revision(self, row: Row) -> NodeRevision:
        surroundings, evidence, relations, labels = (
            row["surroundings"],
            row["evidence"],
            row["relations"],
            row["labels"],
        )
        return NodeRevision(
            node_id=row["node_id"],
            revision=row["revision"],
            kind=NodeKind(row["kind"]),
            status=NodeStatus(row["status"]),
            content=row["content"],
            content_digest=row["content_digest"],
            surroundings=() if surroundings == "[]" else tuple(_array(surroundings)),
            author=row["author"],
            occurred_at=self._time(row["occurred_at"]),
            confidence=row["confidence"],
            importance=row["importance"],
            evidence=() if evidence == "[]" else decode_evidence(evidence),
            relations=() if relations == "[]" else decode_relations(relations),
            labels=NO_LABELS if labels == "{}" else _object(labels),
            created_at=self._time(row["created_at"]),
            updated_at=self._time(row["updated_at"]),
            committed_at=self._time(row["committed_at"]),
            decided_by=row["decided_by"],
            valid_from=row["valid_from"],
            valid_to=row["valid_to"],
        )

    # Change sets and requests

    def change_set_columns(self, record: ChangeSetRecord) -> Columns:
        return {
            "namespace_revision": record.namespace_revision,
            "method": record.method,
            "request_id": record.request_id,
            "caller": record.caller,
            "note": record.note,
            "occurred_at": self._column(record.occurred_at),
            "committed_at": self._column(record.committed_at),
            "changes": encode_json([_change_json(change) for change in record.changes]),
            "chain_digest": record.chain_digest,
        }

    @reads("change set")
    def change_set(self, row: Row) -> ChangeSetRecord:
        return ChangeSetRecord(
            namespace_revision=row["namespace_revision"],
            method=row["method"],
            request_id=row["request_id"],
            caller=row["caller"],
            note=row["note"],
            occurred_at=self._time(row["occurred_at"]),
            committed_at=self._time(row["committed_at"]),
            changes=tuple(_change(item) for item in _array(row["changes"])),
            chain_digest=row["chain_digest"],
        )

    def request_columns(self, record: RequestRecord) -> Columns:
        return {
            "method": record.request.method,
            "key": record.request.key,
            "fingerprint": record.request.fingerprint,
            "result": encode_json(record.result),
            "namespace_revision": record.namespace_revision,
        }

    @reads("request")
    def request(self, row: Row) -> RequestRecord:
        return RequestRecord(
            request=RequestKey(method=row["method"], key=row["key"], fingerprint=row["fingerprint"]),
            result=_object(row["result"]),
            namespace_revision=row["namespace_revision"],
        )

    # Sessions

    def session_columns(self, session: Session) -> Columns:
        return {
            "session_id": session.session_id,
            "binding": encode_json(session.binding.canonical()),
            "binding_version": session.binding_version,
            "request_digest": session.request_digest,
            "state": int(session.state),
            "opened_by": session.opened_by,
            "opened_at": self._column(session.opened_at),
            "rebound_at": self._optional_column(session.rebound_at),
            "closed_at": self._optional_column(session.closed_at),
        }

    @reads("session")
    def session(self, row: Row) -> Session:
        return Session(
            session_id=row["session_id"],
            binding=_binding(row["binding"]),
            binding_version=row["binding_version"],
            request_digest=row["request_digest"],
            state=SessionState(row["state"]),
            opened_by=row["opened_by"],
            opened_at=self._time(row["opened_at"]),
            rebound_at=self._optional_time(row["rebound_at"]),
            closed_at=self._optional_time(row["closed_at"]),
        )

    def binding_columns(self, record: BindingRecord) -> Columns:
        return {
            "session_id": record.session_id,
            "binding_version": record.binding_version,
            "binding": encode_json(record.binding.canonical()),
            "bound_at": self._column(record.bound_at),
            "bound_by": record.bound_by,
        }

    @reads("binding")
    def binding(self, row: Row) -> BindingRecord:
        return BindingRecord(
            session_id=row["session_id"],
            binding_version=row["binding_version"],
            binding=_binding(row["binding"]),
            bound_at=self._time(row["bound_at"]),
            bound_by=row["bound_by"],
        )

    def run_columns(self, run: Run) -> Columns:
        return {
            "session_id": run.session_id,
            "run_id": run.run_id,
            "incarnation": run.incarnation,
            "host_instance": run.host_instance,
            "state": int(run.state),
            "sequence": run.sequence,
            "context_id": run.context_id,
            "begun_by": run.begun_by,
            "opened_at": self._column(run.opened_at),
            "active_at": self._column(run.active_at),
            "ended_at": self._optional_column(run.ended_at),
        }

    @reads("run")
    def run(self, row: Row) -> Run:
        return Run(
            session_id=row["session_id"],
            run_id=row["run_id"],
            incarnation=row["incarnation"],
            host_instance=row["host_instance"],
            state=RunState(row["state"]),
            sequence=row["sequence"],
            context_id=row["context_id"],
            begun_by=row["begun_by"],
            opened_at=self._time(row["opened_at"]),
            active_at=self._time(row["active_at"]),
            ended_at=self._optional_time(row["ended_at"]),
        )

    def context_columns(self, context: Context) -> Columns:
        return {
            "context_id": context.context_id,
            "session_id": context.session_id,
            "run_id": context.run_id,
            "incarnation": context.incarnation,
            "sequence": context.sequence,
        }

    @reads("context")
    def context(self, row: Row) -> Context:
        return Context(
            context_id=row["context_id"],
            session_id=row["session_id"],
            run_id=row["run_id"],
            incarnation=row["incarnation"],
            sequence=row["sequence"],
        )

    # Access

    def event_columns(self, event: AccessEvent) -> Columns:
        return {
            "event_id": event.event_id,
            "kind": int(event.kind),
            "session_id": event.session_id,
            "context_id": event.context_id,
            "node_id": event.node_id,
            "revision": event.revision,
            "caller": event.caller,
            "at": self._column(event.at),
        }

    @reads("access event")
    def event(self, row: Row) -> AccessEvent:
        return AccessEvent(
            event_id=row["event_id"],
            kind=AccessKind(row["kind"]),
            session_id=row["session_id"],
            context_id=row["context_id"],
            node_id=row["node_id"],
            revision=row["revision"],
            caller=row["caller"],
            at=self._time(row["at"]),
        )

    @reads("usage summary")
    def usage(self, row: Row) -> UsageSummary:
        """Of a query that groups events by node revision."""
        return UsageSummary(
            node_id=row["node_id"],
            revision=row["revision"],
            admissions=row["admissions"],
            uses=row["uses"],
            last_admitted_at=self._optional_time(row["last_admitted_at"]),
            last_used_at=self._optional_time(row["last_used_at"]),
        )


# JSON columns


def encode_json(value: JsonValue) -> str:
    """Compact JSON text. Mappings of any kind are objects."""
    if isinstance(value, Mapping):
        value = dict(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=dict)


def decode_json(text: str) -> Any:
    """The inverse of `encode_json`. Raises: ValueError, TypeError."""
    return json.loads(text)


def encode_evidence(evidence: Sequence[Evidence]) -> str:
    return encode_json(
        [
            {
                "uri": item.uri,
                "digest": item.digest,
                "kind": int(item.kind),
                "occurred_at": to_micros(item.occurred_at),
            }
            for item in evidence
        ]
    )


def decode_evidence(text: str) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            uri=item["uri"],
            digest=item["digest"],
            kind=EvidenceKind(item["kind"]),
            occurred_at=from_micros(item["occurred_at"]),
        )
        for item in _array(text)
    )


def encode_relations(relations: Sequence[Relation]) -> str:
    return encode_json([{"kind": int(item.kind), "node_id": item.node_id} for item in relations])


def decode_relations(text: str) -> tuple[Relation, ...]:
    return tuple(Relation(RelationKind(item["kind"]), item["node_id"]) for item in _array(text))


def _change_json(change: NodeChange) -> JsonObject:
    return {
        "node_id": change.node_id,
        "revision": change.revision,
        "content_digest": change.content_digest,
        "content_changed": change.content_changed,
        "revision_digest": change.revision_digest,
        "operations": list(change.operations),
        "status_before": None if change.status_before is None else int(change.status_before),
        "status_after": int(change.status_after),
    }


def _change(item: Mapping[str, Any]) -> NodeChange:
    before = item["status_before"]
    return NodeChange(
        node_id=item["node_id"],
        revision=item["revision"],
        content_digest=item["content_digest"],
        content_changed=item["content_changed"],
        revision_digest=item["revision_digest"],
        operations=tuple(item["operations"]),
        status_before=None if before is None else NodeStatus(before),
        status_after=NodeStatus(item["status_after"]),
    )


def _binding(text: str) -> SessionBinding:
    return decode_binding(_object(text))


def _array(text: str) -> list[Any]:
    value = decode_json(text)
    if not isinstance(value, list):
        raise TypeError("not an array")
    return value


def _object(text: str) -> dict[str, Any]:
    value = decode_json(text)
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value
