"""A refresh of the vector index: how far it has come, and its receipt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from durable_memory_client.aio.calls import Calls
from durable_memory_client.aio.transport import sleep
from durable_memory_client.call_policy import Limit
from durable_memory_client.errors import IncompleteStreamError, MemoryServiceError
from durable_memory_client.identity import new_request_id
from durable_memory_client.methods import METHODS
from durable_memory_client.values.semantic import RefreshProgress, RefreshReceipt
from durablememory.v1 import semantic_service_pb2 as pb


class Refresh:
    """Wait for it, or iterate it to see how far it has come. It begins then, and leaving the loop ends it.

        receipt = await memory.refresh_semantic_recall("assistant").wait(print)

    Only one that ends without an error is a refresh; `receipt` is known from then on. A lost connection is taken up
    again by the retry policy of all calls, and vectors that were made are not made twice. Iterating it again asks for
    the receipt of the same refresh; for another one, make another.
    """

    def __init__(self, calls: Calls, request: pb.RefreshSemanticRecallRequest, timeout: float | None) -> None:
        request.request_id = request.request_id or new_request_id()
        self._calls = calls
        self._request = request
        self._timeout = timeout
        self.receipt: RefreshReceipt | None = None

    async def __aiter__(self) -> AsyncIterator[RefreshProgress]:
        policy = METHODS[type(self._request)].policy
        limit = Limit(self._timeout)
        attempt = 0
        self.receipt = None
        before: MemoryServiceError | None = None
        while True:
            attempt += 1
            receipt: RefreshReceipt | None = None
            try:
                stream = await self._calls.stream(
                    self._request, pb.RefreshSemanticRecallResponse, timeout=limit.left, attempt=attempt
                )
            except Exception as unsent:
                # As in every call: what became of the attempt before is still unknown.
                if before is None:
                    raise
                raise before from unsent
            try:
                async for message in stream:
                    if message.HasField("receipt"):
                        receipt = RefreshReceipt.from_proto(message.receipt)
                    elif message.HasField("progress"):
                        yield RefreshProgress.from_proto(message.progress)
            except MemoryServiceError as error:
                delay = policy.delay(error, attempt)
                if delay is None or not limit.outlasts(delay):
                    raise
                before = error
                await sleep(delay)
            else:
                if receipt is None:
                    raise IncompleteStreamError("the refresh ended before its receipt")
                self.receipt = receipt
                return
            finally:
                stream.cancel()

    async def wait(self, on_progress: Callable[[RefreshProgress], None] | None = None) -> RefreshReceipt:
        """Refresh, and return the receipt. `on_progress` is called with every step.

        Raises: SessionNotFoundError, SessionClosedError, SemanticUnavailableError (no generation, or the provider
        failed), ConsistencyUnsupportedError, LeaseHeldError (somebody else refreshes it now), LeaseFencedError,
        IndexRevisionConflictError, SourceDriftError, QuotaExceededError.
        """
        async for progress in self:
            if on_progress is not None:
                on_progress(progress)
        assert self.receipt is not None
        return self.receipt
