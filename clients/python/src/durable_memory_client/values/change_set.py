"""Change sets: the operations that make one, and what it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from durable_memory_client.values.citation import Citation
from durable_memory_client.values.enums import NodeStatus, OperationKind, RelationKind, RevisionKind
from durable_memory_client.values.evidence import Evidence, evidence_to_proto
from durable_memory_client.values.memory import Draft, Node, Relation
from durable_memory_client.values.namespace import ChangeToken, Namespace
from durable_memory_client.values.times import to_datetime, to_timestamp
from durable_memory_client.values.wire import number_of, optional_number, stated
from durablememory.v1 import change_set_pb2, repository_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Creates a node: a CANDIDATE, or with MANUAL or VERIFICATION evidence in the draft an ACTIVE one."""

    memory: Draft
    node_id: str | None = None
    status: NodeStatus | None = None
    relations: Sequence[Relation] = ()
    created_at: datetime | None = None

    def to_proto(self) -> change_set_pb2.Operation:
        return change_set_pb2.Operation(
            create=stated(
                change_set_pb2.CreateOperation,
                node_id=self.node_id,
                status=optional_number(NodeStatus, self.status, "status"),
                memory=self.memory.to_proto(),
                relations=[relation.to_proto() for relation in self.relations],
                created_at=to_timestamp(self.created_at, "created_at"),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate:
    """Makes a CANDIDATE, CONFLICTED or ARCHIVED node ACTIVE, by new MANUAL or VERIFICATION evidence."""

    node_id: str
    expected_revision: int
    evidence: Sequence[Evidence]

    def to_proto(self) -> change_set_pb2.Operation:
        return change_set_pb2.Operation(
            activate=stated(
                change_set_pb2.ActivateOperation,
                node_id=self.node_id,
                expected_revision=self.expected_revision,
                evidence=evidence_to_proto(self.evidence),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Corroborate:
    """Adds evidence and changes nothing else."""

    node_id: str
    expected_revision: int
    evidence: Sequence[Evidence]

    def to_proto(self) -> change_set_pb2.Operation:
        return change_set_pb2.Operation(
            corroborate=stated(
                change_set_pb2.CorroborateOperation,
                node_id=self.node_id,
                expected_revision=self.expected_revision,
                evidence=evidence_to_proto(self.evidence),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """Changes content or annotations; what is None stays. `surroundings=()` removes them."""

    node_id: str
    expected_revision: int
    kind: RevisionKind = RevisionKind.CORRECTION
    content: str | None = None
    surroundings: Sequence[str] | None = None
    author: str | None = None
    occurred_at: datetime | None = None
    confidence: float | None = None
    importance: float | None = None
    set_labels: Mapping[str, str] = field(default_factory=dict)
    remove_labels: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()

    def to_proto(self) -> change_set_pb2.Operation:
        return change_set_pb2.Operation(
            revise=stated(
                change_set_pb2.ReviseOperation,
                node_id=self.node_id,
                expected_revision=self.expected_revision,
                kind=number_of(RevisionKind, self.kind, "kind"),
                content=self.content,
                surroundings=surroundings_to_proto(self.surroundings),
                author=self.author,
                occurred_at=to_timestamp(self.occurred_at, "occurred_at"),
                confidence=self.confidence,
                importance=self.importance,
                set_labels=self.set_labels,
                remove_labels=self.remove_labels,
                evidence=evidence_to_proto(self.evidence),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRelation:
    """Adds one end of a relation; the same change set must add the inverse. `relate` makes both."""

    node_id: str
    expected_revision: int
    relation: Relation

    def to_proto(self) -> change_set_pb2.Operation:
        return change_set_pb2.Operation(
            add_relation=stated(
                change_set_pb2.AddRelationOperation,
                node_id=self.node_id,
                expected_revision=self.expected_revision,
                relation=self.relation.to_proto(),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRelation:
    """Removes one end of a relation; the same change set must remove the inverse. `unrelate` makes both."""

    node_id: str
    expected_revision: int
    relation: Relation

    def to_proto(self) -> change_set_pb2.Operation:
        return change_set_pb2.Operation(
            remove_relation=stated(
                change_set_pb2.RemoveRelationOperation,
                node_id=self.node_id,
                expected_revision=self.expected_revision,
                relation=self.relation.to_proto(),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatus:
    """Moves a node to CONFLICTED, SUPERSEDED, ARCHIVED or TOMBSTONED."""

    node_id: str
    expected_revision: int
    status: NodeStatus
    evidence: Sequence[Evidence] = ()

    def to_proto(self) -> change_set_pb2.Operation:
        return change_set_pb2.Operation(
            set_status=stated(
                change_set_pb2.SetStatusOperation,
                node_id=self.node_id,
                expected_revision=self.expected_revision,
                status=number_of(NodeStatus, self.status, "status"),
                evidence=evidence_to_proto(self.evidence),
            )
        )


Operation: TypeAlias = Create | Activate | Corroborate | Revise | AddRelation | RemoveRelation | SetStatus

INVERSE: Final[Mapping[RelationKind, RelationKind]] = {
    RelationKind.SUPERSEDES: RelationKind.SUPERSEDED_BY,
    RelationKind.SUPERSEDED_BY: RelationKind.SUPERSEDES,
    RelationKind.CONFLICTS_WITH: RelationKind.CONFLICTS_WITH,
    RelationKind.RELATED_TO: RelationKind.RELATED_TO,
}
"""What a relation is, seen from its other end."""


def relate(node: Node, kind: RelationKind, other: Node) -> tuple[AddRelation, AddRelation]:
    """Both ends of a new relation between two nodes at their present revisions."""
    kind = RelationKind.given(kind, "kind")
    return (
        AddRelation(node_id=node.id, expected_revision=node.revision, relation=Relation(kind, other.id)),
        AddRelation(node_id=other.id, expected_revision=other.revision, relation=Relation(INVERSE[kind], node.id)),
    )


def unrelate(node: Node, kind: RelationKind, other: Node) -> tuple[RemoveRelation, RemoveRelation]:
    """Both ends of a relation that is to go, of two nodes at their present revisions."""
    kind = RelationKind.given(kind, "kind")
    return (
        RemoveRelation(node_id=node.id, expected_revision=node.revision, relation=Relation(kind, other.id)),
        RemoveRelation(node_id=other.id, expected_revision=other.revision, relation=Relation(INVERSE[kind], node.id)),
    )


def operations_to_proto(operations: Iterable[Operation]) -> list[change_set_pb2.Operation]:
    return [operation.to_proto() for operation in operations]


def surroundings_to_proto(texts: Sequence[str] | None) -> change_set_pb2.Surroundings | None:
    if isinstance(texts, str):
        raise TypeError("surroundings is a sequence of texts, not one text")
    return None if texts is None else stated(change_set_pb2.Surroundings, texts=texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """What a change set did to one node. `status_before` is None when it created the node."""

    citation: Citation
    revision_digest: str
    operations: tuple[OperationKind, ...]
    status_before: NodeStatus | None
    status_after: NodeStatus
    content_changed: bool

    @classmethod
    def from_proto(cls, message: change_set_pb2.NodeChange) -> NodeChange:
        before = message.HasField("status_before")
        return cls(
            citation=Citation.from_proto(message.citation),
            revision_digest=message.revision_digest,
            operations=tuple(map(OperationKind.from_number, message.operations)),
            status_before=NodeStatus.from_number(message.status_before) if before else None,
            status_after=NodeStatus.from_number(message.status_after),
            content_changed=message.content_changed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """One committed change set. It names what changed and never holds text."""

    namespace: Namespace
    namespace_revision: int
    method: str
    idempotency_key: str
    occurred_at: datetime
    committed_at: datetime
    caller: str
    changes: tuple[NodeChange, ...]
    note: str
    digest: str
    chain_digest: str

    @classmethod
    def from_proto(cls, message: change_set_pb2.ChangeSet) -> ChangeSet:
        return cls(
            namespace=Namespace.from_proto(message.namespace),
            namespace_revision=message.namespace_revision,
            method=message.method,
            idempotency_key=message.idempotency_key,
            occurred_at=to_datetime(message.occurred_at),
            committed_at=to_datetime(message.committed_at),
            caller=message.caller,
            changes=tuple(map(NodeChange.from_proto, message.changes)),
            note=message.note,
            digest=message.digest,
            chain_digest=message.chain_digest,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedChange:
    """One change of a watched namespace: where it took the namespace, what changed, and the revisions it made.

    `nodes` are there if the watch asked for them; where they would not fit into one message, without content.
    """

    change_token: ChangeToken
    change_set: ChangeSet
    nodes: tuple[Node, ...]

    @classmethod
    def from_proto(cls, message: repository_service_pb2.WatchedChange) -> WatchedChange:
        return cls(
            change_token=ChangeToken.from_proto(message.change_token),
            change_set=ChangeSet.from_proto(message.change_set),
            nodes=tuple(map(Node.from_proto, message.nodes)),
        )
