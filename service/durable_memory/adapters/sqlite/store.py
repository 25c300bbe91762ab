"""`SqliteStore`: one file, one writer thread, a few reader threads, and nothing that blocks the event loop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from durable_memory.adapters.change_signal import ChangeSignal
from durable_memory.adapters.sqlite import queries, writes
from durable_memory.adapters.sqlite.connection import fetch
from durable_memory.adapters.sqlite.database import Database, renew_page_token_keys
from durable_memory.adapters.sqlite.heads import Heads
from durable_memory.adapters.sqlite.writer import Job, Writer
from durable_memory.domain.access import AccessEvent, AccessKind, UsageSummary
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.errors import dependency_unavailable, not_serving
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.domain.session import BindingRecord, Context, Run, Session
from durable_memory.domain.state import Head, derived_history_id
from durable_memory.ports.runtime import Ids
from durable_memory.ports.store import NamespaceCopy, NodeSelection, Outcome, Plan, RequestRecord

EXPORT_PAGE: Final = 500
"""Rows that an export reads at a time; between pages no snapshot is held."""

T = TypeVar("T")


def _page_token_keys(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    return fetch(connection, "page_token_keys", {})


class SqliteStore:
    """`Store` in the file at `path`, which is created if it is absent; its folder must exist.

    One store at a time serves a file: a second one, in this process or another, is refused with NOT_SERVING. A store
    belongs to the event loop that opened it, and may be opened again after `close`.
    """

    def __init__(self, path: Path | str, ids: Ids) -> None:
        self._path = Path(path)
        self._ids = ids
        self._changes = ChangeSignal()
        self._heads = Heads()
        self._writer: Writer | None = None
        self._closing: Writer | None = None

    # Life

    async def open(self) -> None:
        if self._writer is not None:
            raise RuntimeError("the store is open already")
        self._loop = asyncio.get_running_loop()
        self._database = Database(self._path, self._ids)
        self._heads = Heads()
        writer = Writer(self._database, self._loop, self._answer)
        await writer.start()
        self._writer = writer

    async def close(self) -> None:
        if self._writer is not None:
            self._closing, self._writer = self._writer, None
            self._changes.notify_all()
        if self._closing is not None:
            await self._closing.finish()

    async def check(self) -> None:
        writer = self._require_serving()
        await self._in_reader(lambda connection: fetch(connection, "ping", {}))
        if writer.stopped:
            raise dependency_unavailable("the store stopped writing after a failed commit; restart it")

    async def page_token_keys(self) -> Sequence[bytes]:
        return [row["key"] for row in await self._in_reader(_page_token_keys)]

    async def renew_page_token_keys(self) -> None:
        if all(row["due"] for row in await self._in_reader(_page_token_keys)):
            await self.write_beside(partial(renew_page_token_keys, ids=self._ids))

    def publish_address(self, address: str) -> None:
        """Tell whoever asks `live_server_address` for this file where it is served."""
        self._require_serving()
        self._database.lock.publish(address)

    # Writing

    async def transact(self, namespace: Namespace, plan: Plan) -> Outcome:
        def work(connection: sqlite3.Connection) -> tuple[Head, Outcome]:
            outcome = writes.transact(connection, self._database.history_id, namespace, plan)
            return outcome.head, outcome

        outcome: Outcome = await self._write(namespace.key, work)
        return outcome

    async def import_namespace(self, namespace: Namespace, copy: NamespaceCopy, history_id: str) -> Head:
        def work(connection: sqlite3.Connection) -> tuple[Head, Head]:
            head = writes.import_namespace(connection, namespace, copy, history_id)
            return head, head

        head: Head = await self._write(namespace.key, work)
        return head

    async def write_beside(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction of the writer, for what lives in this file beside the namespaces' state.

        Raises: what `work` does, and then nothing of it is written; otherwise as `transact`.
        """
        result: T = await self._write(b"", lambda connection: (None, work(connection)))
        return result

    async def _write(self, key: bytes, work: Callable[[sqlite3.Connection], tuple[Head | None, Any]]) -> Any:
        """Run a job in the writer. A caller that is cancelled in time leaves nothing, later it waits for the commit."""
        writer = self._require_serving()
        job = Job(key, work, self._loop.create_future())
        writer.submit(job)
        try:
            return await asyncio.shield(job.future)
        except asyncio.CancelledError:
            if not job.abandon():
                await asyncio.wait([job.future])
            raise

    def _answer(self, group: Sequence[Job]) -> None:
        """Make commits known, then answer whoever waits for them."""
        for job in group:
            if job.head is not None and self._heads.written(job.key, job.head):
                self._changes.notify(job.key)
        for job in group:
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)

    # Reading

    async def head(self, namespace: Namespace) -> Head:
        self._require_serving()
        held = self._heads.get(namespace.key)
        if held is not None:
            return held
        return await self._read(namespace, lambda _, head: head)

    async def wait_for_change(self, namespace: Namespace, revision: int) -> None:
        head = await self.head(namespace)
        self._require_serving()  # a store that closed meanwhile wakes nobody any more
        if head.revision <= revision:
            await self._changes.wait(namespace.key)

    async def find_request(self, namespace: Namespace, method: str, key: str) -> RequestRecord | None:
        return await self._query(namespace, partial(queries.find_request, method=method, name=key))

    async def current_nodes(self, namespace: Namespace, node_ids: Collection[str]) -> Mapping[str, NodeRevision]:
        return await self._query(namespace, partial(queries.current_nodes, node_ids=node_ids))

    async def nodes_at(
        self, namespace: Namespace, node_ids: Collection[str], namespace_revision: int
    ) -> Mapping[str, NodeRevision]:
        query = partial(queries.nodes_at, node_ids=node_ids, at_revision=namespace_revision)
        return await self._query(namespace, query)

    async def revisions(self, namespace: Namespace, refs: Collection[NodeRef]) -> Mapping[NodeRef, NodeRevision]:
        return await self._query(namespace, partial(queries.exact_revisions, refs=refs))

    async def list_nodes(
        self,
        namespace: Namespace,
        selection: NodeSelection,
        *,
        at_revision: int,
        after_node_id: str,
        limit: int,
    ) -> Sequence[NodeRevision]:
        return await self._read(
            namespace,
            lambda connection, head: queries.list_nodes(
                connection,
                namespace.key,
                selection,
                head_revision=head.revision,
                at_revision=at_revision,
                after_node_id=after_node_id,
                limit=limit,
            ),
        )

    async def list_revisions(
        self, namespace: Namespace, node_id: str, *, after_revision: int, limit: int
    ) -> Sequence[NodeRevision]:
        query = partial(queries.list_revisions, node_id=node_id, after_revision=after_revision, limit=limit)
        return await self._query(namespace, query)

    async def changed_nodes(
        self, namespace: Namespace, *, after_revision: int, at_revision: int, after_node_id: str, limit: int
    ) -> Sequence[NodeRevision]:
        query = partial(
            queries.changed_nodes,
            after_revision=after_revision,
            at_revision=at_revision,
            after_node_id=after_node_id,
            limit=limit,
        )
        return await self._query(namespace, query)

    async def list_change_sets(
        self, namespace: Namespace, *, after_revision: int, limit: int
    ) -> Sequence[ChangeSetRecord]:
        query = partial(queries.list_change_sets, after_revision=after_revision, limit=limit)
        return await self._query(namespace, query)

    async def revisions_committed_at(
        self, namespace: Namespace, namespace_revisions: Collection[int]
    ) -> Mapping[int, Sequence[NodeRevision]]:
        query = partial(queries.revisions_committed_at, namespace_revisions=namespace_revisions)
        return await self._query(namespace, query)

    async def get_session(self, namespace: Namespace, session_id: str) -> Session | None:
        found = await self._query(namespace, partial(queries.find_sessions, session_ids=(session_id,)))
        return found.get(session_id)

    async def list_sessions(self, namespace: Namespace, *, after_session_id: str, limit: int) -> Sequence[Session]:
        query = partial(queries.list_sessions, after_session_id=after_session_id, limit=limit)
        return await self._query(namespace, query)

    async def get_context(self, namespace: Namespace, context_id: str) -> tuple[Context, Run] | None:
        return await self._query(namespace, partial(queries.get_context, context_id=context_id))

    async def usage(
        self, namespace: Namespace, *, node_ids: Collection[str], after: NodeRef, limit: int
    ) -> Sequence[UsageSummary]:
        return await self._query(namespace, partial(queries.usage, node_ids=node_ids, after=after, limit=limit))

    async def list_events(
        self, namespace: Namespace, *, kind: AccessKind | None, after_event_id: str, limit: int
    ) -> Sequence[AccessEvent]:
        query = partial(queries.list_events, kind=kind, after_event_id=after_event_id, limit=limit)
        return await self._query(namespace, query)

    async def export_requests(self, namespace: Namespace) -> AsyncIterator[RequestRecord]:
        after = ("", "")
        while page := await self._query(namespace, partial(queries.list_requests, after=after, limit=EXPORT_PAGE)):
            for record in page:
                yield record
            after = (page[-1].request.method, page[-1].request.key)

    async def export_bindings(self, namespace: Namespace) -> AsyncIterator[BindingRecord]:
        after = ("", 0)
        while page := await self._query(namespace, partial(queries.list_bindings, after=after, limit=EXPORT_PAGE)):
            for record in page:
                yield record
            after = (page[-1].session_id, page[-1].binding_version)

    async def export_runs(self, namespace: Namespace) -> AsyncIterator[tuple[Run, Sequence[Context]]]:
        after: Run | None = None
        while page := await self._query(namespace, partial(queries.list_runs, after=after, limit=EXPORT_PAGE)):
            for item in page:
                yield item
            after, _ = page[-1]

    # Threads

    async def _query(self, namespace: Namespace, query: Callable[[sqlite3.Connection, bytes], T]) -> T:
        return await self._read(namespace, lambda connection, _: query(connection, namespace.key))

    async def _read(self, namespace: Namespace, query: Callable[[sqlite3.Connection, Head], T]) -> T:
        """Run a query and take the head in from the same snapshot; see `Heads.read`."""
        key = namespace.key
        epoch = self._heads.epoch

        def on_snapshot(connection: sqlite3.Connection) -> tuple[Head, T]:
            head = queries.find_head(connection, key) or Head(
                history_id=derived_history_id(self._database.history_id, namespace)
            )
            return head, query(connection, head)

        head, result = await self._in_reader(on_snapshot)
        if self._heads.read(key, head, epoch):
            self._changes.notify(key)
        return result

    async def read_beside(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query on one snapshot, for what lives in this file beside the namespaces' state."""
        return await self._in_reader(query)

    async def _in_reader(self, query: Callable[[sqlite3.Connection], T]) -> T:
        self._require_serving()
        return await self._loop.run_in_executor(self._database.readers, self._database.read, query)

    def _require_serving(self) -> Writer:
        if self._writer is None:
            raise not_serving("closed", "the store is closed")
        return self._writer
