"""What a plan has to see, read under its locks.

Everybody takes locks in one order: the namespace's row (change sets), the request, sessions, runs, nodes; several of
a kind by id. So plans wait for each other, but never in a circle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from durable_memory.adapters.postgres.rows import CODEC, bounded, context_and_run, evidence_key, head_of
from durable_memory.adapters.postgres.transaction import WriteTransaction
from durable_memory.domain.access import AccessEvent
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.domain.session import Context, Run, Session
from durable_memory.domain.state import Head
from durable_memory.ports.store import Loaded, Lock, Reads, RequestKey, RequestRecord

_ROUNDS = 16
"""How often what was replaced while waiting for its lock is looked for again."""


class ContendedError(Exception):
    """Another transaction was first; this one has to start again."""


async def find_head(transaction: WriteTransaction, namespace: Namespace) -> Head | None:
    row = await transaction.fetch_row("find_head", namespace.key)
    return None if row is None else head_of(row)


async def find_request(
    transaction: WriteTransaction, namespace: Namespace, request: RequestKey
) -> RequestRecord | None:
    row = await transaction.fetch_row("find_request", namespace.key, request.method, request.key)
    return None if row is None else CODEC.request(row)


async def find_request_and_evidence(
    transaction: WriteTransaction,
    namespace: Namespace,
    request: RequestKey | None,
    evidence: Collection[tuple[str, str, str]],
) -> tuple[RequestRecord | None, frozenset[tuple[str, str, str]]]:
    """The stored call, if there is one, and those of `evidence` that some revision of its node has."""
    if request is None and not evidence:
        return None, frozenset()
    offered = list(evidence)
    row = await transaction.fetch_row(
        "find_request_and_evidence",
        namespace.key,
        None if request is None else request.method,
        None if request is None else request.key,
        [node_id for node_id, _, _ in offered],
        [evidence_key(uri, digest) for _, uri, digest in offered],
    )
    assert row is not None
    record = None if row["key"] is None else CODEC.request(row)
    return record, frozenset(offered[position - 1] for position in row["known_evidence"])


async def load(
    transaction: WriteTransaction,
    namespace: Namespace,
    reads: Reads,
    lock: Lock,
    *,
    head: Head,
    known_evidence: frozenset[tuple[str, str, str]],
) -> Loaded:
    """Lock and read. `head` is that of the locked row, or an empty one: then it is read last, so nothing is newer.

    Raises: ContendedError if the nodes are replaced faster than they can be locked.
    """
    loading = _Loading(transaction, namespace, lock)
    sessions = await loading.sessions(reads.session_ids)
    contexts, runs = await loading.contexts(reads.contexts)
    latest = await loading.latest_runs(reads.latest_runs)
    nodes = await loading.nodes(reads.node_ids)
    by_content = await loading.by_content(reads.content_digests)
    _, known_of_content = await find_request_and_evidence(transaction, namespace, None, reads.evidence_of(by_content))
    revisions = await loading.revisions(reads.revisions)
    if lock is Lock.NAMESPACE:
        events = await loading.events(reads.event_ids)
    else:
        head, events = await loading.head_and_events(reads.event_ids, empty=head)
    return Loaded(
        head=head,
        nodes=nodes,
        known_evidence=known_evidence | known_of_content,
        by_content=by_content,
        revisions=revisions,
        sessions=sessions,
        latest_runs=latest,
        runs={**runs, **{_run_key(run): run for run in latest.values()}},
        contexts=contexts,
        events=events,
    )


class _Loading:
    def __init__(self, transaction: WriteTransaction, namespace: Namespace, lock: Lock) -> None:
        self._transaction = transaction
        self._namespace = namespace
        self._key = namespace.key
        self._lock = lock

    async def sessions(self, session_ids: Collection[str]) -> dict[str, Session]:
        if not session_ids:
            return {}
        name = "lock_sessions_to_change" if self._lock is Lock.NAMESPACE else "lock_sessions_to_name"
        rows = await self._transaction.fetch(name, self._key, list(session_ids))
        return {row["session_id"]: CODEC.session(row) for row in rows}

    async def contexts(
        self, context_ids: Collection[str]
    ) -> tuple[dict[str, Context], dict[tuple[str, str, str], Run]]:
        contexts: dict[str, Context] = {}
        runs: dict[tuple[str, str, str], Run] = {}
        if context_ids:
            for row in await self._transaction.fetch("lock_contexts", self._key, list(context_ids)):
                context, run = context_and_run(row)
                contexts[context.context_id] = context
                runs[_run_key(run)] = run
        return contexts, runs

    async def latest_runs(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], Run]:
        """Beside change sets, an incarnation that was opened meanwhile is locked in another round."""
        if not names:
            return {}
        arguments = [session_id for session_id, _ in names], [run_id for _, run_id in names]
        before: dict[tuple[str, str], str] | None = None
        for _ in range(_ROUNDS):
            rows = await self._transaction.fetch("lock_latest_runs", self._key, *arguments)
            runs = {(run.session_id, run.run_id): run for run in map(CODEC.run, rows)}
            incarnations = {names: run.incarnation for names, run in runs.items()}
            if self._lock is Lock.NAMESPACE or incarnations == before:
                return runs
            before = incarnations
        raise ContendedError

    async def nodes(self, node_ids: Collection[str]) -> dict[str, NodeRevision]:
        """Current revisions, locked.

        Beside change sets, the revision that this waited for may have been replaced, and the one that replaced it
        is not among the rows that the statement began with. So what is missing is looked for again, until it is
        locked or does not exist.
        """
        if not node_ids:
            return {}
        if self._lock is Lock.NAMESPACE:
            return await self._locked_nodes("lock_nodes_to_change", node_ids)
        found = await self._locked_nodes("lock_nodes_to_name", node_ids)
        for _ in range(_ROUNDS):
            missing = [node_id for node_id in node_ids if node_id not in found]
            if missing:
                missing = [
                    row["node_id"] for row in await self._transaction.fetch("existing_nodes", self._key, missing)
                ]
            if not missing:
                return found
            found |= await self._locked_nodes("lock_nodes_to_name", missing)
        raise ContendedError

    async def _locked_nodes(self, name: str, node_ids: Collection[str]) -> dict[str, NodeRevision]:
        rows = await self._transaction.fetch(name, self._key, list(node_ids))
        return {row["node_id"]: CODEC.node_revision(row) for row in rows}

    async def by_content(self, digests: Collection[str]) -> Mapping[str, list[NodeRevision]]:
        found: dict[str, list[NodeRevision]] = {}
        if digests:
            for row in await self._transaction.fetch("nodes_by_content", self._key, list(digests)):
                found.setdefault(row["content_digest"], []).append(CODEC.node_revision(row))
        return found

    async def revisions(self, refs: Collection[NodeRef]) -> dict[NodeRef, NodeRevision]:
        if not refs:
            return {}
        rows = await self._transaction.fetch("exact_revisions", self._key, *ref_arrays(refs))
        return {node.ref: node for node in map(CODEC.node_revision, rows)}

    async def events(self, event_ids: Collection[str]) -> dict[str, AccessEvent]:
        if not event_ids:
            return {}
        rows = await self._transaction.fetch("events_by_id", self._key, list(event_ids))
        return {row["event_id"]: CODEC.event(row) for row in rows}

    async def head_and_events(self, event_ids: Collection[str], *, empty: Head) -> tuple[Head, dict[str, AccessEvent]]:
        rows = await self._transaction.fetch("head_and_events", self._key, list(event_ids))
        events = [CODEC.event({**row, "revision": row["of_revision"]}) for row in rows if row["event_id"] is not None]
        return head_of(rows[0]) if rows else empty, {event.event_id: event for event in events}


def ref_arrays(refs: Collection[NodeRef]) -> tuple[list[Any], list[Any]]:
    """Node ids and revisions, side by side."""
    return [ref.node_id for ref in refs], [bounded(ref.revision) for ref in refs]


def _run_key(run: Run) -> tuple[str, str, str]:
    return (run.session_id, run.run_id, run.incarnation)
