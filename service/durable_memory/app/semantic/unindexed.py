"""How many ACTIVE memories the index does not cover: new texts since it was made, and texts that cannot be embedded."""

from __future__ import annotations

from typing import Final

from durable_memory.app.semantic.vector_view import VectorView
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRevision, NodeStatus
from durable_memory.domain.semantic.embedded_text import embedded_text, text_digest
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.store import Store

_PAGE: Final = 1_000


async def count_unindexed(
    store: Store, namespace: Namespace, token: ChangeToken, active_count: int, view: VectorView
) -> int:
    """As of `token`: all but those whose vector still counts.

    A publication covers its source, but for texts that the provider refuses; so what changed later is looked at, and of
    that only what has a vector.
    """
    manifest = view.manifest
    if manifest.source_history_id != token.history_id:
        return active_count
    outdated = 0
    after = ""
    while manifest.source_revision < token.namespace_revision:
        nodes = await store.changed_nodes(
            namespace,
            after_revision=manifest.source_revision,
            at_revision=token.namespace_revision,
            after_node_id=after,
            limit=_PAGE,
        )
        outdated += sum(is_outdated(node, view) for node in nodes)
        if len(nodes) < _PAGE:
            break
        after = nodes[-1].node_id
    return active_count - (manifest.live_count - outdated)


def is_outdated(node: NodeRevision, view: VectorView) -> bool:
    """Whether the index has a vector of the node that does not count any more."""
    found = view.find(node.node_id)
    return found is not None and (
        node.status is not NodeStatus.ACTIVE or found[1].text_digest != text_digest(embedded_text(node))
    )
