"""Access events: which exact revision entered a model's input, and which was used. Two facts, two events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from durable_memory.domain.canonical import digest_hex
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeRef, NodeRevision, NodeStatus


class AccessKind(IntEnum):
    """Numbers equal the contract's and the stores'."""

    ADMISSION = 1
    USE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEvent:
    """One admission or use. `at` is the server's time; everything else is the event's body."""

    event_id: str
    kind: AccessKind
    session_id: str
    context_id: str
    node_id: str
    revision: int
    caller: str
    at: datetime

    @property
    def ref(self) -> NodeRef:
        return NodeRef(self.node_id, self.revision)

    def same_body(self, other: AccessEvent) -> bool:
        """Whether both say the same; when and by whose credential it was said does not count."""
        return (self.kind, self.session_id, self.context_id, self.ref) == (
            other.kind,
            other.session_id,
            other.context_id,
            other.ref,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessItem:
    """What a caller wants recorded of one revision; an absent event id is derived, so a repeat is the same event.

    `citation` is how the caller named the revision, if it did so by one: then the text has to be the cited one.
    """

    ref: NodeRef
    event_id: str | None = None
    citation: Citation | None = None

    def settled_event_id(self, kind: AccessKind, context_id: str) -> str:
        if self.event_id is not None:
            return self.event_id
        return digest_hex(
            "access-event/v1",
            kind.name.encode(),
            context_id.encode(),
            self.ref.node_id.encode(),
            str(self.ref.revision).encode(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSummary:
    """Events of one node revision. Times are the server's, `None` where there is no such event."""

    node_id: str
    revision: int
    admissions: int
    uses: int
    last_admitted_at: datetime | None
    last_used_at: datetime | None


def check_admissible(ref: NodeRef, current: Mapping[str, NodeRevision]) -> None:
    """Only the current ACTIVE revision may enter a context.

    Raises: NODE_NOT_FOUND, REVISION_CONFLICT (expected, actual), INVALID_TRANSITION (status) for a current revision
    that is not ACTIVE.
    """
    node = current.get(ref.node_id)
    if node is None:
        raise DomainError(Reason.NODE_NOT_FOUND, f"node {ref.node_id} does not exist", node_id=ref.node_id)
    if node.revision != ref.revision:
        raise DomainError(
            Reason.REVISION_CONFLICT,
            f"node {ref.node_id} is at revision {node.revision}, not {ref.revision}",
            node_id=ref.node_id,
            expected=ref.revision,
            actual=node.revision,
        )
    if node.status is not NodeStatus.ACTIVE:
        raise DomainError(
            Reason.INVALID_TRANSITION,
            f"node {ref.node_id} is {node.status.name}; only ACTIVE memories enter a context",
            node_id=ref.node_id,
            status=node.status.name,
        )


def event_id_reused(event_id: str) -> DomainError:
    return DomainError(Reason.EVENT_ID_REUSED, f"event {event_id} was recorded with another body", event_id=event_id)
