"""Exports as text, and what an import took in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from durable_memory_client.values.namespace import ChangeToken
from durablememory.v1 import transfer_pb2, transfer_service_pb2

_CHUNK_RECORDS: Final = 256
_CHUNK_BYTES: Final = 1024 * 1024


def record_to_line(record: transfer_pb2.ExportRecord) -> str:
    """The record in the JSON mapping of Protocol Buffers, with the proto's field names, on one line."""
    fields = MessageToDict(record, preserving_proto_field_name=True)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def record_of_line(line: str) -> transfer_pb2.ExportRecord:
    """The inverse. Raises: ValueError, which never quotes the line."""
    try:
        fields = json.loads(line)
        record = ParseDict(fields if isinstance(fields, dict) else {}, transfer_pb2.ExportRecord())
    except (ValueError, ParseError, RecursionError):
        record = transfer_pb2.ExportRecord()
    if record.WhichOneof("record") is None:
        raise ValueError("a line of the export is not a record")
    return record


class ImportChunks:
    """Packs records into requests of a bounded number and size."""

    def __init__(self) -> None:
        self._records: list[transfer_pb2.ExportRecord] = []
        self._bytes = 0

    def add(self, record: transfer_pb2.ExportRecord) -> Iterator[transfer_service_pb2.ImportNamespaceRequest]:
        """The requests that are full once the record is to be sent too."""
        size = record.ByteSize()
        if self._records and (len(self._records) == _CHUNK_RECORDS or self._bytes + size > _CHUNK_BYTES):
            yield from self.rest()
        self._records.append(record)
        self._bytes += size

    def rest(self) -> Iterator[transfer_service_pb2.ImportNamespaceRequest]:
        """What has not been sent yet."""
        if self._records:
            yield transfer_service_pb2.ImportNamespaceRequest(records=self._records)
        self._records, self._bytes = [], 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was imported, and where the namespace stands in its new history."""

    change_token: ChangeToken
    nodes: int
    node_revisions: int
    change_sets: int
    requests: int
    sessions: int
    runs: int
    access_events: int

    @classmethod
    def from_proto(cls, message: transfer_service_pb2.ImportNamespaceResponse) -> Imported:
        counts = message.counts
        return cls(
            change_token=ChangeToken.from_proto(message.change_token),
            nodes=counts.nodes,
            node_revisions=counts.node_revisions,
            change_sets=counts.change_sets,
            requests=counts.requests,
            sessions=counts.sessions,
            runs=counts.runs,
            access_events=counts.access_events,
        )
