"""Change sets as they were committed."""

from __future__ import annotations

from typing import Final

from durable_memory.domain.change_set import ChangeSetRecord, NodeChange
from durable_memory.domain.citation import Citation
from durable_memory.domain.namespace import Namespace
from durable_memory.rpc.encode.enums import number, optional_number
from durable_memory.rpc.encode.node import encode_citation, encode_namespace
from durable_memory.rpc.encode.times import encode_time
from durablememory.v1 import change_set_pb2 as pb

OPERATION_KINDS: Final = {
    "create": pb.OPERATION_KIND_CREATE,
    "activate": pb.OPERATION_KIND_ACTIVATE,
    "corroborate": pb.OPERATION_KIND_CORROBORATE,
    "revise": pb.OPERATION_KIND_REVISE,
    "add_relation": pb.OPERATION_KIND_ADD_RELATION,
    "remove_relation": pb.OPERATION_KIND_REMOVE_RELATION,
    "set_status": pb.OPERATION_KIND_SET_STATUS,
}


def encode_change_set(namespace: Namespace, record: ChangeSetRecord) -> pb.ChangeSet:
    return pb.ChangeSet(
        namespace=encode_namespace(namespace),
        namespace_revision=record.namespace_revision,
        method=record.method,
        idempotency_key=record.request_id,
        occurred_at=encode_time(record.occurred_at),
        committed_at=encode_time(record.committed_at),
        caller=record.caller,
        changes=[_change(record.namespace_revision, change) for change in record.changes],
        note=record.note,
        digest=record.digest(),
        chain_digest=record.chain_digest,
    )


def _change(namespace_revision: int, change: NodeChange) -> pb.NodeChange:
    return pb.NodeChange(
        citation=encode_citation(Citation(namespace_revision, change.node_id, change.revision, change.content_digest)),
        revision_digest=change.revision_digest,
        operations=[OPERATION_KINDS[name] for name in change.operations],
        status_before=optional_number(change.status_before),
        status_after=number(change.status_after),
        content_changed=change.content_changed,
    )
