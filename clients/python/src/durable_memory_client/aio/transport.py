"""Where calling with asyncio differs from calling in a thread: the channel, waiting, and doing several things at once.

`sync/transport.py` is its counterpart, written by hand; everything else of `sync` is generated from this package.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from durable_memory_client.call_policy import Limit
from durable_memory_client.connection import Connection
from durable_memory_client.failures import error_of_unsent
from durable_memory_client.methods import Method

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Thunk(Protocol[T_co]):
    """Something to do later."""

    async def __call__(self) -> T_co: ...


class Gate:
    """Lets one in at a time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._present = 0  # within, or waiting

    @asynccontextmanager
    async def entered(self, limit: Limit) -> AsyncIterator[None]:
        """Wait for as long as the limit says, which is told of a wait. Raises: DeadlineExceededError."""
        limit.waited = limit.waited or self._present > 0
        self._present += 1
        try:
            try:
                async with asyncio.timeout(limit.left):
                    await self._lock.acquire()
            except TimeoutError:
                raise error_of_unsent() from None
            try:
                yield
            finally:
                self._lock.release()
        finally:
            self._present -= 1


class Replies:
    """The messages of one streaming call, in order."""

    def __init__(self, method: Method, call: grpc.aio.UnaryStreamCall[Any, Any]) -> None:
        self._method = method
        self._call = call
        self._cancelled = False

    async def read(self) -> Message | None:
        """The next message, or None at the end. Raises: grpc.RpcError, DecodeError."""
        try:
            with _cancelled_by_its_task_alone():
                message: Any = await self._call.read()
        except grpc.RpcError:
            if self._cancelled:
                return None
            raise
        return None if message is grpc.aio.EOF else self._method.decode(message)

    def cancel(self) -> None:
        self._cancelled = True
        self._call.cancel()


class Transport:
    """One channel, opened by the first call in the event loop that makes it, and bound to that loop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._channel: grpc.aio.Channel | None = None
        self._unary: dict[str, grpc.aio.UnaryUnaryMultiCallable[Any, Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def unary(self, method: Method, request: Message, timeout: float | None) -> Any:
        """Raises: grpc.RpcError, DecodeError; ValueError for what cannot be sent."""
        channel = self._open()
        call = self._unary.get(method.path)
        if call is None:
            call = self._unary[method.path] = channel.unary_unary(method.path)
        encoded = method.encode(request)
        with _cancelled_by_its_task_alone():
            return method.decode(await call(encoded, timeout=timeout, metadata=self._connection.headers()))

    async def upload(self, method: Method, requests: AsyncIterator[Message], timeout: float | None) -> Any:
        """Raises: grpc.RpcError, DecodeError; ValueError for what cannot be sent; what `requests` raises."""
        start: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = self._open().stream_unary(method.path)
        call = start(timeout=timeout, metadata=self._connection.headers())
        try:
            async for request in requests:
                if not await _written(call, method.encode(request)):
                    break
            with _cancelled_by_its_task_alone():
                await call.done_writing()
                return method.decode(await call)
        except BaseException:
            call.cancel()  # harmless after its end
            raise

    async def stream(self, method: Method, request: Message, timeout: float | None) -> Replies:
        """Raises: ValueError for what cannot be sent."""
        call: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self._open().unary_stream(method.path)
        return Replies(method, call(method.encode(request), timeout=timeout, metadata=self._connection.headers()))

    async def close(self) -> None:
        self._closed = True
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    def _open(self) -> grpc.aio.Channel:
        if self._closed:
            raise RuntimeError("this client is closed")
        loop = asyncio.get_running_loop()
        if self._channel is None:
            credentials, options = self._connection.credentials(), self._connection.channel_options()
            self._channel = (
                grpc.aio.insecure_channel(self._connection.target, options)
                if credentials is None
                else grpc.aio.secure_channel(self._connection.target, credentials, options)
            )
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError("this client belongs to another event loop; make one client per loop")
        return self._channel


async def _written(call: grpc.aio.StreamUnaryCall[bytes, bytes], message: bytes) -> bool:
    """Whether the service still reads. Raises: grpc.RpcError."""
    try:
        with _cancelled_by_its_task_alone():
            await call.write(message)
    except asyncio.InvalidStateError:
        return False  # it has answered already; what it said follows
    return True


@contextmanager
def _cancelled_by_its_task_alone() -> Iterator[None]:
    """A call that was cancelled otherwise has failed, as one whose client was closed: grpc would cancel its task."""
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise grpc.aio.AioRpcError(
            grpc.StatusCode.CANCELLED, grpc.aio.Metadata(), grpc.aio.Metadata(), "the call was cancelled on this side"
        ) from None


async def each(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    """The items, from either kind of iterable."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def gather(thunks: Sequence[Thunk[T]]) -> list[T]:
    """Do all at once; the results in order. The first error cancels the others, and is raised when they have ended."""
    tasks = [asyncio.create_task(_started(thunk)) for thunk in thunks]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _started(thunk: Thunk[T]) -> T:
    return await thunk()
