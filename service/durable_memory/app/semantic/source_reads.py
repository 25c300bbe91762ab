"""Reading what an index is made of: the ACTIVE nodes of a namespace, and what has changed since a revision."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRevision, NodeStatus
from durable_memory.domain.state import Head
from durable_memory.ports.semantic_records import Receipt
from durable_memory.ports.store import NodeSelection, Store

_PAGE: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The state of a namespace that an index is made of: the `active_count` nodes that are ACTIVE at `revision`."""

    history_id: str
    revision: int
    active_count: int

    @classmethod
    def of(cls, head: Head) -> Self:
        return cls(history_id=head.history_id, revision=head.revision, active_count=head.active_count)

    @classmethod
    def of_receipt(cls, receipt: Receipt) -> Self:
        """What the index was made of when the receipt was written."""
        return cls(
            history_id=receipt.source_history_id,
            revision=receipt.source_revision,
            active_count=receipt.active_count,
        )


async def active_nodes(store: Store, namespace: Namespace, revision: int) -> AsyncIterator[Sequence[NodeRevision]]:
    """All that is ACTIVE at this namespace revision, page by page."""
    after = ""
    while True:
        page = await store.list_nodes(
            namespace,
            NodeSelection(statuses=frozenset({NodeStatus.ACTIVE})),
            at_revision=revision,
            after_node_id=after,
            limit=_PAGE,
        )
        yield page
        if len(page) < _PAGE:
            return
        after = page[-1].node_id


async def changed_nodes(store: Store, namespace: Namespace, after_revision: int, head: Head) -> list[NodeRevision]:
    """The revisions at `head` of the nodes that changed after `after_revision`."""
    nodes: list[NodeRevision] = []
    after = ""
    while True:
        page = await store.changed_nodes(
            namespace,
            after_revision=after_revision,
            at_revision=head.revision,
            after_node_id=after,
            limit=_PAGE,
        )
        nodes.extend(page)
        if len(page) < _PAGE:
            return nodes
        after = page[-1].node_id
