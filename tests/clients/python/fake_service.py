"""A service that answers as a test tells it to, on a real loopback channel, and remembers what it was asked."""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self

import grpc
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2

from durable_memory_client.methods import METHODS, Method

_METHODS = {method.path: method for method in METHODS.values()}
_DETAILS = "grpc-status-details-bin"


@dataclass(frozen=True)
class Refusal:
    """What a call is refused with; without a reason, as a proxy or a lost connection would."""

    code: grpc.StatusCode
    reason: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    retry_after_ms: int | None = None
    domain: str = "durablememory.dev"
    headers: tuple[tuple[str, str], ...] = ()

    def end(self, context: grpc.ServicerContext) -> None:
        status = status_pb2.Status(code=code_pb2.Code.Value(self.code.name), message="refused")
        if self.reason is not None:
            info = error_details_pb2.ErrorInfo(
                reason=f"ERROR_REASON_{self.reason}", domain=self.domain, metadata=self.metadata
            )
            status.details.add().Pack(info)
        if self.retry_after_ms is not None:
            retry = error_details_pb2.RetryInfo()
            retry.retry_delay.FromMilliseconds(self.retry_after_ms)
            status.details.add().Pack(retry)
        details = ((_DETAILS, status.SerializeToString()),) if status.details else ()
        context.set_trailing_metadata((*details, *self.headers))
        context.abort(self.code, "refused")


class Forever:
    """Keeps a call open until its caller leaves, and says so in `left`."""

    def __init__(self) -> None:
        self.left = threading.Event()


class Held:
    """Keeps a call open until `let_go` is set, and then answers."""

    def __init__(self, answer: Message) -> None:
        self.let_go = threading.Event()
        self.answer = answer


Answer = Message | bytes | Refusal | Forever | Held
"""`bytes` are sent as they are, in place of a message."""


@dataclass(frozen=True)
class Asked:
    """One attempt of a call, as it arrived. `requests` has all messages of a stream upwards."""

    method: str
    requests: tuple[Any, ...]
    headers: dict[str, str]
    seconds_left: float | None

    @property
    def request(self) -> Any:
        return self.requests[0]


class FakeService(grpc.GenericRpcHandler):
    """Answers each RPC (`Service.Method`) with what `will_answer` lined up, the last answer for ever.

    An RPC without a line answers with an empty message; a streaming one with an empty stream.
    """

    def __init__(self, certificate: tuple[bytes, bytes] | None = None) -> None:
        """`certificate`: its key and itself, PEM, for a service that speaks TLS."""
        self.asked: list[Asked] = []
        self._answers: dict[str, list[Any]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=16)
        self._server = grpc.server(self._pool)
        self._server.add_generic_rpc_handlers([self])
        port = (
            self._server.add_insecure_port("127.0.0.1:0")
            if certificate is None
            else self._server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([certificate]))
        )
        self.address = f"127.0.0.1:{port}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()
        self._pool.shutdown()

    def will_answer(self, method: str, *answers: Answer | Iterable[Answer]) -> None:
        """Line up the answers of an RPC; for a streaming one each is a sequence of messages."""
        assert method in {known.name for known in _METHODS.values()}
        with self._lock:
            self._answers[method] = list(answers)

    def calls(self, method: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == method]

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        method = _METHODS.get(details.method)
        if method is None:
            return None
        descriptor = _descriptor(method)
        codec: dict[str, Any] = {
            "request_deserializer": method.request_type.FromString,
            "response_serializer": _encoded,
        }
        if descriptor.server_streaming:
            return grpc.unary_stream_rpc_method_handler(
                lambda request, context: self._stream(method, (request,), context), **codec
            )
        if descriptor.client_streaming:
            return grpc.stream_unary_rpc_method_handler(
                lambda requests, context: self._unary(method, tuple(requests), context), **codec
            )
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._unary(method, (request,), context), **codec
        )

    def _unary(
        self, method: Method, requests: tuple[Any, ...], context: grpc.ServicerContext
    ) -> Message | bytes | None:
        answer = self._next(method, requests, context)
        return _settle(method.response_type() if answer is None else answer, context)

    def _stream(self, method: Method, requests: tuple[Any, ...], context: grpc.ServicerContext) -> Iterator[Any]:
        for answer in self._next(method, requests, context) or ():
            yield _settle(answer, context)

    def _next(self, method: Method, requests: tuple[Any, ...], context: grpc.ServicerContext) -> Any:
        headers = {name: value for name, value in context.invocation_metadata() if isinstance(value, str)}
        with self._lock:
            self.asked.append(Asked(method.name, requests, headers, context.time_remaining()))
            line = self._answers.get(method.name)
            if not line:
                return None
            return line.pop(0) if len(line) > 1 else line[0]


def _settle(answer: Answer, context: grpc.ServicerContext) -> Message | bytes | None:
    if isinstance(answer, Refusal):
        answer.end(context)
    if isinstance(answer, Forever):
        left = threading.Event()
        if context.add_callback(left.set):
            left.wait()
        answer.left.set()
        return None
    if isinstance(answer, Held):
        answer.let_go.wait()
        return answer.answer
    assert isinstance(answer, Message | bytes)
    return answer


def _encoded(answer: Message | bytes) -> bytes:
    return answer if isinstance(answer, bytes) else answer.SerializeToString()


def _descriptor(method: Method) -> Any:
    service = method.path.split("/")[1].rpartition(".")[2]
    name = method.name.partition(".")[2]
    for known in METHODS.values():
        if known.path == method.path:
            file = known.request_type.DESCRIPTOR.file
            return file.services_by_name[service].methods_by_name[name]
    raise AssertionError(method.path)
