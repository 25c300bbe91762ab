"""Reads: one statement each, or one snapshot where two have to agree."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import asyncpg

from durable_memory.adapters.codec import encode_json
from durable_memory.adapters.postgres.errors import domain_errors, is_lost
from durable_memory.adapters.postgres.loading import ref_arrays
from durable_memory.adapters.postgres.pool import Connection, ConnectionPool
from durable_memory.adapters.postgres.rows import CODEC, bounded, context_and_run
from durable_memory.adapters.postgres.sql import statement
from durable_memory.domain.access import AccessEvent, AccessKind, UsageSummary
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.domain.session import BindingRecord, Context, Run, Session
from durable_memory.ports.store import NodeSelection, RequestRecord

T = TypeVar("T")
Rows = Sequence[asyncpg.Record]

_PAGE: Final = 500
_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)


class Reading:
    """The reading half of the port, on its own connections."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool

    async def fetch(self, name: str, *arguments: Any) -> Rows:
        """The rows of a statement. A connection that was lost is replaced once, as reading twice changes nothing."""
        return await self._reading(lambda connection: connection.fetch(statement(name), *arguments))

    async def find_request(self, namespace: Namespace, method: str, key: str) -> RequestRecord | None:
        rows = await self.fetch("find_request", namespace.key, method, key)
        return CODEC.request(rows[0]) if rows else None

    async def current_nodes(self, namespace: Namespace, node_ids: Collection[str]) -> Mapping[str, NodeRevision]:
        return _by_id(await self.fetch("current_nodes", namespace.key, list(node_ids)))

    async def nodes_at(
        self, namespace: Namespace, node_ids: Collection[str], namespace_revision: int
    ) -> Mapping[str, NodeRevision]:
        return _by_id(await self.fetch("nodes_at", namespace.key, list(node_ids), bounded(namespace_revision)))

    async def revisions(self, namespace: Namespace, refs: Collection[NodeRef]) -> Mapping[NodeRef, NodeRevision]:
        nodes = _nodes(await self.fetch("exact_revisions", namespace.key, *ref_arrays(refs)))
        return {node.ref: node for node in nodes}

    async def list_nodes(
        self,
        namespace: Namespace,
        selection: NodeSelection,
        *,
        at_revision: int,
        after_node_id: str,
        limit: int,
    ) -> Sequence[NodeRevision]:
        return _nodes(
            await self.fetch(
                "list_nodes",
                namespace.key,
                after_node_id,
                bounded(at_revision),
                [int(status) for status in selection.statuses],
                [int(kind) for kind in selection.kinds],
                encode_json(selection.labels),
                limit,
            )
        )

    async def list_revisions(
        self, namespace: Namespace, node_id: str, *, after_revision: int, limit: int
    ) -> Sequence[NodeRevision]:
        return _nodes(await self.fetch("list_revisions", namespace.key, node_id, bounded(after_revision), limit))

    async def changed_nodes(
        self, namespace: Namespace, *, after_revision: int, at_revision: int, after_node_id: str, limit: int
    ) -> Sequence[NodeRevision]:
        return _nodes(
            await self.fetch(
                "changed_nodes", namespace.key, bounded(after_revision), bounded(at_revision), after_node_id, limit
            )
        )

    async def list_change_sets(
        self, namespace: Namespace, *, after_revision: int, limit: int
    ) -> Sequence[ChangeSetRecord]:
        rows = await self.fetch("list_change_sets", namespace.key, bounded(after_revision), limit)
        return [CODEC.change_set(row) for row in rows]

    async def revisions_committed_at(
        self, namespace: Namespace, namespace_revisions: Collection[int]
    ) -> Mapping[int, Sequence[NodeRevision]]:
        found: dict[int, list[NodeRevision]] = {}
        for node in _nodes(
            await self.fetch(
                "revisions_committed_at", namespace.key, [bounded(revision) for revision in namespace_revisions]
            )
        ):
            found.setdefault(node.valid_from, []).append(node)
        return found

    async def get_session(self, namespace: Namespace, session_id: str) -> Session | None:
        rows = await self.fetch("get_session", namespace.key, session_id)
        return CODEC.session(rows[0]) if rows else None

    async def list_sessions(self, namespace: Namespace, *, after_session_id: str, limit: int) -> Sequence[Session]:
        return [CODEC.session(row) for row in await self.fetch("list_sessions", namespace.key, after_session_id, limit)]

    async def get_context(self, namespace: Namespace, context_id: str) -> tuple[Context, Run] | None:
        rows = await self.fetch("get_context", namespace.key, context_id)
        return context_and_run(rows[0]) if rows else None

    async def usage(
        self, namespace: Namespace, *, node_ids: Collection[str], after: NodeRef, limit: int
    ) -> Sequence[UsageSummary]:
        rows = await self.fetch("usage", namespace.key, list(node_ids), after.node_id, bounded(after.revision), limit)
        return [CODEC.usage(row) for row in rows]

    async def list_events(
        self, namespace: Namespace, *, kind: AccessKind | None, after_event_id: str, limit: int
    ) -> Sequence[AccessEvent]:
        rows = await self.fetch(
            "list_events", namespace.key, after_event_id, None if kind is None else int(kind), limit
        )
        return [CODEC.event(row) for row in rows]

    async def export_requests(self, namespace: Namespace) -> AsyncIterator[RequestRecord]:
        after = ("", "")
        while rows := await self.fetch("export_requests", namespace.key, *after, _PAGE):
            for row in rows:
                yield CODEC.request(row)
            after = (rows[-1]["method"], rows[-1]["key"])

    async def export_bindings(self, namespace: Namespace) -> AsyncIterator[BindingRecord]:
        after = ("", 0)
        while rows := await self.fetch("export_bindings", namespace.key, *after, _PAGE):
            for row in rows:
                yield CODEC.binding(row)
            after = (rows[-1]["session_id"], rows[-1]["binding_version"])

    async def export_runs(self, namespace: Namespace) -> AsyncIterator[tuple[Run, Sequence[Context]]]:
        after: tuple[str, str, datetime, str] = ("", "", _BEFORE_ALL, "")
        while True:
            runs, contexts = await self._runs_with_contexts(namespace, after)
            if not runs:
                return
            for run in runs:
                yield run, contexts.get((run.session_id, run.run_id, run.incarnation), [])
            last = runs[-1]
            after = (last.session_id, last.run_id, last.opened_at, last.incarnation)

    async def _runs_with_contexts(
        self, namespace: Namespace, after: tuple[str, str, datetime, str]
    ) -> tuple[list[Run], dict[tuple[str, str, str], list[Context]]]:
        """A page of runs, and their contexts as of the same moment."""

        async def read(connection: Connection) -> tuple[Rows, Rows]:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                runs = await connection.fetch(statement("export_runs"), namespace.key, *after, _PAGE)
                names = [[row[name] for row in runs] for name in ("session_id", "run_id", "incarnation")]
                return runs, await connection.fetch(statement("contexts_of_runs"), namespace.key, *names)

        run_rows, context_rows = await self._reading(read)
        contexts: dict[tuple[str, str, str], list[Context]] = {}
        for context in map(CODEC.context, context_rows):
            contexts.setdefault((context.session_id, context.run_id, context.incarnation), []).append(context)
        return [CODEC.run(row) for row in run_rows], contexts

    async def _reading(self, read: Callable[[Connection], Awaitable[T]]) -> T:
        with domain_errors():
            try:
                async with self._pool.connection() as connection:
                    return await read(connection)
            except Exception as error:
                if not is_lost(error):
                    raise
            async with self._pool.connection() as connection:
                return await read(connection)


def _nodes(rows: Rows) -> list[NodeRevision]:
    return [CODEC.node_revision(row) for row in rows]


def _by_id(rows: Rows) -> dict[str, NodeRevision]:
    return {node.node_id: node for node in _nodes(rows)}
