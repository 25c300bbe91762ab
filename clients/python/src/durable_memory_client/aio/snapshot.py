"""The complete view of a namespace at one revision, checked as it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator

from durable_memory_client.aio.calls import Calls
from durable_memory_client.errors import IncompleteStreamError
from durable_memory_client.values.enums import NodeStatus
from durable_memory_client.values.memory import Node
from durable_memory_client.values.namespace import ChangeToken, Namespace
from durablememory.v1 import repository_service_pb2 as pb


class Snapshot:
    """Iterate it for the nodes, in id order. Only an iteration that ends without an error has seen a snapshot.

    `namespace`, `change_token` and `statuses` are known from the first node on; `node_count`, `content_bytes` and
    `digest` at the end. Equal node state has an equal digest, in any store.
    """

    namespace: Namespace | None
    change_token: ChangeToken | None
    statuses: tuple[NodeStatus, ...]
    node_count: int | None
    content_bytes: int | None
    digest: str | None

    def __init__(self, calls: Calls, request: pb.SnapshotRequest, timeout: float | None) -> None:
        self._calls = calls
        self._request = request
        self._timeout = timeout
        self._forget()

    async def __aiter__(self) -> AsyncIterator[Node]:
        self._forget()
        stream = await self._calls.stream(self._request, pb.SnapshotResponse, timeout=self._timeout)
        nodes = content_bytes = 0
        footer: pb.SnapshotFooter | None = None
        try:
            async for message in stream:
                if footer is not None:
                    raise IncompleteStreamError("the snapshot goes on after its footer")
                part = message.WhichOneof("message")
                if part == "header":
                    self._begin(message.header)
                elif part == "node":
                    nodes += 1
                    content_bytes += len(message.node.content.encode())
                    yield Node.from_proto(message.node)
                elif part == "footer":
                    footer = message.footer
        finally:
            stream.cancel()
        if self.change_token is None or footer is None:
            raise IncompleteStreamError("the snapshot ended before its footer")
        if footer.node_count != nodes:
            raise IncompleteStreamError(f"the snapshot has {footer.node_count} nodes, of which {nodes} arrived")
        if not self._request.omit_content and footer.content_bytes != content_bytes:
            raise IncompleteStreamError(
                f"the snapshot has {footer.content_bytes} bytes of content, of which {content_bytes} arrived"
            )
        self.node_count, self.content_bytes, self.digest = nodes, footer.content_bytes, footer.digest

    async def all(self) -> list[Node]:
        """All nodes at once, complete."""
        return [node async for node in self]

    def _forget(self) -> None:
        """What an iteration before this one found is of another snapshot."""
        self.namespace = self.change_token = None
        self.statuses = ()
        self.node_count = self.content_bytes = self.digest = None

    def _begin(self, header: pb.SnapshotHeader) -> None:
        self.namespace = Namespace.from_proto(header.namespace)
        self.change_token = ChangeToken.from_proto(header.change_token)
        self.statuses = tuple(map(NodeStatus.from_number, header.statuses))
