"""The real gRPC server around services that do what a test tells them: for the layers, not for the use cases."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc
from opentelemetry.metrics import Meter, NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider, Tracer

from durable_memory.adapters.runtime import SystemClock, SystemIds
from durable_memory.ports.runtime import Clock
from durable_memory.rpc.authentication import Authenticator, DevelopmentAuthenticator
from durable_memory.rpc.options import CallOptions, ConnectionOptions, ServerOptions
from durable_memory.rpc.server import RpcServer
from durablememory.v1 import (
    repository_service_pb2,
    repository_service_pb2_grpc,
    session_service_pb2,
    session_service_pb2_grpc,
    transfer_service_pb2,
    transfer_service_pb2_grpc,
)

GET_SESSION = "/durablememory.v1.SessionService/GetSession"
SNAPSHOT = "/durablememory.v1.RepositoryService/Snapshot"
WATCH = "/durablememory.v1.RepositoryService/WatchNamespace"
IMPORT = "/durablememory.v1.TransferService/ImportNamespace"

_CALLS: dict[str, Any] = {
    "default_deadline_seconds": 60.0,
    "maximum_deadline_seconds": 60.0,
    "maximum_upload_seconds": 60.0,
    "max_calls": 64,
    "max_calls_per_caller": 64,
    "max_streams": 64,
    "max_streams_per_caller": 64,
    "max_request_bytes": 64 * 1024,
    "max_response_bytes": 64 * 1024,
}


async def _answer(request: Any) -> Any:
    return session_service_pb2.GetSessionResponse()


async def _nothing(request: Any) -> AsyncIterator[Any]:
    nothing: tuple[Any, ...] = ()
    for response in nothing:
        yield response


async def _drink(requests: AsyncIterator[Any]) -> Any:
    async for _ in requests:
        pass
    return transfer_service_pb2.ImportNamespaceResponse()


class Script(
    session_service_pb2_grpc.SessionServiceServicer,
    repository_service_pb2_grpc.RepositoryServiceServicer,
    transfer_service_pb2_grpc.TransferServiceServicer,
):
    """One RPC of each kind: GetSession, Snapshot and WatchNamespace, ImportNamespace."""

    def __init__(self) -> None:
        self.unary: Callable[[Any], Awaitable[Any]] = _answer
        self.stream: Callable[[Any], AsyncIterator[Any]] = _nothing
        self.collect: Callable[[AsyncIterator[Any]], Awaitable[Any]] = _drink

    async def GetSession(self, request, context):
        return await self.unary(request)

    async def Snapshot(self, request, context):
        async for response in self.stream(request):
            yield response

    async def WatchNamespace(self, request, context):
        async for response in self.stream(request):
            yield response

    async def ImportNamespace(self, request_iterator, context):
        return await self.collect(request_iterator)


class ScriptedServer:
    """A started server and a channel to it; `script` may be changed at any time."""

    def __init__(
        self,
        *,
        authenticator: Authenticator | None = None,
        tracer: Tracer | None = None,
        meter: Meter | None = None,
        log_exception_text: bool = False,
        clock: Clock | None = None,
        **calls: Any,
    ) -> None:
        self.script = Script()
        options = ServerOptions(
            address="127.0.0.1:0",
            calls=CallOptions(**{**_CALLS, **calls}),
            connections=ConnectionOptions(
                max_age_seconds=600.0,
                max_age_grace_seconds=60.0,
                keepalive_interval_seconds=60.0,
                keepalive_timeout_seconds=20.0,
                reuse_port=False,
            ),
            tls=None,
            reflection=True,
            log_exception_text=log_exception_text,
        )
        services = (
            (session_service_pb2_grpc.add_SessionServiceServicer_to_server, "SessionService"),
            (repository_service_pb2_grpc.add_RepositoryServiceServicer_to_server, "RepositoryService"),
            (transfer_service_pb2_grpc.add_TransferServiceServicer_to_server, "TransferService"),
        )
        self.server = RpcServer(
            options,
            authenticator or DevelopmentAuthenticator(),
            [(add, self.script, f"durablememory.v1.{name}") for add, name in services],
            clock=clock or SystemClock(),
            ids=SystemIds(),
            tracer=tracer or NoOpTracerProvider().get_tracer("test"),
            meter=meter or NoOpMeterProvider().get_meter("test"),
        )

    async def __aenter__(self):
        await self.server.start()
        self.server.ready()
        self.channel = grpc.aio.insecure_channel(self.server.address, options=(("grpc.enable_http_proxy", 0),))
        untyped: Any = self.channel  # the published types of these stubs know only the synchronous kind
        self.health: Any = health_pb2_grpc.HealthStub(untyped)
        self.reflection: Any = reflection_pb2_grpc.ServerReflectionStub(untyped)
        return self

    async def __aexit__(self, *error):
        await self.channel.close()
        await self.drain()

    async def drain(self, grace_seconds: float = 5.0) -> None:
        await self.server.drain(delay_seconds=0.0, grace_seconds=grace_seconds)

    def raw(self, request: bytes = b"", *, method: str = GET_SESSION, **options: Any) -> Any:
        """Call a unary RPC with bytes; the answer is bytes."""
        call: Any = self.channel.unary_unary(method)
        return call(request, **{"timeout": 60.0, **options})

    def snapshot(self, **options: Any) -> Any:
        return self._streaming(SNAPSHOT, repository_service_pb2.SnapshotResponse, **options)

    def watch(self, **options: Any) -> Any:
        return self._streaming(WATCH, repository_service_pb2.WatchNamespaceResponse, **options)

    def import_raw(self, *requests: bytes) -> Any:
        call: Any = self.channel.stream_unary(IMPORT)
        return call(iter(requests), timeout=60.0)

    def _streaming(self, method: str, response: Any, **options: Any) -> Any:
        call: Any = self.channel.unary_stream(method, response_deserializer=response.FromString)
        return call(b"", **options)


def status_of(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    """The rich status of a failed call."""
    details = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(details["grpc-status-details-bin"])
    assert (status.code, status.message) == (error.code().value[0], error.details())
    return status


def info_of(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo:
    """The one ErrorInfo of a failed call."""
    (packed,) = [one for one in status_of(error).details if one.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)]
    info = error_details_pb2.ErrorInfo()
    packed.Unpack(info)
    assert info.domain == "durablememory.dev"
    return info


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """The reason of a failed call, without the enum's prefix."""
    reason: str = info_of(error).reason
    return reason.removeprefix("ERROR_REASON_")
