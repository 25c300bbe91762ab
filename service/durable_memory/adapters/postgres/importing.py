"""A whole namespace at once, in slices that keep messages and memory bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from durable_memory.adapters.postgres.rows import (
    BINDING,
    CHANGE_SET,
    CODEC,
    CONTEXT,
    EVENT,
    NODE,
    REQUEST,
    RUN,
    SESSION,
    SETTLED,
    arrays,
    evidence_key,
)
from durable_memory.adapters.postgres.transaction import WriteTransaction
from durable_memory.adapters.postgres.writing import defect
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRevision, NodeStatus
from durable_memory.domain.state import Head
from durable_memory.ports.store import NamespaceCopy

T = TypeVar("T")

_SLICE: Final = 500


async def write_copy(transaction: WriteTransaction, namespace: Namespace, copy: NamespaceCopy, history_id: str) -> Head:
    """Write everything of `copy` to a namespace whose row is locked and that has nothing else."""
    key = namespace.key
    revisions, head = _settled(copy, history_id)
    await transaction.execute(
        "replace_head",
        key,
        head.history_id,
        head.revision,
        head.chain_digest,
        head.node_count,
        head.active_count,
        head.active_bytes,
    )
    for records in _slices(copy.change_sets):
        columns = arrays(CHANGE_SET, map(CODEC.change_set_columns, records))
        await transaction.execute("import_change_sets", key, *columns)
    for nodes in _slices(revisions):
        await transaction.execute("import_revisions", key, *arrays(NODE, map(CODEC.node_revision_columns, nodes)))
        evidence = {(node.node_id, evidence_key(item.uri, item.digest)) for node in nodes for item in node.evidence}
        columns = [[node_id for node_id, _ in evidence], [digest for _, digest in evidence]]
        await transaction.execute("import_evidence", key, *columns)
    for requests in _slices(copy.requests):
        await transaction.execute("add_requests", key, *arrays(REQUEST, map(CODEC.request_columns, requests)))
    for sessions in _slices(copy.sessions):
        columns = arrays(SESSION, map(CODEC.session_columns, sessions))
        await transaction.execute("write_sessions", key, *columns, *arrays(BINDING, ()), 0)
    for bindings in _slices(copy.bindings):
        columns = arrays(BINDING, map(CODEC.binding_columns, bindings))
        await transaction.execute("write_sessions", key, *arrays(SESSION, ()), *columns, 0)
    nothing = arrays(SETTLED, ())
    for runs in _slices(copy.runs):
        columns = arrays(RUN, map(CODEC.run_columns, runs))
        await transaction.execute("write_access", key, *columns, *arrays(CONTEXT, ()), *arrays(EVENT, ()), *nothing)
    for contexts in _slices(copy.contexts):
        columns = arrays(CONTEXT, map(CODEC.context_columns, contexts))
        await transaction.execute("write_access", key, *arrays(RUN, ()), *columns, *arrays(EVENT, ()), *nothing)
    for events in _slices(copy.events):
        columns = arrays(EVENT, map(CODEC.event_columns, events))
        row = await transaction.fetch_row(
            "write_access", key, *arrays(RUN, ()), *arrays(CONTEXT, ()), *columns, *nothing
        )
        if row is None or row["happened"] != len(events):
            raise defect()
    return head


def _settled(copy: NamespaceCopy, history_id: str) -> tuple[list[NodeRevision], Head]:
    """The revisions with `valid_to` from those that replaced them, and the head that they add up to."""
    current: dict[str, NodeRevision] = {}
    revisions: dict[tuple[str, int], NodeRevision] = {}
    for node in copy.revisions:
        before = current.get(node.node_id)
        if before is not None:
            revisions[before.node_id, before.revision] = replace(before, valid_to=node.valid_from)
        current[node.node_id] = revisions[node.node_id, node.revision] = replace(node, valid_to=None)
    head = Head(
        history_id=history_id,
        revision=copy.revision,
        chain_digest=copy.chain_digest,
        node_count=len(current),
        active_count=sum(node.status is NodeStatus.ACTIVE for node in current.values()),
        active_bytes=sum(node.active_bytes for node in current.values()),
    )
    return list(revisions.values()), head


def _slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _SLICE):
        yield items[start : start + _SLICE]
