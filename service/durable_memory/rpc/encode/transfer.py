"""Records of an export."""

from __future__ import annotations

from dataclasses import fields

from durable_memory.app.transfer_records import ExportFooter, ExportHeader, ExportRecord, SessionExport, TransferCounts
from durable_memory.domain.access import AccessEvent
from durable_memory.domain.canonical import canonical_json
from durable_memory.domain.change_set import ChangeSetRecord
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRevision
from durable_memory.domain.session import Run
from durable_memory.ports.store import RequestRecord
from durable_memory.rpc.encode.access import encode_event
from durable_memory.rpc.encode.change_set import encode_change_set
from durable_memory.rpc.encode.node import encode_namespace, encode_node, encode_token
from durable_memory.rpc.encode.session import encode_binding, encode_run, encode_session
from durable_memory.rpc.encode.times import encode_time
from durablememory.v1 import transfer_pb2 as pb

FORMAT_VERSION = 1


def encode_record(namespace: Namespace, server_version: str, record: ExportRecord) -> pb.ExportRecord:
    match record:
        case NodeRevision():
            return pb.ExportRecord(node_revision=encode_node(record))
        case ChangeSetRecord():
            return pb.ExportRecord(change_set=encode_change_set(namespace, record))
        case RequestRecord():
            return pb.ExportRecord(request=_request(record))
        case SessionExport():
            return pb.ExportRecord(session=_session(record))
        case Run():
            return pb.ExportRecord(run=encode_run(record))
        case AccessEvent():
            return pb.ExportRecord(access_event=encode_event(record))
        case ExportHeader():
            return pb.ExportRecord(
                header=pb.ExportHeader(
                    format_version=FORMAT_VERSION,
                    namespace=encode_namespace(record.namespace),
                    change_token=encode_token(record.token),
                    exported_at=encode_time(record.exported_at),
                    server_version=server_version,
                    chain_digest=record.chain_digest,
                )
            )
        case ExportFooter():
            return pb.ExportRecord(footer=pb.ExportFooter(counts=encode_counts(record.counts), digest=record.digest))


def encode_counts(counts: TransferCounts) -> pb.TransferCounts:
    return pb.TransferCounts(**{part.name: getattr(counts, part.name) for part in fields(counts)})


def _request(record: RequestRecord) -> pb.RequestRecord:
    return pb.RequestRecord(
        method=record.request.method,
        request_id=record.request.key,
        fingerprint=record.request.fingerprint,
        result_json=canonical_json(record.result).decode(),
        namespace_revision=record.namespace_revision,
    )


def _session(record: SessionExport) -> pb.SessionRecord:
    return pb.SessionRecord(
        session=encode_session(record.session),
        request_digest=record.session.request_digest,
        bindings=[
            pb.BindingRecord(
                binding_version=item.binding_version,
                binding=encode_binding(item.binding),
                binding_digest=item.binding.digest(),
                bound_by=item.bound_by,
                bound_at=encode_time(item.bound_at),
            )
            for item in record.bindings
        ],
    )
