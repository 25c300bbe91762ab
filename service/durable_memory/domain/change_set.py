"""Change sets: the atomic, idempotent, revision-checked unit of mutation in one namespace.

The operations here are decoded and checked for form: text is normalised, bounds hold, ids are names. Whether they
may happen is decided against the namespace's state by `domain/staging.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import ClassVar

from durable_memory.domain.canonical import JsonObject, digest_hex, digest_json, time_text
from durable_memory.domain.evidence import EvidenceInput
from durable_memory.domain.node import NodeKind, NodeStatus, Relation


class ReviseMode(IntEnum):
    """Why a text changed; kept with the change set. Numbers equal the contract's."""

    REFINEMENT = 1
    CORRECTION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraft:
    """What a new node is made of. `occurred_at` defaults to its earliest evidence, then to the change set's time."""

    kind: NodeKind
    content: str
    surroundings: tuple[str, ...] = ()
    author: str = ""
    occurred_at: datetime | None = None
    confidence: float = 0.5
    importance: float = 0.5
    evidence: tuple[EvidenceInput, ...] = ()
    relations: tuple[Relation, ...] = ()
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """A new node, CANDIDATE or ACTIVE. Its relations' other ends must be written by the same change set.

    `created_at` is the source's; absent, it is the change set's time.
    """

    name: ClassVar[str] = "create"
    node_id: str
    status: NodeStatus
    draft: NodeDraft
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate:
    """To ACTIVE from CANDIDATE, CONFLICTED or ARCHIVED, with new decision evidence."""

    name: ClassVar[str] = "activate"
    node_id: str
    expected_revision: int
    evidence: tuple[EvidenceInput, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corroborate:
    """More evidence for a node as it stands."""

    name: ClassVar[str] = "corroborate"
    node_id: str
    expected_revision: int
    evidence: tuple[EvidenceInput, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """Other text or annotations for a node, with evidence; `None` leaves a field as it is.

    On an ACTIVE node this is a decision: it needs the activator role and new decision evidence.
    """

    name: ClassVar[str] = "revise"
    node_id: str
    expected_revision: int
    mode: ReviseMode
    content: str | None = None
    surroundings: tuple[str, ...] | None = None
    author: str | None = None
    occurred_at: datetime | None = None
    confidence: float | None = None
    importance: float | None = None
    set_labels: Mapping[str, str]
    remove_labels: frozenset[str] = frozenset()
    evidence: tuple[EvidenceInput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRelation:
    """One end of an edge; the same change set must write the inverse on the other node."""

    name: ClassVar[str] = "add_relation"
    node_id: str
    expected_revision: int
    relation: Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRelation:
    """One end of an edge goes; the same change set must remove the inverse. Allowed on frozen nodes."""

    name: ClassVar[str] = "remove_relation"
    node_id: str
    expected_revision: int
    relation: Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatus:
    """To CONFLICTED, SUPERSEDED, ARCHIVED or TOMBSTONED. ACTIVE is reached by `Activate` alone."""

    name: ClassVar[str] = "set_status"
    node_id: str
    expected_revision: int
    status: NodeStatus
    evidence: tuple[EvidenceInput, ...] = ()


Operation = Create | Activate | Corroborate | Revise | AddRelation | RemoveRelation | SetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """A command: all of its operations happen, or none.

    `occurred_at` absent: the server's time (see `staging`). `expected_namespace_revision` absent: not compared.
    """

    operations: tuple[Operation, ...]
    occurred_at: datetime | None = None
    expected_namespace_revision: int | None = None
    note: str = ""

    def node_ids(self) -> frozenset[str]:
        """Every node that staging has to see: those written and those that relations point at."""
        return frozenset(self._named())

    def offered_evidence(self) -> frozenset[tuple[str, str, str]]:
        """(node id, uri, digest) of all evidence offered, to be looked up in the nodes' histories."""
        return frozenset(
            (operation.node_id, item.uri, item.digest)
            for operation in self.operations
            for item in evidence_of(operation)
        )

    def _named(self) -> Iterator[str]:
        for operation in self.operations:
            yield operation.node_id
            if isinstance(operation, AddRelation | RemoveRelation):
                yield operation.relation.node_id
            elif isinstance(operation, Create):
                yield from (relation.node_id for relation in operation.draft.relations)


def evidence_of(operation: Operation) -> tuple[EvidenceInput, ...]:
    """The evidence that an operation offers; relations offer none."""
    match operation:
        case Create():
            return operation.draft.evidence
        case Activate() | Corroborate() | Revise() | SetStatus():
            return operation.evidence
        case AddRelation() | RemoveRelation():
            return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """What one change set did to one node. `status_before` is `None` for a new node."""

    node_id: str
    revision: int
    content_digest: str
    content_changed: bool
    revision_digest: str
    operations: tuple[str, ...]
    status_before: NodeStatus | None
    status_after: NodeStatus

    def canonical(self) -> JsonObject:
        return {
            "content_changed": self.content_changed,
            "content_digest": self.content_digest,
            "node_id": self.node_id,
            "operations": list(self.operations),
            "revision": self.revision,
            "revision_digest": self.revision_digest,
            "status_after": self.status_after.name,
            "status_before": self.status_before.name if self.status_before is not None else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSetRecord:
    """A committed change set, in the order of `namespace_revision`, chained to the one before it.

    `method` and `request_id` are the RPC and the idempotency key that made it, `caller` the authenticated identity.
    `chain_digest` covers everything up to and including this one, so two histories that differ anywhere differ here.
    """

    namespace_revision: int
    method: str
    request_id: str
    caller: str
    note: str
    occurred_at: datetime
    committed_at: datetime
    changes: tuple[NodeChange, ...]
    chain_digest: str

    def digest(self) -> str:
        """SHA-256 over everything but the chain digest."""
        return digest_json(
            "change-set/v1",
            {
                "caller": self.caller,
                "changes": [change.canonical() for change in self.changes],
                "committed_at": time_text(self.committed_at),
                "method": self.method,
                "namespace_revision": self.namespace_revision,
                "note": self.note,
                "occurred_at": time_text(self.occurred_at),
                "request_id": self.request_id,
            },
        )


CHAIN_START = "0" * 64
"""The chain digest of a namespace at revision 0."""


def chain(previous: str, namespace_revision: int, change_set_digest: str) -> str:
    """The chain digest after a change set: SHA-256 over the previous one, the new revision and the set's digest."""
    return digest_hex(
        "change-set-chain/v1", previous.encode(), str(namespace_revision).encode(), change_set_digest.encode()
    )


def names_of(operations: Sequence[Operation]) -> tuple[str, ...]:
    """The operations' names in their order, for `NodeChange.operations`."""
    return tuple(operation.name for operation in operations)
