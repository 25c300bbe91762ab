"""Following a namespace: its changes in order, without gaps, across lost streams."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Final, Self

from durable_memory_client.aio.calls import Calls, Stream
from durable_memory_client.aio.transport import sleep
from durable_memory_client.call_policy import RetryPolicy
from durable_memory_client.errors import IncompleteStreamError, MemoryServiceError, MemoryUnavailableError
from durable_memory_client.methods import METHODS
from durable_memory_client.values.change_set import WatchedChange
from durable_memory_client.values.namespace import ChangeToken, Namespace
from durable_memory_client.values.wire import stated
from durablememory.v1 import repository_service_pb2 as pb

_MAX_EXPONENT: Final = 10


class Watch(AsyncIterator[WatchedChange]):
    """An endless iterator of changes. Close it, or leave its block, to end it.

    `position` is the change token up to which everything has been read: keep it to go on from there another time.
    A read that is given up loses nothing: the next one goes on from there. A watch that was not told where to start
    has no position until its first message: what is given up or lost before it begins again, at a later now.
    """

    def __init__(
        self,
        calls: Calls,
        namespace: Namespace,
        after: ChangeToken | int | None,
        *,
        include_nodes: bool,
        give_up_after: float | None,
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._include_nodes = include_nodes
        self._give_up_after = give_up_after
        self._after = after.namespace_revision if isinstance(after, ChangeToken) else after
        self._history_id = after.history_id if isinstance(after, ChangeToken) else None
        self._stream: Stream[pb.WatchNamespaceResponse] | None = None
        self._failures = 0
        self._lost_at: float | None = None
        self._closed = False
        self.position: ChangeToken | None = after if isinstance(after, ChangeToken) else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchedChange:
        while True:
            if self._closed:
                raise StopAsyncIteration
            try:
                message = await self._read()
            except MemoryUnavailableError as error:
                await self._lost(error)
                continue
            if message is None:
                await self._lost(None)
                continue
            self._failures, self._lost_at = 0, None
            if message.WhichOneof("event") == "heartbeat":
                self._heard(ChangeToken.from_proto(message.heartbeat.change_token))
            elif message.WhichOneof("event") == "change":
                change = WatchedChange.from_proto(message.change)
                if self._moved(change.change_token):
                    return change

    async def close(self) -> None:
        """End the watch; a reader that waits gets the end of the iteration."""
        self._closed = True
        self._drop()

    async def _read(self) -> pb.WatchNamespaceResponse | None:
        stream = self._stream  # which another thread may end at any time
        if stream is None:
            request = stated(
                pb.WatchNamespaceRequest,
                namespace=self._namespace.to_proto(),
                after_namespace_revision=self._after,
                history_id=self._history_id,
                include_nodes=self._include_nodes,
            )
            stream = self._stream = await self._calls.stream(request, pb.WatchNamespaceResponse)
            if self._closed:  # meanwhile, and without a stream to end
                self._drop()
                return None
        try:
            async for message in stream:
                return message
        except MemoryServiceError:
            self._drop()
            if self._closed:
                return None
            raise
        except BaseException:
            # A reader that was cancelled takes its call along; the next one goes on from the position.
            self._drop()
            raise
        self._drop()
        return None

    async def _lost(self, error: MemoryUnavailableError | None) -> None:
        """Wait before the next attempt. Raises: the error, when the time to give up has come."""
        if self._closed:
            return
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        if error is not None and self._give_up_after is not None and now - self._lost_at >= self._give_up_after:
            raise error
        self._failures += 1
        retry = METHODS[pb.WatchNamespaceRequest].policy.retry
        assert isinstance(retry, RetryPolicy)
        asked = 0.0 if error is None or error.retry_after is None else error.retry_after
        await sleep(max(retry.backoff(min(self._failures, _MAX_EXPONENT)), asked))

    def _heard(self, token: ChangeToken) -> None:
        if self._after is None:
            # The watch began now, and now has a name: from here on it can be resumed.
            self._after = token.namespace_revision
        self._history_id = token.history_id
        self.position = ChangeToken(token.history_id, self._after)

    def _moved(self, token: ChangeToken) -> bool:
        """Whether the change is the next one. Raises: IncompleteStreamError for a gap."""
        if self._after is not None and token.namespace_revision <= self._after:
            return False
        if self._after is not None and token.namespace_revision != self._after + 1:
            raise IncompleteStreamError(
                f"the watch went from namespace revision {self._after} to {token.namespace_revision}"
            )
        self._after, self._history_id, self.position = token.namespace_revision, token.history_id, token
        return True

    def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.cancel()
