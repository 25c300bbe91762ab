"""The contract as it is: any RPC with its own messages, under the same request ids, deadlines, retries and errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

from google.protobuf.message import Message

from durable_memory_client.aio.calls import Calls
from durable_memory_client.values.namespace import Namespace

R = TypeVar("R", bound=Message)


class ContractCalls:
    """For what the other methods do not offer, and for code that has messages of the contract already."""

    _calls: Calls
    _namespace: Namespace

    async def call(self, request: Message, response_type: type[R], *, timeout: float | None = None) -> R:
        """Make the unary RPC that `request` belongs to. A request without a namespace is for this one.

        Raises: MemoryServiceError; TypeError if the RPC does not answer with `response_type`.
        """
        return await self._calls.unary(self._addressed(request), response_type, timeout=timeout)

    async def call_stream(
        self, request: Message, response_type: type[R], *, timeout: float | None = None
    ) -> AsyncIterator[R]:
        """The messages of the streaming RPC that `request` belongs to. It is not taken up again when it is lost.

        Raises: MemoryServiceError; TypeError if the RPC does not answer with `response_type`.
        """
        stream = await self._calls.stream(self._addressed(request), response_type, timeout=timeout)
        try:
            async for message in stream:
                yield message
        finally:
            stream.cancel()

    def _addressed(self, request: Message) -> Message:
        """A copy of the request, in this namespace unless it names one."""
        addressed = type(request)()
        addressed.CopyFrom(request)
        if "namespace" in request.DESCRIPTOR.fields_by_name and not request.HasField("namespace"):
            getattr(addressed, "namespace").CopyFrom(self._namespace.to_proto())  # noqa: B009 - not in every message
        return addressed
