"""The records of an export, their canonical form, and the digest over all of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from datetime import datetime

from durable_memory.app.stored_results import integer, optional_time_json, run_json
from durable_memory.domain.access import AccessEvent
from durable_memory.domain.canonical import JsonObject, JsonValue, canonical_json, time_text
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRevision
from durable_memory.domain.session import BindingRecord, Run, Session
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.store import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportHeader:
    """Which namespace, where it stood, and the chain digest of its history up to there."""

    namespace: Namespace
    token: ChangeToken
    chain_digest: str
    exported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionExport:
    """A session with every binding that it has had, oldest first."""

    session: Session
    bindings: tuple[BindingRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferCounts:
    """How many of each an export holds."""

    nodes: int = 0
    node_revisions: int = 0
    change_sets: int = 0
    requests: int = 0
    sessions: int = 0
    runs: int = 0
    access_events: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFooter:
    """`digest` is 64 hexadecimal digits over all records between header and footer, in order."""

    counts: TransferCounts
    digest: str


ExportBody = NodeRevision | ChangeSetRecord | RequestRecord | SessionExport | Run | AccessEvent
ExportRecord = ExportHeader | ExportBody | ExportFooter


class RecordDigest:
    """Counts and hashes body records in the order of the stream."""

    def __init__(self) -> None:
        self._hasher = hashlib.sha256(b"durablememory.dev/export/v1\n")
        self._nodes: set[str] = set()
        self._counts = dict.fromkeys((item.name for item in fields(TransferCounts)), 0)

    def add(self, record: ExportRecord) -> None:
        """Raises: TypeError for a header or footer, which are not part of the body."""
        name, value = _canonical(record)
        self._hasher.update(canonical_json({name: value}) + b"\n")
        self._counts[name] += 1
        if isinstance(record, NodeRevision):
            self._nodes.add(record.node_id)

    def counts(self) -> TransferCounts:
        return TransferCounts(**{**self._counts, "nodes": len(self._nodes)})

    def hex(self) -> str:
        return self._hasher.hexdigest()


def counts_json(counts: TransferCounts) -> JsonObject:
    return {item.name: getattr(counts, item.name) for item in fields(TransferCounts)}


def parse_counts(value: JsonObject) -> TransferCounts:
    return TransferCounts(**{item.name: integer(value[item.name]) for item in fields(TransferCounts)})


def _canonical(record: ExportRecord) -> tuple[str, JsonObject]:
    match record:
        case NodeRevision():
            return "node_revisions", record.canonical()
        case ChangeSetRecord():
            return "change_sets", {"chain_digest": record.chain_digest, "digest": record.digest()}
        case RequestRecord():
            return "requests", _request(record)
        case SessionExport():
            return "sessions", _session(record)
        case Run():
            return "runs", run_json(record)
        case AccessEvent():
            return "access_events", _event(record)
        case ExportHeader() | ExportFooter():
            raise TypeError("headers and footers are not part of an export's body")


def _request(record: RequestRecord) -> JsonObject:
    return {
        "fingerprint": record.request.fingerprint,
        "key": record.request.key,
        "method": record.request.method,
        "namespace_revision": record.namespace_revision,
        "result": record.result,
    }


def _session(record: SessionExport) -> JsonObject:
    session = record.session
    bindings: list[JsonValue] = [
        {
            "binding": item.binding.canonical(),
            "binding_version": item.binding_version,
            "bound_at": time_text(item.bound_at),
            "bound_by": item.bound_by,
        }
        for item in record.bindings
    ]
    return {
        "bindings": bindings,
        "closed_at": optional_time_json(session.closed_at),
        "opened_at": time_text(session.opened_at),
        "opened_by": session.opened_by,
        "rebound_at": optional_time_json(session.rebound_at),
        "request_digest": session.request_digest,
        "session_id": session.session_id,
        "state": session.state.name,
    }


def _event(event: AccessEvent) -> JsonObject:
    return {
        "at": time_text(event.at),
        "caller": event.caller,
        "context_id": event.context_id,
        "event_id": event.event_id,
        "kind": event.kind.name,
        "node_id": event.node_id,
        "revision": event.revision,
        "session_id": event.session_id,
    }
