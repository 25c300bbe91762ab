"""One call of the contract: its request id, its deadline, its repetitions, and its errors as exceptions."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message

from durable_memory_client.aio.transport import Replies, Transport, sleep
from durable_memory_client.call_policy import Limit
from durable_memory_client.errors import MemoryServiceError, MemoryUnavailableError
from durable_memory_client.failures import CALL_FAILURES, Attempted, error_of_call, error_of_unsent
from durable_memory_client.identity import new_request_id
from durable_memory_client.methods import METHODS, Method

OnUnavailable: TypeAlias = Literal["raise", "empty"]
"""What a recall does when the service cannot answer: raise MemoryUnavailableError, or find nothing and say so."""

OUTAGE_PAUSE_SECONDS: Final = 2.0
"""After an outage, calls that may go without an answer do so at once for this long."""

PATIENCE_SECONDS: Final = 2.0
"""The default deadline of a call that may go without an answer."""

_PATIENT_ATTEMPTS: Final = 2

R = TypeVar("R", bound=Message)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Guarded(Protocol[T_co]):
    """Calls that the service may fail to answer; `limit` bounds them all together."""

    async def __call__(self, limit: Limit) -> T_co: ...


def patient(timeout: float | None = None) -> Limit:
    """The limit of a call whose caller can go on without it. `timeout`: in seconds; default: `PATIENCE_SECONDS`."""
    return Limit(PATIENCE_SECONDS if timeout is None else timeout, _PATIENT_ATTEMPTS)


class Calls:
    """Makes calls over one channel."""

    def __init__(self, transport: Transport, on_unavailable: OnUnavailable = "raise") -> None:
        self._transport = transport
        self.on_unavailable: OnUnavailable = _checked(on_unavailable)
        self._outage: tuple[float, MemoryUnavailableError] | None = None

    async def unary(
        self,
        request: Message,
        response_type: type[R],
        *,
        timeout: float | None = None,
        limit: Limit | None = None,
    ) -> R:
        """Make a call. A change without a request id gets one, which all attempts share.

        `timeout` is the deadline of all attempts together, in seconds; default: the RPC's. `limit` stands for both
        where the call is one of several steps.

        Raises: MemoryServiceError; ValueError for a request that cannot be encoded.
        """
        method = _method_of(request, response_type)
        request_id = _settled_request_id(request, method)
        if limit is None:
            limit = Limit(method.policy.timeout if timeout is None else timeout)
        attempt = 0
        before: MemoryServiceError | None = None
        while True:
            attempt += 1
            try:
                response = await self._transport.unary(method, request, _some_of(limit.left))
            except CALL_FAILURES as failed:
                before = error_of_call(failed, Attempted(method=method.name, request_id=request_id, attempts=attempt))
                delay = method.policy.delay(before, attempt, limit.attempts)
                if delay is None or not limit.outlasts(delay):
                    raise before from failed
                await sleep(delay)
            except Exception as unsent:
                # The client was closed, has no token any more, or no time: what became of the attempt before is still
                # unknown.
                if before is None:
                    raise
                raise before from unsent
            else:
                self._outage = None
                assert isinstance(response, response_type)
                return response

    async def upload(
        self, first: Message, requests: AsyncIterator[Message], response_type: type[R], *, timeout: float | None
    ) -> R:
        """Stream messages up, `first` before the others; one attempt. Raises: MemoryServiceError."""
        method = _method_of(first, response_type)
        request_id = _settled_request_id(first, method)
        limit = method.policy.timeout if timeout is None else timeout
        try:
            response = await self._transport.upload(method, _chained(first, requests), _some_of(limit))
        except CALL_FAILURES as failed:
            raise error_of_call(failed, Attempted(method=method.name, request_id=request_id, attempts=1)) from failed
        assert isinstance(response, response_type)
        return response

    async def stream(
        self, request: Message, response_type: type[R], *, timeout: float | None = None, attempt: int = 1
    ) -> Stream[R]:
        """Start a streaming call. It is not repeated here: whoever reads it knows how far it got.

        `attempt` counts how often the caller has started this one.
        """
        method = _method_of(request, response_type)
        attempted = Attempted(method=method.name, request_id=_settled_request_id(request, method), attempts=attempt)
        limit = method.policy.timeout if timeout is None else timeout
        return Stream(attempted, await self._transport.stream(method, request, _some_of(limit)), response_type)

    async def guarded(
        self, on_unavailable: OnUnavailable | None, timeout: float | None, calls: Guarded[T]
    ) -> T | MemoryUnavailableError:
        """Do `calls`. With "empty", an outage is returned instead of raised, soon, and at once while it lasts.

        `timeout` is the deadline of them all, in seconds; default: that of one call, and with "empty"
        `PATIENCE_SECONDS`.
        """
        if _checked(on_unavailable or self.on_unavailable) == "raise":
            return await calls(Limit.usual(timeout))
        limit = patient(timeout)
        outage = self._outage  # which another thread may end at any time
        if outage is not None and time.monotonic() < outage[0]:
            return _of_nobodys_call(outage[1])
        try:
            return await calls(limit)
        except MemoryUnavailableError as error:
            # That a caller had less time than is usual, or waited for another call, says nothing about the service.
            hurried = limit.waited or (timeout is not None and timeout < PATIENCE_SECONDS)
            if error.attempts > 0 and not (hurried and error.code is grpc.StatusCode.DEADLINE_EXCEEDED):
                self._outage = (time.monotonic() + OUTAGE_PAUSE_SECONDS, error)
            return error


class Stream(AsyncIterator[R]):
    """The messages of a streaming call, in order. Raises: MemoryServiceError."""

    def __init__(self, attempted: Attempted, replies: Replies, response_type: type[R]) -> None:
        self._attempted = attempted
        self._replies = replies
        self._response_type = response_type

    def __aiter__(self) -> Stream[R]:
        return self

    async def __anext__(self) -> R:
        try:
            message = await self._replies.read()
        except CALL_FAILURES as failed:
            self._replies.cancel()  # an answer that cannot be read does not end its stream
            raise error_of_call(failed, self._attempted) from failed
        if message is None:
            raise StopAsyncIteration
        assert isinstance(message, self._response_type)
        return message

    def cancel(self) -> None:
        """End the call; harmless after its end."""
        self._replies.cancel()


def _some_of(left: float | None) -> float | None:
    """What is left for an attempt, in seconds. Raises: DeadlineExceededError, definite, when nothing is."""
    if left is not None and left <= 0:
        raise error_of_unsent()
    return left


def _of_nobodys_call(error: MemoryUnavailableError) -> MemoryUnavailableError:
    """The outage, as of a call that was not sent: the call that met it has a request id and an outcome of its own."""
    return type(error)(
        error.message,
        code=error.code,
        reason=error.reason,
        metadata=error.metadata,
        definite=True,
        attempts=0,
        retry_after=error.retry_after,
    )


def _method_of(request: Message, response_type: type[Message]) -> Method:
    method = METHODS[type(request)]
    if method.response_type is not response_type:
        raise TypeError(f"{method.name} answers with {method.response_type.__name__}, not {response_type.__name__}")
    return method


def _settled_request_id(request: Message, method: Method) -> str | None:
    """The request id of a change, minted if there is none; None for a call that changes nothing."""
    if not method.changes or not method.has_request_id or getattr(request, "admit", True) is False:
        return None
    request_id: str = getattr(request, "request_id")  # noqa: B009 - a field that not every message has
    if not request_id:
        request_id = new_request_id()
        setattr(request, "request_id", request_id)  # noqa: B010
    return request_id


def _checked(choice: OnUnavailable) -> OnUnavailable:
    if choice not in ("raise", "empty"):
        raise ValueError(f"on_unavailable is 'raise' or 'empty', not {choice!r}")
    return choice


async def _chained(first: Message, others: AsyncIterator[Message]) -> AsyncIterator[Message]:
    yield first
    async for message in others:
        yield message
