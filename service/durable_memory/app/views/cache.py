"""Views of hot namespaces under one byte budget, brought up to date on every call.

Each caller first asks the store where the namespace stands, so a recall sees every change that was acknowledged before
it began, through any replica; a view that is behind takes in the difference, and one of another history is loaded
again. Loads are tasks of their own, one at a time for each namespace: a caller that gives up never stops a load that
others wait for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from durable_memory.app.views.view import View, ViewKey, document_of
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.limits import NAMESPACE_MAX_ACTIVE_BYTES, NAMESPACE_MAX_ACTIVE_NODES
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRevision, NodeStatus
from durable_memory.domain.state import Head
from durable_memory.ports.store import NodeSelection, Store

_PAGE: Final = 2_000
_DELTA_MAX_CHANGE_SETS: Final = 500
"""A view further behind than this is loaded again."""

_LOADS_AT_ONCE: Final = 2
"""Full loads that run beside each other; while one runs it takes several times the memory of its view."""

_DELTA_MAX_INLINE: Final = 32
_DELTA_MAX_INLINE_BYTES: Final = 16 * 1024
"""Changed nodes, and text of them, up to which the index is extended on the event loop; more goes to a thread."""

_REFUSED_MAX: Final = 10_000
"""How many namespaces that are too large are remembered."""

_ACTIVE: Final = NodeSelection(statuses=frozenset({NodeStatus.ACTIVE}))


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
    """One namespace."""

    view: View | None = None
    nbytes: int = 0
    advance: asyncio.Task[None] | None = None
    compacting: bool = False


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
        self._loading = asyncio.Semaphore(_LOADS_AT_ONCE)
        self._refused: OrderedDict[bytes, Head] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._bytes = 0
        self._hits = self._loads = self._deltas = self._evictions = 0

    async def view(self, namespace: Namespace, head: Head) -> View:
        """A view that has everything that `head`, read by the caller since its call began, has.

        Raises: NAMESPACE_TOO_LARGE (active_nodes, active_bytes and their bounds, view_bytes, max_view_bytes),
        DEPENDENCY_UNAVAILABLE, and what the store raises.
        """
        entry = self._entries.get(namespace.key)
        view = None if entry is None else entry.view
        if entry is not None and view is not None and view.key.is_ahead_of(head):
            # Most often another call has read a later head meanwhile. A head that is still behind a view that was
            # there before it was read means that the store has lost what the view shows.
            head = await self._store.head(namespace)
            if view.key.is_ahead_of(head) and entry.view is view:
                self._drop(entry)
        if entry is not None and entry.view is not None and entry.view.covers(head):
            self._hits += 1
            if self._entries.get(namespace.key) is entry:
                self._entries.move_to_end(namespace.key)
            return entry.view
        return await self._advanced(namespace, head)

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
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._entries.clear()
        self._refused.clear()
        self._bytes = 0

    # Bringing a view up to date

    async def _advanced(self, namespace: Namespace, head: Head) -> View:
        while True:
            entry = self._entries.setdefault(namespace.key, _Entry())
            if entry.view is not None and entry.view.covers(head):
                return entry.view
            if entry.advance is None:
                entry.advance = self._start(self._advance(namespace, entry, head), "advance namespace view")
                entry.advance.add_done_callback(_retrieve)
            await asyncio.shield(entry.advance)

    async def _advance(self, namespace: Namespace, entry: _Entry, head: Head) -> None:
        """Make `entry.view` cover `head`. Runs once at a time for each namespace, and belongs to no caller."""
        try:
            self._refuse_again(namespace.key, head)
            async with asyncio.timeout(self._load_timeout):
                view = await self._next(namespace, entry, head)
            if view.nbytes > self._view_max:
                self._refuse(namespace.key, entry, head, view.nbytes)
            self._refused.pop(namespace.key, None)
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
        if view is not None and await self._is_extension(namespace, view.key, head):
            nodes = await self._changed(namespace, view.key, head)
            self._deltas += 1
            text = sum(node.active_bytes for node in nodes)
            if len(nodes) <= _DELTA_MAX_INLINE and text <= _DELTA_MAX_INLINE_BYTES:
                return view.extended(head, nodes)
            return await asyncio.to_thread(view.extended, head, nodes)
        async with self._loading:
            self._loads += 1
            documents = await self._active(namespace, head)
            return await asyncio.to_thread(View.built, head, documents)

    async def _is_extension(self, namespace: Namespace, key: ViewKey, head: Head) -> bool:
        """Whether `head` was built on the state that `key` names, and is not too far from it.

        The change set that made the view's revision has to be the one that the view was built on: its chain digest
        covers all of the history before it.
        """
        if key.history_id != head.history_id or not 0 < head.revision - key.revision <= _DELTA_MAX_CHANGE_SETS:
            return False
        if key.revision == 0:
            return True
        found = await self._store.list_change_sets(namespace, after_revision=key.revision - 1, limit=1)
        return any((item.namespace_revision, item.chain_digest) == (key.revision, key.chain_digest) for item in found)

    async def _changed(self, namespace: Namespace, key: ViewKey, head: Head) -> list[NodeRevision]:
        """All nodes as they stood at `head` that were committed since `key`; later commits do not show."""
        nodes: list[NodeRevision] = []
        after_node_id = ""
        while True:
            page = await self._store.changed_nodes(
                namespace,
                after_revision=key.revision,
                at_revision=head.revision,
                after_node_id=after_node_id,
                limit=_PAGE,
            )
            nodes.extend(page)
            if len(page) < _PAGE:
                return nodes
            after_node_id = page[-1].node_id

    async def _active(self, namespace: Namespace, head: Head) -> list[IndexedDocument]:
        """What is to be indexed at `head`: the ACTIVE nodes alone, however many others there are."""
        documents: list[IndexedDocument] = []
        after_node_id = ""
        while True:
            page = await self._store.list_nodes(
                namespace, _ACTIVE, at_revision=head.revision, after_node_id=after_node_id, limit=_PAGE
            )
            documents.extend(map(document_of, page))
            if len(page) < _PAGE:
                return documents
            after_node_id = page[-1].node_id

    def _compact(self, key: bytes, entry: _Entry) -> None:
        """Start to merge the small layers that deltas have left, in a thread, while recalls go on."""
        if entry.view is None or entry.compacting or not entry.view.index.needs_compaction:
            return
        index, work = entry.view.index.begin_compaction()
        self._replace(key, entry, View(entry.view.key, index))

        async def run() -> None:
            try:
                segment = await asyncio.to_thread(work.run)
                while entry.advance is not None:  # its view would take the place of the one that this made
                    await asyncio.wait([entry.advance])
                if entry.view is not None and self._entries.get(key) is entry:
                    self._replace(key, entry, View(entry.view.key, entry.view.index.adopt(work, segment)))
            finally:
                entry.compacting = False

        entry.compacting = True
        self._start(run(), "compact namespace view")

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # The budgets

    def _replace(self, key: bytes, entry: _Entry, view: View) -> None:
        size = view.nbytes
        self._bytes += size - entry.nbytes
        entry.view, entry.nbytes = view, size
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while self._bytes > self._budget:
            oldest = next(
                (one for one in self._entries.items() if one[1] is not entry and one[1].view is not None), None
            )
            if oldest is None:
                return
            self._evictions += 1
            self._drop(oldest[1])
            if oldest[1].advance is None:
                del self._entries[oldest[0]]

    def _drop(self, entry: _Entry) -> None:
        self._bytes -= entry.nbytes
        entry.view, entry.nbytes = None, 0

    def _refuse(self, key: bytes, entry: _Entry, head: Head, size: int) -> NoReturn:
        self._drop(entry)
        self._refused[key] = head
        if len(self._refused) > _REFUSED_MAX:
            self._refused.popitem(last=False)
        raise _namespace_too_large(head, view_bytes=size, max_view_bytes=self._view_max)

    def _refuse_again(self, key: bytes, head: Head) -> None:
        """A namespace that was too large, and has not shrunk since, is not loaded only to be refused."""
        then = self._refused.get(key)
        if then is None or then.history_id != head.history_id:
            return
        if head.active_count >= then.active_count and head.active_bytes >= then.active_bytes:
            raise _namespace_too_large(head, max_view_bytes=self._view_max)


def _retrieve(task: asyncio.Task[None]) -> None:
    """Every waiter gets the failure itself; where all have left, it must not be reported as never retrieved."""
    if not task.cancelled():
        task.exception()


def _namespace_too_large(head: Head, **sizes: int) -> DomainError:
    return DomainError(
        Reason.NAMESPACE_TOO_LARGE,
        "the namespace needs more memory for recall than one namespace may have",
        active_nodes=head.active_count,
        active_bytes=head.active_bytes,
        max_active_nodes=NAMESPACE_MAX_ACTIVE_NODES,
        max_active_bytes=NAMESPACE_MAX_ACTIVE_BYTES,
        **sizes,
    )
