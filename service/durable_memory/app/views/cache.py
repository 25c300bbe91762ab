"""Views of hot namespaces under one byte budget, brought up to date on every call.

Each call first asks the store where the namespace stands, so a recall sees every change that was acknowledged before
it began, through any replica; a view that is behind takes in the difference, and one of another history is loaded
again. Loads are tasks of their own, one at a time for each namespace: a caller that gives up never stops a load that
others wait for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from durable_memory.app.views.view import View, view_of
from durable_memory.domain.change_set import chain
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRevision
from durable_memory.domain.state import Head
from durable_memory.ports.store import Store

_PAGE: Final = 2_000
_DELTA_MAX_CHANGE_SETS: Final = 500
"""A view further behind than this is loaded again."""

_DELTA_MAX_INLINE: Final = 32
"""Changed nodes up to which the index is extended on the event loop; more go to a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewStatistics:
    """Counts since the start, for metrics and for people who size the budget."""

    views: int
    bytes: int
    hits: int
    loads: int
    deltas: int
    evictions: int


@dataclass(slots=True)
class _Entry:
    """One namespace. `loads` tells the views that were derived from one load from those of the next."""

    view: View | None = None
    loads: int = 0
    advance: asyncio.Task[None] | None = None
    compaction: asyncio.Task[None] | None = None


class ViewCache:
    """Hands out views; see the module's docstring.

    Args:
        budget_bytes: for all views together. The least recently used leave first.
        view_max_bytes: for one view; a namespace that needs more is refused, not served slowly for everybody.
        load_timeout_seconds: for one load or delta, whoever waits for it.
    """

    def __init__(
        self, store: Store, *, budget_bytes: int, view_max_bytes: int, load_timeout_seconds: float = 60.0
    ) -> None:
        self._store = store
        self._budget = budget_bytes
        self._view_max = min(view_max_bytes, budget_bytes)
        self._load_timeout = load_timeout_seconds
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._bytes = 0
        self._hits = self._loads = self._deltas = self._evictions = 0

    async def view(self, namespace: Namespace) -> tuple[Head, View]:
        """A view that has everything acknowledged before this call, and the head that it was compared with.

        Raises: NAMESPACE_TOO_LARGE (bytes, limit), DEPENDENCY_UNAVAILABLE, and what the store raises.
        """
        head = await self._store.head(namespace)
        entry = self._entries.get(namespace.key)
        if entry is not None and entry.view is not None and entry.view.covers(head):
            self._hits += 1
            self._entries.move_to_end(namespace.key)
            return head, entry.view
        return head, await self._advanced(namespace, head)

    def statistics(self) -> ViewStatistics:
        return ViewStatistics(
            views=sum(entry.view is not None for entry in self._entries.values()),
            bytes=self._bytes,
            hits=self._hits,
            loads=self._loads,
            deltas=self._deltas,
            evictions=self._evictions,
        )

    async def close(self) -> None:
        """Stop all loads and let go of all views."""
        entries = self._entries.values()
        tasks = [task for entry in entries for task in (entry.advance, entry.compaction) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._entries.clear()
        self._bytes = 0

    # Bringing a view up to date

    async def _advanced(self, namespace: Namespace, head: Head) -> View:
        while True:
            entry = self._entries.setdefault(namespace.key, _Entry())
            if entry.view is not None and entry.view.covers(head):
                return entry.view
            if entry.advance is None:
                task = asyncio.create_task(self._advance(namespace, entry, head), name="advance namespace view")
                task.add_done_callback(_retrieve)
                entry.advance = task
            await asyncio.shield(entry.advance)

    async def _advance(self, namespace: Namespace, entry: _Entry, head: Head) -> None:
        """Make `entry.view` cover `head`. Runs once at a time for each namespace, and belongs to no caller."""
        try:
            async with asyncio.timeout(self._load_timeout):
                view = await self._next(namespace, entry, head)
            if view.nbytes > self._view_max:
                raise _namespace_too_large(view.nbytes, self._view_max)
            self._replace(namespace.key, entry, view)
            self._compact(namespace.key, entry)
        except TimeoutError:
            raise DomainError(
                Reason.DEPENDENCY_UNAVAILABLE, "the namespace could not be loaded in time; try again"
            ) from None
        finally:
            entry.advance = None
            if entry.view is None and self._entries.get(namespace.key) is entry:
                del self._entries[namespace.key]

    async def _next(self, namespace: Namespace, entry: _Entry, head: Head) -> View:
        view = entry.view
        if view is not None and view.key.history_id == head.history_id and view.key.revision < head.revision:
            extended = await self._delta(namespace, view, head)
            if extended is not None:
                self._deltas += 1
                return extended
        self._loads += 1
        nodes = await self._changed(namespace, 0, head)
        loaded = await asyncio.to_thread(view_of, head, nodes)
        entry.loads += 1
        return loaded

    async def _delta(self, namespace: Namespace, view: View, head: Head) -> View | None:
        """The view extended to `head`, `None` if it is too far behind or not what `head` was built on."""
        behind = head.revision - view.key.revision
        if behind > _DELTA_MAX_CHANGE_SETS:
            return None
        records = await self._store.list_change_sets(namespace, after_revision=view.key.revision, limit=behind)
        digest = view.key.chain_digest
        for record in records:
            digest = chain(digest, record.namespace_revision, record.digest())
        if digest != head.chain_digest:
            return None
        nodes = await self._changed(namespace, view.key.revision, head)
        if len(nodes) <= _DELTA_MAX_INLINE:
            return view.extended(head, nodes)
        return await asyncio.to_thread(view.extended, head, nodes)

    async def _changed(self, namespace: Namespace, after_revision: int, head: Head) -> list[NodeRevision]:
        """All nodes as they stood at `head`, committed after a revision; later commits do not show."""
        nodes: list[NodeRevision] = []
        after_node_id = ""
        while True:
            page = await self._store.changed_nodes(
                namespace,
                after_revision=after_revision,
                at_revision=head.revision,
                after_node_id=after_node_id,
                limit=_PAGE,
            )
            nodes.extend(page)
            if len(page) < _PAGE:
                return nodes
            after_node_id = page[-1].node_id

    def _compact(self, key: bytes, entry: _Entry) -> None:
        """Start to merge the small layers that deltas have left, in a thread, while recalls go on."""
        if entry.view is None or entry.compaction is not None or not entry.view.index.needs_compaction:
            return
        index, work = entry.view.index.begin_compaction()
        entry.view = View(entry.view.key, index)
        loads = entry.loads

        async def run() -> None:
            try:
                segment = await asyncio.to_thread(work.run)
                while entry.advance is not None:  # it extends the index that this must not overtake
                    await asyncio.wait([entry.advance])
                if entry.view is not None and entry.loads == loads and self._entries.get(key) is entry:
                    self._replace(key, entry, View(entry.view.key, entry.view.index.adopt(work, segment)))
            finally:
                entry.compaction = None

        entry.compaction = asyncio.create_task(run(), name="compact namespace view")
        entry.compaction.add_done_callback(_retrieve)

    def _replace(self, key: bytes, entry: _Entry, view: View) -> None:
        self._bytes += view.nbytes - (entry.view.nbytes if entry.view is not None else 0)
        entry.view = view
        self._entries[key] = entry
        self._entries.move_to_end(key)
        for other_key in list(self._entries):
            if self._bytes <= self._budget:
                break
            other = self._entries[other_key]
            if other is entry or other.view is None:
                continue
            self._bytes -= other.view.nbytes
            self._evictions += 1
            other.view = None
            if other.advance is None:
                del self._entries[other_key]


def _retrieve(task: asyncio.Task[None]) -> None:
    """Every waiter gets the failure itself; where all have left, it must not be reported as never retrieved."""
    if not task.cancelled():
        task.exception()


def _namespace_too_large(size: int, limit: int) -> DomainError:
    return DomainError(
        Reason.NAMESPACE_TOO_LARGE,
        "the namespace needs more memory for recall than one namespace may have",
        bytes=size,
        max_bytes=limit,
    )
