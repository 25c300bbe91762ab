"""What is written to the file: one plan, or one imported namespace, inside a transaction that the writer owns."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from durable_memory.adapters.sqlite.connection import run
from durable_memory.adapters.sqlite.queries import CODEC, find_head, find_request, load
from durable_memory.domain.errors import DomainError, Reason, namespace_not_empty
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRevision, NodeStatus
from durable_memory.domain.staging import StagedChange
from durable_memory.domain.state import Head, derived_history_id
from durable_memory.ports.store import Decision, NamespaceCopy, Outcome, Plan, RequestRecord


def transact(connection: sqlite3.Connection, store_history_id: str, namespace: Namespace, plan: Plan) -> Outcome:
    """Look up, load, decide, write. The caller commits, or rolls everything back if this raises."""
    key = namespace.key
    found = find_head(connection, key)
    head = found or Head(history_id=derived_history_id(store_history_id, namespace))
    if plan.request is not None:
        record = find_request(connection, key, plan.request.method, plan.request.key)
        if record is not None:
            plan.request.require_same(record.request.fingerprint)
            return Outcome(result=record.result, replayed=True, head=head)
    decision = plan.decide(load(connection, key, head, plan.reads))
    if found is None and (plan.request is not None or not _is_empty(decision)):
        _add_namespace(connection, namespace, head)
    _write_decision(connection, key, decision)
    if decision.change is not None:
        head = decision.change.head
    if decision.sessions:
        _run(connection, "count_session_write", key, {})
        head = replace(head, session_revision=head.session_revision + 1)
    if plan.request is not None:
        record = RequestRecord(request=plan.request, result=decision.result, namespace_revision=head.revision)
        _run(connection, "add_request", key, CODEC.request_columns(record))
    return Outcome(result=decision.result, replayed=False, head=head)


def import_namespace(
    connection: sqlite3.Connection, namespace: Namespace, copy: NamespaceCopy, history_id: str
) -> Head:
    """Everything of one namespace. The caller commits, or rolls everything back if this raises."""
    key = namespace.key
    found = find_head(connection, key)
    if found is not None:
        raise namespace_not_empty(found.revision)
    latest = {node.node_id: node for node in copy.revisions}
    head = Head(
        history_id=history_id,
        revision=copy.revision,
        chain_digest=copy.chain_digest,
        node_count=len(latest),
        active_count=sum(node.status is NodeStatus.ACTIVE for node in latest.values()),
        active_bytes=sum(node.active_bytes for node in latest.values()),
    )
    _add_namespace(connection, namespace, head)
    for change_set in copy.change_sets:
        _run(connection, "add_change_set", key, CODEC.change_set_columns(change_set))
    for node in copy.revisions:
        _add_revision(connection, key, replace(node, valid_to=None))
        for item in node.evidence:
            _add_evidence(connection, key, (node.node_id, item.uri, item.digest))
    for record in copy.requests:
        _run(connection, "add_request", key, CODEC.request_columns(record))
    _write_decision(
        connection,
        key,
        Decision(
            result={},
            sessions=tuple(copy.sessions),
            bindings=tuple(copy.bindings),
            runs=tuple(copy.runs),
            contexts=tuple(copy.contexts),
            events=tuple(copy.events),
        ),
    )
    return head


def _is_empty(decision: Decision) -> bool:
    return decision == Decision(result=decision.result)


def _write_decision(connection: sqlite3.Connection, key: bytes, decision: Decision) -> None:
    if decision.change is not None:
        _write_change(connection, key, decision.change)
    for session in decision.sessions:
        _run(connection, "put_session", key, CODEC.session_columns(session))
    for binding in decision.bindings:
        _run(connection, "add_binding", key, CODEC.binding_columns(binding))
    for incarnation in decision.runs:
        _run(connection, "put_run", key, CODEC.run_columns(incarnation))
    for context in decision.contexts:
        _run(connection, "add_context", key, CODEC.context_columns(context))
    for event in decision.events:
        _run(connection, "add_event", key, CODEC.event_columns(event))


def _write_change(connection: sqlite3.Connection, key: bytes, change: StagedChange) -> None:
    _require_one(_run(connection, "move_head", key, _head_columns(change.head)))
    _run(connection, "add_change_set", key, CODEC.change_set_columns(change.record))
    for node in change.revisions:
        _add_revision(connection, key, node)
    for evidence in change.new_evidence:
        _add_evidence(connection, key, evidence)


def _add_revision(connection: sqlite3.Connection, key: bytes, node: NodeRevision) -> None:
    columns = CODEC.node_revision_columns(node)
    if node.revision > 1:
        _require_one(_run(connection, "end_node_revision", key, columns))
    _run(connection, "add_node_revision", key, columns)


def _add_evidence(connection: sqlite3.Connection, key: bytes, evidence: tuple[str, str, str]) -> None:
    node_id, uri, digest = evidence
    _run(connection, "add_evidence", key, {"node_id": node_id, "uri": uri, "digest": digest})


def _add_namespace(connection: sqlite3.Connection, namespace: Namespace, head: Head) -> None:
    columns = {
        "tenant_id": namespace.tenant_id,
        "principal_id": namespace.principal_id,
        "scope_id": namespace.scope_id,
        "history_id": head.history_id,
        **_head_columns(head),
    }
    _run(connection, "add_namespace", namespace.key, columns)


def _head_columns(head: Head) -> Mapping[str, Any]:
    return {
        "revision": head.revision,
        "chain_digest": head.chain_digest,
        "node_count": head.node_count,
        "active_count": head.active_count,
        "active_bytes": head.active_bytes,
        "session_revision": head.session_revision,
    }


def _run(connection: sqlite3.Connection, name: str, key: bytes, columns: Mapping[str, Any]) -> int:
    return run(connection, name, {"namespace_key": key, **columns})


def _require_one(rows: int) -> None:
    if rows != 1:
        raise DomainError(Reason.INTERNAL, "the decision breaks an invariant of the store")
