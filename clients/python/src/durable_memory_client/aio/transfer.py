"""The transfer service, on one namespace: all of it, out of a store and into another."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable

from durable_memory_client.aio.calls import Calls
from durable_memory_client.aio.transport import each
from durable_memory_client.errors import IncompleteStreamError
from durable_memory_client.values.namespace import Namespace
from durable_memory_client.values.transfer import (
    ImportChunks,
    Imported,
    record_of_line,
    record_to_line,
)
from durable_memory_client.values.wire import stated
from durablememory.v1 import transfer_service_pb2 as pb


class TransferCalls:
    """An export is text: one JSON record per line, header first, footer last."""

    _calls: Calls
    _namespace: Namespace

    async def export_namespace(self, *, timeout: float | None = None) -> AsyncIterator[str]:
        """Everything that the namespace has, as lines without line ends. Only one that ends without an error is one.

        Raises: HistoryCompactedError, IncompleteStreamError.
        """
        request = stated(pb.ExportNamespaceRequest, namespace=self._namespace.to_proto())
        stream = await self._calls.stream(request, pb.ExportNamespaceResponse, timeout=timeout)
        complete = False
        try:
            async for message in stream:
                for record in message.records:
                    complete = record.HasField("footer")
                    yield record_to_line(record)
        finally:
            stream.cancel()
        if not complete:
            raise IncompleteStreamError("the export ended before its footer")

    async def import_namespace(
        self,
        lines: Iterable[str] | AsyncIterable[str],
        *,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Imported:
        """Take an export into this namespace, which must be empty and the exported one: all or nothing, verified.

        It is sent once, because `lines` can be read only once: after a lost connection, call again with the same
        lines and the error's `request_id`. No deadline interrupts `lines`, which may be read for a moment after the
        call has failed.

        Raises: RevisionConflictError (the namespace is not empty), InvalidFieldError (the export is of another
        one), DataCorruptedError, NamespaceTooLargeError, ValueError (a line is not a record).
        """
        first = stated(pb.ImportNamespaceRequest, namespace=self._namespace.to_proto(), request_id=request_id)
        response = await self._calls.upload(first, _requests(lines), pb.ImportNamespaceResponse, timeout=timeout)
        return Imported.from_proto(response)


async def _requests(lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[pb.ImportNamespaceRequest]:
    chunks = ImportChunks()
    async for line in each(lines):
        for request in chunks.add(record_of_line(line)):
            yield request
    for request in chunks.rest():
        yield request
