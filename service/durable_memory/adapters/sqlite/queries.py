"""What is read from the file, as plain functions of a connection and a namespace's key."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from durable_memory.adapters.codec import Codec, encode_json
from durable_memory.adapters.sqlite.connection import fetch, fetch_one
from durable_memory.domain.access import AccessEvent, AccessKind, UsageSummary
from durable_memory.domain.canonical import from_micros, to_micros
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.node import NodeRef, NodeRevision
from durable_memory.domain.session import BindingRecord, Context, Run, Session
from durable_memory.domain.state import Head
from durable_memory.ports.store import Loaded, NodeSelection, Reads, RequestRecord

CODEC: Final = Codec(to_micros, from_micros)

GREATEST_INTEGER: Final = 2**63 - 1


def names(values: Iterable[Any]) -> str:
    """A set of names as the JSON array that statements take."""
    return encode_json(list(values))


def _bounded(revision: int) -> int:
    """A revision that a caller made up may be larger than any that SQLite can hold, or compare with."""
    return min(revision, GREATEST_INTEGER)


def find_head(connection: sqlite3.Connection, key: bytes) -> Head | None:
    row = fetch_one(connection, "head", {"namespace_key": key})
    return None if row is None else Head(**row)


def find_request(connection: sqlite3.Connection, key: bytes, method: str, name: str) -> RequestRecord | None:
    row = fetch_one(connection, "find_request", {"namespace_key": key, "method": method, "key": name})
    return None if row is None else CODEC.request(row)


def load(connection: sqlite3.Connection, key: bytes, head: Head, reads: Reads) -> Loaded:
    """What a plan has to see; nothing is asked for that it does not name."""
    latest_runs = latest_run_of_each(connection, key, reads.latest_runs)
    contexts = find_contexts(connection, key, reads.contexts)
    runs = {(run.session_id, run.run_id, run.incarnation): run for run in latest_runs.values()}
    for context in contexts.values():
        run = find_run(connection, key, context)
        runs[run.session_id, run.run_id, run.incarnation] = run
    by_content = nodes_by_content(connection, key, reads.content_digests)
    return Loaded(
        head=head,
        nodes=current_nodes(connection, key, reads.node_ids),
        known_evidence=known_evidence(connection, key, reads.evidence | reads.evidence_of(by_content)),
        by_content=by_content,
        revisions=exact_revisions(connection, key, reads.revisions),
        sessions=find_sessions(connection, key, reads.session_ids),
        latest_runs=latest_runs,
        runs=runs,
        contexts=contexts,
        events=find_events(connection, key, reads.event_ids),
    )


# Nodes


def _nodes(connection: sqlite3.Connection, name: str, key: bytes, **parameters: Any) -> list[NodeRevision]:
    return [CODEC.node_revision(row) for row in fetch(connection, name, {"namespace_key": key, **parameters})]


def current_nodes(connection: sqlite3.Connection, key: bytes, node_ids: Collection[str]) -> dict[str, NodeRevision]:
    if not node_ids:
        return {}
    return {node.node_id: node for node in _nodes(connection, "current_nodes", key, node_ids=names(node_ids))}


def nodes_at(
    connection: sqlite3.Connection, key: bytes, node_ids: Collection[str], at_revision: int
) -> dict[str, NodeRevision]:
    found = _nodes(connection, "nodes_at", key, node_ids=names(node_ids), at_revision=_bounded(at_revision))
    return {node.node_id: node for node in found}


def exact_revisions(
    connection: sqlite3.Connection, key: bytes, refs: Collection[NodeRef]
) -> dict[NodeRef, NodeRevision]:
    if not refs:
        return {}
    wanted = names([ref.node_id, ref.revision] for ref in refs)
    return {node.ref: node for node in _nodes(connection, "exact_revisions", key, refs=wanted)}


def nodes_by_content(
    connection: sqlite3.Connection, key: bytes, content_digests: Collection[str]
) -> dict[str, list[NodeRevision]]:
    found: dict[str, list[NodeRevision]] = {}
    if content_digests:
        for node in _nodes(connection, "nodes_by_content", key, content_digests=names(content_digests)):
            found.setdefault(node.content_digest, []).append(node)
    return found


def known_evidence(
    connection: sqlite3.Connection, key: bytes, evidence: Collection[tuple[str, str, str]]
) -> frozenset[tuple[str, str, str]]:
    if not evidence:
        return frozenset()
    rows = fetch(connection, "known_evidence", {"namespace_key": key, "evidence": names(evidence)})
    return frozenset((row["node_id"], row["uri"], row["digest"]) for row in rows)


def list_nodes(
    connection: sqlite3.Connection,
    key: bytes,
    selection: NodeSelection,
    *,
    head_revision: int,
    at_revision: int,
    after_node_id: str,
    limit: int,
) -> list[NodeRevision]:
    """`head_revision` is that of the same snapshot: at it, and for one status, an index has exactly what is asked."""
    parameters = {
        "kinds": names(selection.kinds),
        "labels": encode_json(selection.labels),
        "after_node_id": after_node_id,
        "limit": limit,
    }
    if at_revision >= head_revision and len(selection.statuses) == 1:
        (status,) = selection.statuses
        return _nodes(connection, "list_current_nodes_of_status", key, status=int(status), **parameters)
    statuses = names(selection.statuses)
    at = _bounded(at_revision)
    return _nodes(connection, "list_nodes_at", key, statuses=statuses, at_revision=at, **parameters)


def list_revisions(
    connection: sqlite3.Connection, key: bytes, node_id: str, *, after_revision: int, limit: int
) -> list[NodeRevision]:
    after = _bounded(after_revision)
    return _nodes(connection, "list_revisions", key, node_id=node_id, after_revision=after, limit=limit)


def changed_nodes(
    connection: sqlite3.Connection,
    key: bytes,
    *,
    after_revision: int,
    at_revision: int,
    after_node_id: str,
    limit: int,
) -> list[NodeRevision]:
    if after_revision <= 0:  # everything: in the order of the primary key, without sorting
        return list_nodes(
            connection,
            key,
            NodeSelection(),
            head_revision=at_revision,
            at_revision=at_revision,
            after_node_id=after_node_id,
            limit=limit,
        )
    return _nodes(
        connection,
        "changed_nodes",
        key,
        after_revision=_bounded(after_revision),
        at_revision=_bounded(at_revision),
        after_node_id=after_node_id,
        limit=limit,
    )


def revisions_committed_at(
    connection: sqlite3.Connection, key: bytes, namespace_revisions: Collection[int]
) -> dict[int, list[NodeRevision]]:
    found: dict[int, list[NodeRevision]] = {}
    wanted = names(set(namespace_revisions))
    for node in _nodes(connection, "revisions_committed_at", key, namespace_revisions=wanted):
        found.setdefault(node.valid_from, []).append(node)
    return found


def list_change_sets(
    connection: sqlite3.Connection, key: bytes, *, after_revision: int, limit: int
) -> list[ChangeSetRecord]:
    parameters = {"namespace_key": key, "after_revision": _bounded(after_revision), "limit": limit}
    return [CODEC.change_set(row) for row in fetch(connection, "list_change_sets", parameters)]


def list_requests(
    connection: sqlite3.Connection, key: bytes, after: tuple[str, str], limit: int
) -> list[RequestRecord]:
    parameters = {"namespace_key": key, "after_method": after[0], "after_key": after[1], "limit": limit}
    return [CODEC.request(row) for row in fetch(connection, "list_requests", parameters)]


# Sessions


def find_sessions(connection: sqlite3.Connection, key: bytes, session_ids: Collection[str]) -> dict[str, Session]:
    if not session_ids:
        return {}
    rows = fetch(connection, "find_sessions", {"namespace_key": key, "session_ids": names(session_ids)})
    return {row["session_id"]: CODEC.session(row) for row in rows}


def list_sessions(connection: sqlite3.Connection, key: bytes, after_session_id: str, limit: int) -> list[Session]:
    parameters = {"namespace_key": key, "after_session_id": after_session_id, "limit": limit}
    return [CODEC.session(row) for row in fetch(connection, "list_sessions", parameters)]


def list_bindings(
    connection: sqlite3.Connection, key: bytes, after: tuple[str, int], limit: int
) -> list[BindingRecord]:
    parameters = {
        "namespace_key": key,
        "after_session_id": after[0],
        "after_binding_version": after[1],
        "limit": limit,
    }
    return [CODEC.binding(row) for row in fetch(connection, "list_bindings", parameters)]


def latest_run_of_each(
    connection: sqlite3.Connection, key: bytes, wanted: Collection[tuple[str, str]]
) -> Mapping[tuple[str, str], Run]:
    found: dict[tuple[str, str], Run] = {}
    for session_id, run_id in wanted:
        parameters = {"namespace_key": key, "session_id": session_id, "run_id": run_id}
        row = fetch_one(connection, "latest_run", parameters)
        if row is not None:
            found[session_id, run_id] = CODEC.run(row)
    return found


def find_run(connection: sqlite3.Connection, key: bytes, context: Context) -> Run:
    """The incarnation that a stored context belongs to; the schema ensures that there is one."""
    (row,) = fetch(connection, "find_run", {"namespace_key": key, **CODEC.context_columns(context)})
    return CODEC.run(row)


def find_contexts(connection: sqlite3.Connection, key: bytes, context_ids: Collection[str]) -> dict[str, Context]:
    if not context_ids:
        return {}
    rows = fetch(connection, "find_contexts", {"namespace_key": key, "context_ids": names(context_ids)})
    return {row["context_id"]: CODEC.context(row) for row in rows}


def get_context(connection: sqlite3.Connection, key: bytes, context_id: str) -> tuple[Context, Run] | None:
    context = find_contexts(connection, key, (context_id,)).get(context_id)
    return None if context is None else (context, find_run(connection, key, context))


def list_runs(
    connection: sqlite3.Connection, key: bytes, after: Run | None, limit: int
) -> list[tuple[Run, Sequence[Context]]]:
    parameters = {
        "namespace_key": key,
        "after_session_id": "" if after is None else after.session_id,
        "after_run_id": "" if after is None else after.run_id,
        "after_opened_at": 0 if after is None else to_micros(after.opened_at),
        "after_incarnation": "" if after is None else after.incarnation,
        "limit": limit,
    }
    runs = [CODEC.run(row) for row in fetch(connection, "list_runs", parameters)]
    return [(run, _list_contexts(connection, key, run)) for run in runs]


def _list_contexts(connection: sqlite3.Connection, key: bytes, run: Run) -> list[Context]:
    parameters = {
        "namespace_key": key,
        "session_id": run.session_id,
        "run_id": run.run_id,
        "incarnation": run.incarnation,
    }
    return [CODEC.context(row) for row in fetch(connection, "list_contexts", parameters)]


# Access


def find_events(connection: sqlite3.Connection, key: bytes, event_ids: Collection[str]) -> dict[str, AccessEvent]:
    if not event_ids:
        return {}
    rows = fetch(connection, "find_events", {"namespace_key": key, "event_ids": names(event_ids)})
    return {row["event_id"]: CODEC.event(row) for row in rows}


def list_events(
    connection: sqlite3.Connection, key: bytes, kind: AccessKind | None, after_event_id: str, limit: int
) -> list[AccessEvent]:
    parameters = {
        "namespace_key": key,
        "kind": None if kind is None else int(kind),
        "after_event_id": after_event_id,
        "limit": limit,
    }
    return [CODEC.event(row) for row in fetch(connection, "list_events", parameters)]


def usage(
    connection: sqlite3.Connection, key: bytes, node_ids: Collection[str], after: NodeRef, limit: int
) -> list[UsageSummary]:
    parameters = {
        "namespace_key": key,
        "after_node_id": after.node_id,
        "after_revision": _bounded(after.revision),
        "limit": limit,
    }
    if node_ids:
        rows = fetch(connection, "usage_of_nodes", {**parameters, "node_ids": names(node_ids)})
    else:
        rows = fetch(connection, "usage", parameters)
    return [CODEC.usage(row) for row in rows]
