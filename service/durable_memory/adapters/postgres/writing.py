"""What a decision writes, in as few statements as its parts need."""

from __future__ import annotations

from dataclasses import replace

from durable_memory.adapters.codec import Columns, encode_json
from durable_memory.adapters.postgres.loading import ContendedError
from durable_memory.adapters.postgres.rows import (
    BINDING,
    CODEC,
    CONTEXT,
    EVENT,
    NODE,
    RUN,
    SESSION,
    SETTLED,
    arrays,
    evidence_key,
)
from durable_memory.adapters.postgres.transaction import WriteTransaction
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.staging import StagedChange
from durable_memory.domain.state import Head
from durable_memory.ports.store import Decision, Loaded, Plan, Reads, RequestKey, RequestRecord


def head_after(head: Head, decision: Decision) -> Head:
    """Where the namespace stands once the decision is written."""
    after = head if decision.change is None else decision.change.head
    return replace(after, session_revision=head.session_revision + (1 if decision.sessions else 0))


def defect() -> DomainError:
    """A decision that no correct caller makes; nothing of it is written."""
    return DomainError(Reason.INTERNAL, "the decision breaks an invariant of the store")


async def write_serial(
    transaction: WriteTransaction, namespace: Namespace, plan: Plan, decision: Decision, loaded: Loaded
) -> bool:
    """Write the decision of a NAMESPACE plan with its request. Returns whether there was anything to write."""
    request = plan.request
    if decision.change is not None:
        await _write_change(transaction, namespace, decision.change, decision, request)
    elif request is not None:
        revision = loaded.head.revision
        row = [request.method], [request.key], [request.fingerprint], [encode_json(decision.result)], [revision]
        await transaction.execute("add_requests", namespace.key, *row)
    parts = await _write_parts(transaction, namespace, plan.reads, decision, loaded)
    return decision.change is not None or request is not None or parts


async def write_beside(
    transaction: WriteTransaction, namespace: Namespace, plan: Plan, decision: Decision, loaded: Loaded
) -> bool:
    """Write the decision of a NODES plan, and settle the request that it claimed."""
    if decision.change is not None:
        raise defect()
    return await _write_parts(transaction, namespace, plan.reads, decision, loaded, claimed=plan.request)


async def _write_change(
    transaction: WriteTransaction,
    namespace: Namespace,
    change: StagedChange,
    decision: Decision,
    request: RequestKey | None,
) -> None:
    record = CODEC.change_set_columns(change.record)
    requests = [] if request is None else [request]
    row = await transaction.fetch_row(
        "write_change",
        namespace.key,
        change.head.revision,
        change.head.chain_digest,
        change.head.node_count,
        change.head.active_count,
        change.head.active_bytes,
        record["method"],
        record["request_id"],
        record["caller"],
        record["note"],
        record["occurred_at"],
        record["committed_at"],
        record["changes"],
        [node_id for node_id, _, _ in change.new_evidence],
        [evidence_key(uri, digest) for _, uri, digest in change.new_evidence],
        *arrays(NODE, map(CODEC.node_revision_columns, change.revisions)),
        [item.method for item in requests],
        [item.key for item in requests],
        [item.fingerprint for item in requests],
        [encode_json(decision.result) for _ in requests],
    )
    expected = {
        "moved": 1,
        "replaced": sum(node.revision > 1 for node in change.revisions),
        "written": len(change.revisions),
    }
    if row is None or dict(row) != expected:
        raise defect()


async def _write_parts(
    transaction: WriteTransaction,
    namespace: Namespace,
    reads: Reads,
    decision: Decision,
    loaded: Loaded,
    *,
    claimed: RequestKey | None = None,
) -> bool:
    """Everything but the change set, and the record of a claimed request. Returns whether there was any of it."""
    if decision.sessions or decision.bindings:
        await transaction.execute(
            "write_sessions",
            namespace.key,
            *arrays(SESSION, map(CODEC.session_columns, decision.sessions)),
            *arrays(BINDING, map(CODEC.binding_columns, decision.bindings)),
            1 if decision.sessions else 0,
        )
    if not (decision.runs or decision.contexts or decision.events or claimed):
        return bool(decision.sessions or decision.bindings)
    event_ids = {event.event_id for event in decision.events}
    if len(event_ids) < len(decision.events) or event_ids & loaded.events.keys():
        raise defect()
    # In one order, so that two batches that share rows wait for each other in no circle.
    runs = sorted(decision.runs, key=lambda run: (run.session_id, run.run_id, run.incarnation))
    contexts = sorted(decision.contexts, key=lambda context: context.context_id)
    events = sorted(decision.events, key=lambda event: event.event_id)
    row = await transaction.fetch_row(
        "write_access",
        namespace.key,
        *arrays(RUN, map(CODEC.run_columns, runs)),
        *arrays(CONTEXT, map(CODEC.context_columns, contexts)),
        *arrays(EVENT, map(CODEC.event_columns, events)),
        *arrays(SETTLED, () if claimed is None else (_settled(claimed, decision, loaded),)),
    )
    if row is None or row["happened"] != len(events):
        # Somebody recorded one of these events since it was looked for: decide again, with it in sight.
        raise ContendedError if event_ids <= reads.event_ids else defect()
    return True


def _settled(request: RequestKey, decision: Decision, loaded: Loaded) -> Columns:
    record = RequestRecord(request=request, result=decision.result, namespace_revision=loaded.head.revision)
    return CODEC.request_columns(record)
