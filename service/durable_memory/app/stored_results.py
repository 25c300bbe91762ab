"""Results as requests keep them: JSON of ids, revisions and outcomes, and the way back.

A result that cannot be read is a fault of the store's content, so it fails loudly as DATA_CORRUPTED.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from durable_memory.domain.canonical import JsonObject, JsonValue
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeRef


def ref_json(ref: NodeRef) -> JsonObject:
    return {"node_id": ref.node_id, "revision": ref.revision}


def refs_json(refs: Iterable[NodeRef]) -> list[JsonValue]:
    return [ref_json(ref) for ref in refs]


def parse_ref(value: JsonValue) -> NodeRef:
    if not isinstance(value, Mapping):
        raise _unreadable("reference")
    return NodeRef(str(value["node_id"]), integer(value["revision"]))


def parse_refs(value: JsonValue) -> list[NodeRef]:
    return [parse_ref(item) for item in objects(value)]


def objects(value: JsonValue) -> list[JsonObject]:
    if not isinstance(value, list | tuple):
        raise _unreadable("list")
    items = [item for item in value if isinstance(item, Mapping)]
    if len(items) != len(value):
        raise _unreadable("list of objects")
    return items


def integer(value: JsonValue) -> int:
    if not isinstance(value, int):
        raise _unreadable("integer")
    return value


def number(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unreadable("number")
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
        raise _unreadable("error")
    return DomainError(
        Reason(str(value["reason"])), str(value["message"]), **{name: str(item) for name, item in metadata.items()}
    )


def _unreadable(what: str) -> DomainError:
    return DomainError(Reason.DATA_CORRUPTED, f"a stored result has no readable {what}", what=what)
