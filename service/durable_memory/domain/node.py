"""Nodes: one memory each, as a sequence of immutable revisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from durable_memory.domain.canonical import JsonObject, digest_hex, digest_json, time_text
from durable_memory.domain.evidence import Evidence

NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})

REJECTED_LABEL: Final = "dm.decision"
REJECTED_VALUE: Final = "rejected"
"""A tombstone with this server label was a candidate that somebody refused."""


class NodeKind(IntEnum):
    """Numbers equal the contract's and the stores'."""

    EPISODIC = 1
    SEMANTIC = 2
    PROCEDURAL = 3


class NodeStatus(IntEnum):
    """Numbers equal the contract's and the stores'."""

    CANDIDATE = 1
    ACTIVE = 2
    CONFLICTED = 3
    SUPERSEDED = 4
    ARCHIVED = 5
    TOMBSTONED = 6


class RelationKind(IntEnum):
    """Numbers equal the contract's and the stores'."""

    SUPERSEDES = 1
    SUPERSEDED_BY = 2
    CONFLICTS_WITH = 3
    RELATED_TO = 4

    @property
    def inverse(self) -> RelationKind:
        """The kind that the other end must have."""
        return _INVERSES.get(self, self)


_INVERSES: Final = {
    RelationKind.SUPERSEDES: RelationKind.SUPERSEDED_BY,
    RelationKind.SUPERSEDED_BY: RelationKind.SUPERSEDES,
}


@dataclass(frozen=True, slots=True, order=True)
class Relation:
    """A typed edge to another node of the same namespace."""

    kind: RelationKind
    node_id: str


@dataclass(frozen=True, slots=True)
class NodeRef:
    """One exact revision of one node."""

    node_id: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRevision:
    """One committed state of a node.

    `valid_from` is the namespace revision that committed it, `valid_to` the one that replaced it, `None` while it
    is current. Everything but `valid_to` never changes. Times are UTC with whole microseconds: `created_at` and
    `updated_at` are the source's, `committed_at` the server's. `decided_by` is the authenticated caller of the
    decision that made this revision, and empty where the revision is none.
    """

    node_id: str
    revision: int
    kind: NodeKind
    status: NodeStatus
    content: str
    content_digest: str
    surroundings: tuple[str, ...] = ()
    author: str = ""
    occurred_at: datetime
    confidence: float = 0.5
    importance: float = 0.5
    evidence: tuple[Evidence, ...] = ()
    relations: tuple[Relation, ...] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)
    created_at: datetime
    updated_at: datetime
    committed_at: datetime
    decided_by: str = ""
    valid_from: int
    valid_to: int | None = None

    @property
    def ref(self) -> NodeRef:
        return NodeRef(self.node_id, self.revision)

    @property
    def frozen(self) -> bool:
        """Whether neither content, evidence nor new relations can be added to it."""
        return self.status in (NodeStatus.SUPERSEDED, NodeStatus.TOMBSTONED)

    @property
    def active_bytes(self) -> int:
        """UTF-8 bytes that count against the namespace's budget while this revision is current: 0 unless ACTIVE."""
        if self.status is not NodeStatus.ACTIVE:
            return 0
        return sum(len(text.encode()) for text in (self.content, self.author, *self.surroundings))

    @property
    def rejected(self) -> bool:
        """Whether this is the tombstone of a refused candidate."""
        return self.status is NodeStatus.TOMBSTONED and self.labels.get(REJECTED_LABEL) == REJECTED_VALUE

    def canonical(self) -> JsonObject:
        """The JSON value that digests, snapshots and exports of this revision are made of; without `valid_to`."""
        return {
            "author": self.author,
            "committed_at": time_text(self.committed_at),
            "confidence": self.confidence,
            "content": self.content,
            "content_digest": self.content_digest,
            "created_at": time_text(self.created_at),
            "decided_by": self.decided_by,
            "evidence": [item.canonical() for item in self.evidence],
            "importance": self.importance,
            "kind": self.kind.name,
            "labels": dict(self.labels),
            "node_id": self.node_id,
            "occurred_at": time_text(self.occurred_at),
            "relations": [{"kind": relation.kind.name, "node_id": relation.node_id} for relation in self.relations],
            "revision": self.revision,
            "status": self.status.name,
            "surroundings": list(self.surroundings),
            "updated_at": time_text(self.updated_at),
            "valid_from": self.valid_from,
        }

    def digest(self) -> str:
        """SHA-256 of the canonical form: what change-set digests, and so the namespace's chain, are made of."""
        return digest_json("node-revision/v1", self.canonical())


def content_digest(content: str) -> str:
    """The digest that citations carry: domain-separated SHA-256 of the content's UTF-8, 64 hexadecimal digits."""
    return digest_hex("node-content/v1", content.encode())
