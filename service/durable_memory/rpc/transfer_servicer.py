"""TransferService on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final

import grpc

from durable_memory.app.transfer import TransferService
from durable_memory.app.transfer_records import ExportRecord
from durable_memory.domain.errors import DomainError, Reason, invalid_field, limit_exceeded
from durable_memory.domain.limits import IMPORT_MAX_BYTES
from durable_memory.rpc.decode.transfer import decode_record
from durable_memory.rpc.encode.node import encode_token
from durable_memory.rpc.encode.transfer import encode_counts, encode_record
from durable_memory.rpc.request import authorised, keyed
from durablememory.v1 import transfer_pb2
from durablememory.v1 import transfer_service_pb2 as pb
from durablememory.v1.transfer_service_pb2_grpc import TransferServiceServicer

Context = grpc.aio.ServicerContext[Any, Any]

_RECORDS_PER_MESSAGE: Final = 256
_BYTES_PER_MESSAGE: Final = 1024 * 1024
_FRAMING_BYTES: Final = 8
"""What a record takes in a message beside its own bytes, at most."""


class TransferServicer(TransferServiceServicer):
    """Moving a whole namespace out of a store and into another.

    What no import would take is not exported either. An import is held until it is verified as a whole; all that run at
    once hold no more together than one may.
    """

    def __init__(self, transfer: TransferService, server_version: str) -> None:
        self._transfer = transfer
        self._server_version = server_version
        self._held = 0  # bytes of all imports that run now

    async def ExportNamespace(
        self, request: pb.ExportNamespaceRequest, context: Context
    ) -> AsyncIterator[pb.ExportNamespaceResponse]:
        call = authorised("TransferService.ExportNamespace", request)
        batch: list[transfer_pb2.ExportRecord] = []
        size = total = 0
        async with aclosing(self._transfer.export(call)) as records:
            async for record in records:
                encoded = encode_record(call.namespace, self._server_version, record)
                size += encoded.ByteSize()
                total += encoded.ByteSize() + _FRAMING_BYTES
                if total > IMPORT_MAX_BYTES:
                    raise limit_exceeded("records", IMPORT_MAX_BYTES, total, "bytes")
                if batch and size > _BYTES_PER_MESSAGE:
                    yield pb.ExportNamespaceResponse(records=batch)
                    batch, size = [], encoded.ByteSize()
                batch.append(encoded)
                if len(batch) == _RECORDS_PER_MESSAGE:
                    yield pb.ExportNamespaceResponse(records=batch)
                    batch, size = [], 0
        yield pb.ExportNamespaceResponse(records=batch)

    async def ImportNamespace(
        self, requests: AsyncIterator[pb.ImportNamespaceRequest], context: Context
    ) -> pb.ImportNamespaceResponse:
        rpc = "TransferService.ImportNamespace"
        first = await anext(requests, pb.ImportNamespaceRequest())
        call = authorised(rpc, first)
        ends = pb.ImportNamespaceRequest()
        records: list[ExportRecord] = []
        with self._holding() as hold:
            hold(first.ByteSize())
            _take(first, records, ends)
            async for part in requests:
                hold(part.ByteSize())
                _refuse_contradiction(first, part)
                _take(part, records, ends)
            # The footer's digest covers every record between the two, and is verified: header and footer say which
            # export this is, however it was cut into messages.
            mutation = keyed(call, rpc, ends, first.request_id)
            imported = await self._transfer.import_(mutation, records)
        return pb.ImportNamespaceResponse(
            change_token=encode_token(imported.token), counts=encode_counts(imported.counts)
        )

    @contextmanager
    def _holding(self) -> Iterator[Callable[[int], None]]:
        """Within, the function given counts bytes that one import holds.

        It raises: LIMIT_EXCEEDED for what is too large alone, OVERLOADED for what is too large beside others.
        """
        size = 0

        def hold(more: int) -> None:
            nonlocal size
            size += more
            self._held += more
            if size > IMPORT_MAX_BYTES:
                raise limit_exceeded("records", IMPORT_MAX_BYTES, size, "bytes")
            if self._held > IMPORT_MAX_BYTES:
                raise DomainError(
                    Reason.OVERLOADED,
                    "other imports hold what this server has room for; import again when they are over",
                    limit=IMPORT_MAX_BYTES,
                )

        try:
            yield hold
        finally:
            self._held -= size


def _take(part: pb.ImportNamespaceRequest, records: list[ExportRecord], ends: pb.ImportNamespaceRequest) -> None:
    if len(part.records) > _RECORDS_PER_MESSAGE:
        raise limit_exceeded("records", _RECORDS_PER_MESSAGE, len(part.records), "items")
    for given in part.records:
        records.append(decode_record(f"records[{len(records)}]", given))
        if len(ends.records) == 2:
            del ends.records[1:]
        ends.records.append(given)


def _refuse_contradiction(first: pb.ImportNamespaceRequest, part: pb.ImportNamespaceRequest) -> None:
    if part.request_id and part.request_id != first.request_id:
        raise invalid_field("request_id", "differs from that of the first message")
    if part.HasField("namespace") and part.namespace != first.namespace:
        raise invalid_field("namespace", "differs from that of the first message")
