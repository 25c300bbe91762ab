"""Memories: what callers state, and what the service keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypedDict, Unpack

from durable_memory_client.values.citation import Citation
from durable_memory_client.values.enums import NodeKind, NodeStatus, RelationKind
from durable_memory_client.values.evidence import Evidence, evidence_to_proto
from durable_memory_client.values.namespace import ChangeToken
from durable_memory_client.values.times import time_of, to_datetime, to_timestamp
from durable_memory_client.values.wire import number_of, stated
from durablememory.v1 import memory_service_pb2, node_pb2


class DraftFields(TypedDict, total=False):
    """The fields of a `Draft` beside its content, as keyword arguments."""

    kind: NodeKind
    evidence: Sequence[Evidence]
    surroundings: Sequence[str]
    author: str
    occurred_at: datetime | None
    confidence: float | None
    importance: float | None
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What to remember.

    `content`: 1..65,536 UTF-8 bytes. `surroundings`: up to 4 texts that stood around it at its source, nearest
    first; they make it easier to find. `author`: who said it. `occurred_at`: when what it tells of happened; default:
    the earliest evidence, else now. `confidence`, `importance`: 0..1, annotations that authorise nothing.
    """

    content: str
    kind: NodeKind = NodeKind.SEMANTIC
    evidence: Sequence[Evidence] = ()
    surroundings: Sequence[str] = ()
    author: str = ""
    occurred_at: datetime | None = None
    confidence: float | None = None
    importance: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def to_proto(self) -> node_pb2.MemoryDraft:
        return stated(
            node_pb2.MemoryDraft,
            kind=number_of(NodeKind, self.kind, "kind"),
            content=self.content,
            surroundings=_texts(self.surroundings, "surroundings"),
            author=self.author,
            occurred_at=to_timestamp(self.occurred_at, "occurred_at"),
            confidence=self.confidence,
            importance=self.importance,
            labels=self.labels,
            evidence=evidence_to_proto(self.evidence),
        )


def draft_of(memory: str | Draft, **fields: Unpack[DraftFields]) -> Draft:
    """The draft that is meant: text with keyword arguments, or a draft with some of its fields replaced."""
    return Draft(content=memory, **fields) if isinstance(memory, str) else replace(memory, **fields)


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed link to another node, seen from the node that holds it."""

    kind: RelationKind
    node_id: str

    @classmethod
    def from_proto(cls, message: node_pb2.Relation) -> Relation:
        return cls(RelationKind.from_number(message.kind), message.node_id)

    def to_proto(self) -> node_pb2.Relation:
        return stated(node_pb2.Relation, kind=number_of(RelationKind, self.kind, "kind"), node_id=self.node_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One revision of one memory, as the contract's Node.

    `content` is untrusted text: show it to a model as history (`render`), never as instructions. It is empty where
    the call asked to omit content; `surroundings` are there only where the call asked for them. `superseded_at` is
    the namespace revision that replaced this revision, None while it is the current one.
    """

    id: str
    revision: int
    kind: NodeKind
    status: NodeStatus
    content: str
    surroundings: tuple[str, ...]
    content_digest: str
    author: str
    occurred_at: datetime | None
    confidence: float
    importance: float
    evidence: tuple[Evidence, ...]
    relations: tuple[Relation, ...]
    labels: Mapping[str, str] = field(hash=False)
    created_at: datetime
    updated_at: datetime
    committed_at: datetime
    decided_by: str
    citation: Citation
    valid_from: int
    superseded_at: int | None

    @classmethod
    def from_proto(cls, message: node_pb2.Node) -> Node:
        replaced = message.HasField("superseded_at_namespace_revision")
        return cls(
            id=message.id,
            revision=message.revision,
            kind=NodeKind.from_number(message.kind),
            status=NodeStatus.from_number(message.status),
            content=message.content,
            surroundings=tuple(message.surroundings),
            content_digest=message.content_digest,
            author=message.author,
            occurred_at=time_of(message, "occurred_at"),
            confidence=message.confidence,
            importance=message.importance,
            evidence=tuple(map(Evidence.from_proto, message.evidence)),
            relations=tuple(map(Relation.from_proto, message.relations)),
            labels=dict(message.labels),
            created_at=to_datetime(message.created_at),
            updated_at=to_datetime(message.updated_at),
            committed_at=to_datetime(message.committed_at),
            decided_by=message.decided_by,
            citation=Citation.from_proto(message.citation),
            valid_from=message.valid_from_namespace_revision,
            superseded_at=message.superseded_at_namespace_revision if replaced else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedMemory:
    """What a citation names, and what has become of it.

    `is_current`: whether the node still says exactly this. `current_status` may have changed all the same.
    """

    node: Node
    current_citation: Citation
    current_status: NodeStatus
    change_token: ChangeToken

    @property
    def citation(self) -> Citation:
        return self.node.citation

    @property
    def content(self) -> str:
        return self.node.content

    @property
    def is_current(self) -> bool:
        return self.node.superseded_at is None

    @classmethod
    def from_proto(cls, message: memory_service_pb2.GetMemoryResponse) -> CitedMemory:
        return cls(
            node=Node.from_proto(message.node),
            current_citation=Citation.from_proto(message.current_citation),
            current_status=NodeStatus.from_number(message.current_status),
            change_token=ChangeToken.from_proto(message.change_token),
        )


def _texts(texts: Iterable[str], name: str) -> list[str]:
    if isinstance(texts, str):
        raise TypeError(f"{name} is a sequence of texts, not one text")
    return list(texts)
