"""The blocking counterpart of `aio/transport.py`, written by hand: a channel of grpc's own threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, Final, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from durable_memory_client.call_policy import Limit
from durable_memory_client.connection import Connection
from durable_memory_client.failures import error_of_unsent
from durable_memory_client.methods import Method

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

_CLOSED: Final = "this client is closed"


class Thunk(Protocol[T_co]):
    """Something to do later."""

    def __call__(self) -> T_co: ...


class Gate:
    """Lets one in at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def entered(self, limit: Limit) -> Iterator[None]:
        """Wait for as long as the limit says, which is told of a wait. Raises: DeadlineExceededError."""
        if not self._lock.acquire(blocking=False):
            limit.waited = True
            left = limit.left
            if not self._lock.acquire(timeout=-1 if left is None else min(left, threading.TIMEOUT_MAX)):
                raise error_of_unsent()
        try:
            yield
        finally:
            self._lock.release()


class Replies:
    """The messages of one streaming call, in order."""

    def __init__(self, method: Method, call: Any) -> None:
        self._method = method
        self._call = call
        self._cancelled = False

    def read(self) -> Message | None:
        """The next message, or None at the end. Raises: grpc.RpcError, DecodeError."""
        try:
            message: bytes | None = next(self._call, None)
        except grpc.RpcError:
            if self._cancelled:
                return None
            raise
        return None if message is None else self._method.decode(message)

    def cancel(self) -> None:
        self._cancelled = True
        self._call.cancel()


class Transport:
    """One channel, opened by the first call; threads may share it. A forked child opens its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._pid = 0
        self._closed = False

    def unary(self, method: Method, request: Message, timeout: float | None) -> Any:
        """Raises: grpc.RpcError, DecodeError; ValueError for what cannot be sent."""
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._open().unary_unary(method.path)
        encoded, headers = method.encode(request), self._connection.headers()
        with self._sending():
            answer = call(encoded, timeout=timeout, metadata=headers)
        return method.decode(answer)

    def upload(self, method: Method, requests: Iterator[Message], timeout: float | None) -> Any:
        """Raises: grpc.RpcError, DecodeError; ValueError for what cannot be sent; what `requests` raises.

        A deadline ends the call, and not a `requests` that blocks: grpc's thread waits for it then.
        """
        call: grpc.StreamUnaryMultiCallable[bytes, bytes] = self._open().stream_unary(method.path)
        failures: list[BaseException] = []

        def guarded() -> Iterator[bytes]:
            try:
                yield from map(method.encode, requests)
            except BaseException as error:
                # grpc reads in a thread of its own and would only report that reading failed.
                failures.append(error)
                raise

        headers = self._connection.headers()
        try:
            with self._sending():
                answer = call(guarded(), timeout=timeout, metadata=headers)
        except grpc.RpcError:
            if failures:
                raise failures[0] from None
            raise
        return method.decode(answer)

    def stream(self, method: Method, request: Message, timeout: float | None) -> Replies:
        """Raises: ValueError for what cannot be sent."""
        call: grpc.UnaryStreamMultiCallable[bytes, bytes] = self._open().unary_stream(method.path)
        encoded, headers = method.encode(request), self._connection.headers()
        with self._sending():
            return Replies(method, call(encoded, timeout=timeout, metadata=headers))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            channel, self._channel = self._channel, None
        if channel is not None and self._pid == os.getpid():
            channel.close()

    @contextmanager
    def _sending(self) -> Iterator[None]:
        try:
            yield
        except ValueError:
            # grpc's, for a channel that was closed since `_open` gave it.
            if self._closed:
                raise RuntimeError(_CLOSED) from None
            raise

    def _open(self) -> grpc.Channel:
        with self._lock:
            if self._closed:
                raise RuntimeError(_CLOSED)
            if self._channel is None or self._pid != os.getpid():
                credentials, options = self._connection.credentials(), self._connection.channel_options()
                self._channel = (
                    grpc.insecure_channel(self._connection.target, options)
                    if credentials is None
                    else grpc.secure_channel(self._connection.target, credentials, options)
                )
                self._pid = os.getpid()
            return self._channel


def each(items: Iterable[T]) -> Iterator[T]:
    """The items."""
    yield from items


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def gather(thunks: Sequence[Thunk[T]]) -> list[T]:
    """Do all at once, a thread each; the results in order. When all have ended, the first error is raised."""
    if len(thunks) <= 1:
        return [thunk() for thunk in thunks]
    with ThreadPoolExecutor(max_workers=len(thunks)) as pool:
        # A thread of its own would not know the caller's trace.
        futures = [pool.submit(copy_context().run, thunk) for thunk in thunks]
        return [future.result() for future in futures]
