"""Wraps every kind of handler in the layers, and reads and writes messages inside of them.

Each call runs in one task from the first layer to the last: responses of a stream are written by that task, not
yielded to the library, so whatever a layer or a handler holds is let go of in the task that took it, at once, also
when the caller goes away in the middle.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import partial
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from durable_memory.domain.errors import invalid_field, limit_exceeded
from durable_memory.rpc.interceptors.call import PRODUCT_PREFIX, Context, IncomingCall, Layer, Proceed, enter

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"  # generic for type checkers only
_Respond = Callable[[Any], Awaitable[None]]


class LayeredInterceptor(grpc.aio.ServerInterceptor):
    """Runs each call of the contract inside `layers`, outermost first, and each of another service (health and
    reflection) inside `infrastructure_layers`.

    A request that is larger than `max_request_bytes` or no message of its type is refused inside the layers, with
    LIMIT_EXCEEDED or INVALID_FIELD; so is a response larger than `max_response_bytes`.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        infrastructure_layers: Sequence[Layer],
        *,
        max_request_bytes: int,
        max_response_bytes: int,
    ) -> None:
        self._layers = tuple(layers)
        self._infrastructure_layers = tuple(infrastructure_layers)
        self._max_request_bytes = max_request_bytes
        self._max_response_bytes = max_response_bytes
        # Handlers are registered once per method, so what is made of them is made once too.
        self._wrapped: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        method = handler_call_details.method
        wrapped = self._wrapped.get(method)
        if wrapped is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None  # UNIMPLEMENTED; never kept, for the names are the caller's
            wrapped = self._wrapped[method] = self._wrap(method, handler)
        return wrapped

    def _wrap(self, method: str, handler: Handler) -> Handler:
        layers = self._layers if method.startswith(PRODUCT_PREFIX) else self._infrastructure_layers
        streaming = handler.request_streaming or handler.response_streaming
        uploading = handler.request_streaming and not handler.response_streaming

        async def serve(request: Any, context: Context) -> Any:
            call = IncomingCall(method=method, streaming=streaming, uploading=uploading, context=context)
            enter(call)
            proceed: Proceed = partial(run, request, context)
            for layer in reversed(layers):
                proceed = partial(layer.around, call, proceed)
            return await proceed()

        run = self._runner(handler)
        make = _MAKERS[handler.request_streaming, handler.response_streaming]
        serialize = handler.response_serializer

        def serialize_rest(message: Any) -> bytes:
            # Handlers that write to the context themselves hand over messages, `serve` hands over bytes.
            return message if isinstance(message, bytes) or serialize is None else serialize(message)

        wrapped: Handler = make(serve, request_deserializer=None, response_serializer=serialize_rest)
        return wrapped

    def _runner(self, handler: Handler) -> Callable[[Any, Context], Awaitable[Any]]:
        behaviour = _behaviour(handler)
        read = self._reader(handler)
        write = self._writer(handler)

        def decoded(request: Any) -> AbstractAsyncContextManager[Any]:
            return aclosing(read_all(request)) if handler.request_streaming else nullcontext(read(request))

        async def read_all(requests: AsyncIterator[bytes]) -> AsyncGenerator[Any, None]:
            async for request in requests:
                yield read(request)

        async def unary(request: Any, context: Context) -> Any:
            async with decoded(request) as message:
                return write(await behaviour(message, context))

        async def stream(request: Any, context: Context) -> None:
            async with decoded(request) as message, aclosing(behaviour(message, context)) as responses:
                async for response in responses:
                    await context.write(write(response))

        async def self_writing(request: Any, context: Context) -> None:
            async with decoded(request) as message:
                await behaviour(message, context)

        if not handler.response_streaming:
            return unary
        return stream if inspect.isasyncgenfunction(behaviour) else self_writing

    def _reader(self, handler: Handler) -> Callable[[bytes], Any]:
        parse = handler.request_deserializer
        limit = self._max_request_bytes

        def read(raw: bytes) -> Any:
            if len(raw) > limit:
                raise limit_exceeded("request", limit, len(raw), "bytes")
            try:
                return raw if parse is None else parse(raw)
            except DecodeError as error:
                raise invalid_field(
                    "request", "is not a message of its type, or holds text that is not UTF-8"
                ) from error

        return read

    def _writer(self, handler: Handler) -> Callable[[Any], bytes]:
        serialize = handler.response_serializer
        limit = self._max_response_bytes

        def write(message: Any) -> bytes:
            raw: bytes = message if serialize is None else serialize(message)
            if len(raw) > limit:
                raise limit_exceeded("response", limit, len(raw), "bytes")
            return raw

        return write


_MAKERS: dict[tuple[bool, bool], Callable[..., Any]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


def _behaviour(handler: Handler) -> Callable[[Any, Context], Any]:
    behaviours: dict[tuple[bool, bool], Any] = {
        (False, False): handler.unary_unary,
        (False, True): handler.unary_stream,
        (True, False): handler.stream_unary,
        (True, True): handler.stream_stream,
    }
    behaviour: Callable[[Any, Context], Any] = behaviours[handler.request_streaming, handler.response_streaming]
    return behaviour
