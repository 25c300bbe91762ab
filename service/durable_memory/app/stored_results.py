"""Results as requests keep them: JSON of ids, revisions, bindings and outcomes, never text, and the way back.

A result that cannot be read is a fault of the store's content, so it fails loudly as DATA_CORRUPTED.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from durable_memory.domain.canonical import JsonObject, JsonValue, parse_time_text, time_text
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeRef
from durable_memory.domain.session import Run, RunState, Session, SessionState, decode_binding


def ref_json(ref: NodeRef) -> JsonObject:
    return {"node_id": ref.node_id, "revision": ref.revision}


def parse_ref(value: JsonValue) -> NodeRef:
    if not isinstance(value, Mapping) or value.keys() != {"node_id", "revision"}:
        raise unreadable("reference")
    return NodeRef(str(value["node_id"]), integer(value["revision"]))


def objects(value: JsonValue) -> list[JsonObject]:
    if not isinstance(value, list | tuple):
        raise unreadable("list")
    return [mapping(item) for item in value]


def mapping(value: JsonValue) -> JsonObject:
    if not isinstance(value, Mapping):
        raise unreadable("object")
    return value


def integer(value: JsonValue) -> int:
    if not isinstance(value, int):
        raise unreadable("integer")
    return value


def number(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise unreadable("number")
    return float(value)


def error_json(error: DomainError) -> JsonObject:
    """A refusal of one item of a batch."""
    metadata: dict[str, JsonValue] = {
        name: value for name, value in error.metadata.items() if name != "operation_index"
    }
    return {"message": error.message, "metadata": metadata, "reason": error.reason.value}


def parse_error(value: JsonObject) -> DomainError:
    metadata = value["metadata"]
    if not isinstance(metadata, Mapping):
        raise unreadable("error")
    return DomainError(
        Reason(str(value["reason"])), str(value["message"]), **{name: str(item) for name, item in metadata.items()}
    )


def session_json(session: Session) -> JsonObject:
    """All of a session, so that a replay tells what the first attempt told, whatever became of it since."""
    return {
        "binding": session.binding.canonical(),
        "binding_version": session.binding_version,
        "closed_at": optional_time_json(session.closed_at),
        "opened_at": time_text(session.opened_at),
        "opened_by": session.opened_by,
        "rebound_at": optional_time_json(session.rebound_at),
        "request_digest": session.request_digest,
        "session_id": session.session_id,
        "state": session.state.name,
    }


def parse_session(value: JsonValue) -> Session:
    """Raises: BINDING_DRIFT as `decode_binding`."""
    stored = mapping(value)
    return Session(
        session_id=str(stored["session_id"]),
        binding=decode_binding(mapping(stored["binding"])),
        binding_version=integer(stored["binding_version"]),
        request_digest=str(stored["request_digest"]),
        state=SessionState[str(stored["state"])],
        opened_by=str(stored["opened_by"]),
        opened_at=parse_time_text(str(stored["opened_at"])),
        rebound_at=_optional_time(stored["rebound_at"]),
        closed_at=_optional_time(stored["closed_at"]),
    )


def run_json(run: Run) -> JsonObject:
    """All of a run."""
    return {
        "active_at": time_text(run.active_at),
        "begun_by": run.begun_by,
        "context_id": run.context_id,
        "ended_at": optional_time_json(run.ended_at),
        "host_instance": run.host_instance,
        "incarnation": run.incarnation,
        "opened_at": time_text(run.opened_at),
        "run_id": run.run_id,
        "sequence": run.sequence,
        "session_id": run.session_id,
        "state": run.state.name,
    }


def parse_run(value: JsonValue) -> Run:
    stored = mapping(value)
    return Run(
        session_id=str(stored["session_id"]),
        run_id=str(stored["run_id"]),
        incarnation=str(stored["incarnation"]),
        host_instance=str(stored["host_instance"]),
        state=RunState[str(stored["state"])],
        sequence=integer(stored["sequence"]),
        context_id=str(stored["context_id"]),
        begun_by=str(stored["begun_by"]),
        opened_at=parse_time_text(str(stored["opened_at"])),
        active_at=parse_time_text(str(stored["active_at"])),
        ended_at=_optional_time(stored["ended_at"]),
    )


def optional_time_json(time: datetime | None) -> str | None:
    return None if time is None else time_text(time)


def _optional_time(value: JsonValue) -> datetime | None:
    return None if value is None else parse_time_text(str(value))


def unreadable(what: str) -> DomainError:
    return DomainError(Reason.DATA_CORRUPTED, f"a stored result has no readable {what}", what=what)
