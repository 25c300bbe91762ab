"""A namespace view: everything that recall needs of one namespace, at exactly one revision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from durable_memory.app.views.index import LexicalIndex
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.node import NodeRevision, NodeStatus
from durable_memory.domain.state import ChangeToken, Head


@dataclass(frozen=True, slots=True)
class ViewKey:
    """What a view is valid for. Equal revisions of different histories, or of a rewritten one, differ."""

    history_id: str
    revision: int
    chain_digest: str

    @classmethod
    def of(cls, head: Head) -> ViewKey:
        return cls(head.history_id, head.revision, head.chain_digest)

    @property
    def token(self) -> ChangeToken:
        return ChangeToken(history_id=self.history_id, namespace_revision=self.revision)


@dataclass(frozen=True, slots=True)
class View:
    """Immutable: a recall that holds one is never disturbed by the next."""

    key: ViewKey
    index: LexicalIndex

    @property
    def nbytes(self) -> int:
        """An honest estimate of the memory that this view holds on to."""
        return self.index.nbytes

    def covers(self, head: Head) -> bool:
        """Whether an answer from this view sees everything that `head` has."""
        return self.key == ViewKey.of(head) or (
            self.key.history_id == head.history_id and self.key.revision > head.revision
        )

    def extended(self, head: Head, changed: Iterable[NodeRevision]) -> View:
        """The view at `head`, where `changed` are the current revisions committed since this one."""
        documents, removed = documents_of(changed)
        return View(ViewKey.of(head), self.index.apply(documents, removed))


def view_of(head: Head, nodes: Iterable[NodeRevision]) -> View:
    """The view at `head` from all nodes that were current then."""
    documents, _ = documents_of(nodes)
    return View(ViewKey.of(head), LexicalIndex.build(documents))


def documents_of(nodes: Iterable[NodeRevision]) -> tuple[list[IndexedDocument], list[str]]:
    """What is indexed of ACTIVE nodes, and the ids of all others."""
    documents: list[IndexedDocument] = []
    others: list[str] = []
    for node in nodes:
        if node.status is NodeStatus.ACTIVE:
            documents.append(document_of(node))
        else:
            others.append(node.node_id)
    return documents, others


def document_of(node: NodeRevision) -> IndexedDocument:
    return IndexedDocument(
        node_id=node.node_id,
        revision=node.revision,
        kind=int(node.kind),
        content=node.content,
        author=node.author,
        surroundings=node.surroundings,
        occurred_at=node.occurred_at,
        updated_at=node.updated_at,
        labels=node.labels,
    )
