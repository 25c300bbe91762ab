"""Texts of revisions that recalls have answered with, kept under a byte budget.

A committed revision never changes within its history, so what is here never grows stale; only its eviction and an
erasure remove it. A history id belongs to one namespace of one store.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.ports.store import Store

_FIXED_BYTES: Final = 900
"""What a revision takes beside its text: the object, its times, digest, and its place in the cache."""

_EVIDENCE_BYTES: Final = 400


class RevisionCache:
    """A least-recently-used cache in front of `Store.revisions`."""

    def __init__(self, store: Store, *, budget_bytes: int) -> None:
        self._store = store
        self._budget = budget_bytes
        self._bytes = 0
        self._held: OrderedDict[tuple[str, NodeRef], tuple[NodeRevision, int]] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Estimated bytes of memory."""
        return self._bytes

    async def get(self, namespace: Namespace, history_id: str, refs: Sequence[NodeRef]) -> list[NodeRevision]:
        """Exact revisions that are known to exist in this history of the namespace, in the order of `refs`.

        Without `valid_to`, the one thing of a revision that changes.

        Raises: DATA_CORRUPTED if the store does not have one of them.
        """
        found: dict[NodeRef, NodeRevision] = {}
        missing: list[NodeRef] = []
        for ref in refs:
            held = self._held.get((history_id, ref))
            if held is None:
                missing.append(ref)
            else:
                self._held.move_to_end((history_id, ref))
                found[ref] = held[0]
        if missing:
            for ref, node in (await self._store.revisions(namespace, missing)).items():
                found[ref] = replace(node, valid_to=None)
                self._hold((history_id, ref), found[ref])
        try:
            return [found[ref] for ref in refs]
        except KeyError:
            raise DomainError(Reason.DATA_CORRUPTED, "an indexed revision is not in the store") from None

    def _hold(self, key: tuple[str, NodeRef], node: NodeRevision) -> None:
        size = _size(node)
        if size > self._budget or key in self._held:
            return
        self._held[key] = (node, size)
        self._bytes += size
        while self._bytes > self._budget:
            _, (_, freed) = self._held.popitem(last=False)
            self._bytes -= freed


def _size(node: NodeRevision) -> int:
    texts = (node.node_id, node.content, node.author, *node.surroundings, *node.labels, *node.labels.values())
    parts = len(node.evidence) + len(node.relations) / 4
    return _FIXED_BYTES + sum(map(sys.getsizeof, texts)) + int(_EVIDENCE_BYTES * parts)
