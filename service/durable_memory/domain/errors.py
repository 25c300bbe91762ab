"""What can go wrong, as one exception type with a reason out of a closed list.

The status code of each reason and whether the change *definitely did not happen* are in `rpc/errors.py`, the one
place where an error becomes a gRPC status. Metadata holds every value that the message mentions: ids, revisions,
bounds and field names, and never memory text, queries or credentials.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """The names of `durablememory.v1.ErrorReason` without their prefix; a test keeps the two lists equal."""

    INVALID_FIELD = "INVALID_FIELD"
    INVALID_PAGE_TOKEN = "INVALID_PAGE_TOKEN"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    DIMENSION_MISMATCH = "DIMENSION_MISMATCH"
    CREDENTIALS_INVALID = "CREDENTIALS_INVALID"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    NODE_NOT_FOUND = "NODE_NOT_FOUND"
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    REVISION_NOT_FOUND = "REVISION_NOT_FOUND"
    NODE_ALREADY_EXISTS = "NODE_ALREADY_EXISTS"
    REVISION_CONFLICT = "REVISION_CONFLICT"
    SESSION_CLOSED = "SESSION_CLOSED"
    RUN_ENDED = "RUN_ENDED"
    RUN_NOT_FOUND = "RUN_NOT_FOUND"
    NODE_FROZEN = "NODE_FROZEN"
    CHANGE_SET_EMPTY = "CHANGE_SET_EMPTY"
    EVENT_ID_REUSED = "EVENT_ID_REUSED"
    HISTORY_COMPACTED = "HISTORY_COMPACTED"
    CONTENT_ERASED = "CONTENT_ERASED"
    NAMESPACE_TOO_LARGE = "NAMESPACE_TOO_LARGE"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    REQUEST_IN_PROGRESS = "REQUEST_IN_PROGRESS"
    EVIDENCE_REQUIRED = "EVIDENCE_REQUIRED"
    INVALID_TRANSITION = "INVALID_TRANSITION"
    RELATION_INVALID = "RELATION_INVALID"
    BINDING_DRIFT = "BINDING_DRIFT"
    RUN_IDENTITY_CONFLICT = "RUN_IDENTITY_CONFLICT"
    SEMANTIC_UNAVAILABLE = "SEMANTIC_UNAVAILABLE"
    INDEX_REVISION_CONFLICT = "INDEX_REVISION_CONFLICT"
    LEASE_HELD = "LEASE_HELD"
    LEASE_FENCED = "LEASE_FENCED"
    SOURCE_DRIFT = "SOURCE_DRIFT"
    CONSISTENCY_UNSUPPORTED = "CONSISTENCY_UNSUPPORTED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"
    OVERLOADED = "OVERLOADED"
    SNAPSHOT_TOO_LARGE = "SNAPSHOT_TOO_LARGE"
    NOT_SERVING = "NOT_SERVING"
    DEPENDENCY_UNAVAILABLE = "DEPENDENCY_UNAVAILABLE"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    CANCELLED = "CANCELLED"
    DATA_CORRUPTED = "DATA_CORRUPTED"
    INTERNAL = "INTERNAL"
    HISTORY_CHANGED = "HISTORY_CHANGED"


MetadataValue = str | int | float | bool
"""What metadata may hold before it becomes text; a `None` is left out."""


def _as_text(value: MetadataValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class DomainError(Exception):
    """A refusal or failure with a reason that a program can act on.

    `metadata` maps names to text and is part of the contract: REVISION_CONFLICT carries `node_id`, `expected` and
    `actual`, INVALID_FIELD carries `field`, and so on (the table in the proto's `ErrorReason`).
    """

    def __init__(self, reason: Reason, message: str, /, **metadata: MetadataValue | None) -> None:
        super().__init__(message)
        self.reason: Final = reason
        self.message: Final = message
        self.metadata: Final[dict[str, str]] = {
            name: _as_text(value) for name, value in metadata.items() if value is not None
        }

    def with_metadata(self, **metadata: MetadataValue | None) -> DomainError:
        """The same refusal with more metadata; what is already there wins."""
        return DomainError(self.reason, self.message, **{**metadata, **self.metadata})

    def __repr__(self) -> str:
        return f"DomainError({self.reason.value}, {self.message!r}, {self.metadata!r})"


def invalid_field(field: str, problem: str, /, **metadata: MetadataValue | None) -> DomainError:
    """INVALID_FIELD: `field` is a path as the contract spells it, for example `operations[3].create.content`."""
    return DomainError(Reason.INVALID_FIELD, f"{field} {problem}", field=field, **metadata)


def limit_exceeded(field: str, limit: int, actual: int, unit: str) -> DomainError:
    """LIMIT_EXCEEDED: `field` has `actual` where at most `limit` of `unit` (bytes, items, ...) are allowed."""
    return DomainError(
        Reason.LIMIT_EXCEEDED,
        f"{field} has {actual} {unit}; the limit is {limit}",
        field=field,
        limit=limit,
        actual=actual,
        unit=unit,
    )


def node_not_found(node_id: str, /, **metadata: MetadataValue | None) -> DomainError:
    return DomainError(Reason.NODE_NOT_FOUND, f"node {node_id} does not exist", node_id=node_id, **metadata)


def revision_conflict(node_id: str, expected: int, actual: int, /, **metadata: MetadataValue | None) -> DomainError:
    """REVISION_CONFLICT on a node: the caller named `expected`, the node stands at `actual`."""
    return DomainError(
        Reason.REVISION_CONFLICT,
        f"node {node_id} is at revision {actual}, not {expected}",
        node_id=node_id,
        expected=expected,
        actual=actual,
        **metadata,
    )


def namespace_revision_conflict(expected: int, actual: int) -> DomainError:
    """REVISION_CONFLICT on the namespace itself; it carries no node id."""
    return DomainError(
        Reason.REVISION_CONFLICT,
        f"the namespace is at revision {actual}, not {expected}",
        expected=expected,
        actual=actual,
    )


def namespace_not_empty(actual: int) -> DomainError:
    """REVISION_CONFLICT of an import: it expects a namespace that nobody wrote to, not even a session."""
    return DomainError(Reason.REVISION_CONFLICT, "the namespace holds something already", expected=0, actual=actual)


def idempotency_key_reused(method: str, key: str) -> DomainError:
    return DomainError(
        Reason.IDEMPOTENCY_KEY_REUSED,
        f"request id {key} was used for another {method} command",
        method=method,
        request_id=key,
    )


def dependency_unavailable(problem: str) -> DomainError:
    """DEPENDENCY_UNAVAILABLE of the store: nothing was written. `problem` names no host, path or statement."""
    return DomainError(Reason.DEPENDENCY_UNAVAILABLE, problem, dependency="store")


def outcome_unknown() -> DomainError:
    """OUTCOME_UNKNOWN: the store failed at or after the commit."""
    return DomainError(
        Reason.OUTCOME_UNKNOWN, "the store failed during or after commit; repeat with the same request id"
    )


def not_serving(state: str, problem: str, /, **metadata: MetadataValue | None) -> DomainError:
    """NOT_SERVING: `state` is a word for programs, for example `closed` or `schema`."""
    return DomainError(Reason.NOT_SERVING, problem, state=state, **metadata)
