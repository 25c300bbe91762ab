"""How many ACTIVE memories the index does not cover: those that changed since it was made and whose text is new."""

from __future__ import annotations

from typing import Final

from durable_memory.app.semantic.vector_view import VectorView
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeStatus
from durable_memory.domain.semantic.embedded_text import embedded_text, text_digest
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.store import Store

_PAGE: Final = 1_000


async def count_unindexed(
    store: Store, namespace: Namespace, token: ChangeToken, active_count: int, view: VectorView
) -> int:
    """As of `token`. A publication covers all that was ACTIVE at its source, so only what came later is looked at."""
    manifest = view.manifest
    if manifest.source_history_id != token.history_id:
        return active_count
    if manifest.source_revision >= token.namespace_revision:
        return 0
    count = 0
    after = ""
    while True:
        nodes = await store.changed_nodes(
            namespace,
            after_revision=manifest.source_revision,
            at_revision=token.namespace_revision,
            after_node_id=after,
            limit=_PAGE,
        )
        for node in nodes:
            if node.status is NodeStatus.ACTIVE:
                found = view.find(node.node_id)
                count += found is None or found[1].text_digest != text_digest(embedded_text(node))
        if len(nodes) < _PAGE:
            return count
        after = nodes[-1].node_id
