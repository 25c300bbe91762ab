"""A namespace view: everything that recall needs of one namespace, at exactly one revision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from durable_memory.app.views.index import LexicalIndex
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.node import NodeRevision, NodeStatus
from durable_memory.domain.state import ChangeToken, Head

_FIXED_BYTES: Final = 4_000
"""What a view takes beside its documents, so that empty ones count against a budget too."""


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

    def is_ahead_of(self, head: Head) -> bool:
        """Whether `head` is an earlier state of the same history."""
        return self.history_id == head.history_id and self.revision > head.revision


@dataclass(frozen=True, slots=True)
class View:
    """Immutable: a recall that holds one is never disturbed by the next."""

    key: ViewKey
    index: LexicalIndex

    @classmethod
    def built(cls, head: Head, documents: Iterable[IndexedDocument]) -> View:
        """The view at `head` from all documents that were ACTIVE then."""
        return cls(ViewKey.of(head), LexicalIndex.build(documents))

    @property
    def nbytes(self) -> int:
        """An honest estimate of the memory that this view holds on to."""
        return _FIXED_BYTES + self.index.nbytes

    def covers(self, head: Head) -> bool:
        """Whether an answer from this view sees everything that `head` has."""
        return self.key == ViewKey.of(head) or self.key.is_ahead_of(head)

    def extended(self, head: Head, changed: Iterable[NodeRevision]) -> View:
        """The view at `head`, where `changed` are the current revisions committed since this one."""
        documents: list[IndexedDocument] = []
        removed: list[str] = []
        for node in changed:
            if node.status is NodeStatus.ACTIVE:
                documents.append(document_of(node))
            else:
                removed.append(node.node_id)
        return View(ViewKey.of(head), self.index.apply(documents, removed))


def document_of(node: NodeRevision) -> IndexedDocument:
    """What is indexed of an ACTIVE node."""
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
