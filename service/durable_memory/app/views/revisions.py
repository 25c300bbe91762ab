"""Texts of revisions that recalls have answered with, kept under a byte budget.

A committed revision never changes within its history, so what is here never grows stale; only its eviction and an
erasure remove it. A history id belongs to one namespace of one store.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.ports.store import Store

_FIXED_BYTES: Final = 1_300
"""What a revision takes beside its text: the object, its times, digest, encoded citation, and place in the cache."""

_EVIDENCE_BYTES: Final = 400


@dataclass(slots=True)
class HeldRevision:
    """A revision in the cache, and what is made of it once for all its answers.

    Attributes:
        node: without `valid_to`, the one thing of a revision that changes.
        encoded: a place for the caller's own form of the text, which has to go when the text goes.
    """

    node: NodeRevision
    size: int = field(compare=False)
    encoded: bytes | None = field(default=None, compare=False)


class RevisionCache:
    """A least-recently-used cache in front of `Store.revisions`."""

    def __init__(self, store: Store, *, budget_bytes: int) -> None:
        self._store = store
        self._budget = budget_bytes
        self._bytes = 0
        self._held: OrderedDict[tuple[str, str, int], HeldRevision] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Estimated bytes of memory."""
        return self._bytes

    async def get(self, namespace: Namespace, history_id: str, refs: Sequence[NodeRef]) -> list[NodeRevision]:
        """What `held` has, for who only reads it."""
        return [held.node for held in await self.held(namespace, history_id, refs)]

    async def held(self, namespace: Namespace, history_id: str, refs: Sequence[NodeRef]) -> list[HeldRevision]:
        """Exact revisions that are known to exist in this history of the namespace, in the order of `refs`.

        Raises: DATA_CORRUPTED if the store does not have one of them.
        """
        keys = [(history_id, ref.node_id, ref.revision) for ref in refs]
        found: dict[tuple[str, str, int], HeldRevision] = {}
        missing: list[NodeRef] = []
        for key, ref in zip(keys, refs, strict=True):
            held = self._held.get(key)
            if held is None:
                missing.append(ref)
            else:
                self._held.move_to_end(key)
                found[key] = held
        if missing:
            for ref, node in (await self._store.revisions(namespace, missing)).items():
                key = (history_id, ref.node_id, ref.revision)
                found[key] = self._hold(key, replace(node, valid_to=None))
        try:
            return [found[key] for key in keys]
        except KeyError:
            raise DomainError(Reason.DATA_CORRUPTED, "an indexed revision is not in the store") from None

    def _hold(self, key: tuple[str, str, int], node: NodeRevision) -> HeldRevision:
        held = HeldRevision(node, _size(node))
        if held.size > self._budget or key in self._held:
            return held
        self._held[key] = held
        self._bytes += held.size
        while self._bytes > self._budget:
            _, oldest = self._held.popitem(last=False)
            self._bytes -= oldest.size
        return held


def _size(node: NodeRevision) -> int:
    encoded = (node.content, node.author, *node.labels, *node.labels.values())
    texts = (node.node_id, *node.surroundings, *encoded, *encoded)
    parts = len(node.evidence) + len(node.relations) / 4
    return _FIXED_BYTES + sum(map(sys.getsizeof, texts)) + int(_EVIDENCE_BYTES * parts)
