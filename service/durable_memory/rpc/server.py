"""The gRPC server: its layers in their order, its services, and its life from the first byte to the drain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from opentelemetry.metrics import Meter, NoOpMeter
from opentelemetry.trace import NoOpTracer, Tracer

from durable_memory.domain.errors import DomainError
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.rpc.authentication import Authenticator
from durable_memory.rpc.health import SEMANTIC_SERVICE, HealthReporter
from durable_memory.rpc.health import SERVICE_NAME as HEALTH_SERVICE
from durable_memory.rpc.interceptors.call import Layer
from durable_memory.rpc.interceptors.credentials import CredentialsLayer
from durable_memory.rpc.interceptors.deadline import DeadlineLayer
from durable_memory.rpc.interceptors.errors import ErrorLayer
from durable_memory.rpc.interceptors.load import CallerLoadLayer, LoadLayer
from durable_memory.rpc.interceptors.serving import ServingLayer
from durable_memory.rpc.interceptors.stack import LayeredInterceptor
from durable_memory.rpc.interceptors.trace import TraceLayer
from durable_memory.rpc.options import ConnectionOptions, ServerOptions

Registration = tuple[Callable[[Any, grpc.aio.Server], None], object, str]
"""The generated `add_...Servicer_to_server`, the servicer, and the full name of its service."""

# The library refuses a larger message before anybody can say why; up to this much more is read, to say it.
_OVERSIZE_FACTOR: Final = 2
# What it takes for those who watch health to be told, before their streams end.
_NOTICE_SECONDS: Final = 0.05
# How long no call must have come in before the library is told to stop, and how long that is waited for. Refused
# callers come back together after some 0.1 seconds: it is over well before that.
_SILENCE_SECONDS: Final = 0.02
_SILENCE_MOST_SECONDS: Final = 1.0


class RpcServer:
    """Serves the registered services at one address.

    It listens from `start` on, answers NOT_SERVING until `ready`, and is over after `drain`.
    """

    def __init__(
        self,
        options: ServerOptions,
        authenticator: Authenticator,
        registrations: Sequence[Registration],
        *,
        clock: Clock,
        ids: Ids,
        tracer: Tracer,
        meter: Meter,
    ) -> None:
        self._options = options
        self._serving = ServingLayer()
        self._errors = ErrorLayer(clock, ids, log_exception_text=options.log_exception_text)
        calls = options.calls
        # Outermost first. Trace and errors see whatever the others refuse; what costs least and knows least comes
        # before what costs more; nothing of a request is read before its caller is known and within bounds.
        self._layers: tuple[Layer, ...] = (
            *_trace_layers(clock, tracer, meter),
            self._errors,
            self._serving,
            LoadLayer(max_calls=calls.max_calls, max_streams=calls.max_streams),
            DeadlineLayer(
                default_seconds=calls.default_deadline_seconds,
                maximum_seconds=calls.maximum_deadline_seconds,
                maximum_upload_seconds=calls.maximum_upload_seconds,
            ),
            CredentialsLayer(authenticator),
            CallerLoadLayer(max_calls=calls.max_calls_per_caller, max_streams=calls.max_streams_per_caller),
        )
        # Health and reflection need no credential, so how many of them run is bounded too, apart from the others: a
        # probe and a call do not take each other's room.
        self._infrastructure_layers: tuple[Layer, ...] = (
            self._errors,
            self._serving,
            LoadLayer(max_calls=calls.max_calls, max_streams=calls.max_streams),
        )
        self._registrations = tuple(registrations)
        self._health = HealthReporter([name for _, _, name in self._registrations])
        self._server: grpc.aio.Server | None = None
        self._address = options.address

    @property
    def address(self) -> str:
        """Where it listens; with port 0 in the options, the port that was found."""
        return self._address

    @property
    def refusal(self) -> DomainError | None:
        """Why calls are refused now; None while they are served."""
        return self._serving.refusal

    async def start(self) -> None:
        """Listen, and answer NOT_SERVING.

        Raises: OSError if the address cannot be listened on.
        """
        calls = self._options.calls
        server = grpc.aio.server(
            interceptors=[
                LayeredInterceptor(
                    self._layers,
                    self._infrastructure_layers,
                    max_request_bytes=calls.max_request_bytes,
                    max_response_bytes=calls.max_response_bytes,
                )
            ],
            options=_channel_options(self._options.connections, calls.max_request_bytes),
        )
        for add, servicer, _ in self._registrations:
            add(servicer, server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        if self._options.reflection:
            names = [name for _, _, name in self._registrations]
            reflection.enable_server_reflection([*names, HEALTH_SERVICE, reflection.SERVICE_NAME], server)
        self._address = _listen(server, self._options)
        await server.start()
        self._server = server

    def ready(self) -> None:
        """Serve, and say so."""
        self._serving.ready()
        self._health.report(serving=True)

    def not_ready(self, reason: DomainError) -> None:
        """Refuse calls for `reason`, and say so: the store has never been open."""
        self._serving.not_ready(reason)
        self._health.report(serving=False)

    def report(self, *, healthy: bool) -> None:
        """Say whether the store answers. Calls are let in all the same: they may do better than the probe."""
        self._health.report(serving=healthy)

    def report_semantic(self, *, serving: bool) -> None:
        """Say whether SemanticService can do what it is for. Calls are let in all the same: some of them mend it."""
        self._health.report_impaired(() if serving else (SEMANTIC_SERVICE,))

    async def drain(self, *, delay_seconds: float, grace_seconds: float) -> None:
        """Stop without breaking a promise.

        Health says NOT_SERVING first, and `delay_seconds` give load balancers the time to see it while everything
        is still served. Then no call is let in, endless streams are told, and what runs has `grace_seconds` to
        finish; what has not by then is cancelled.
        """
        self._health.stop()
        if self._server is None:
            return
        await asyncio.sleep(max(delay_seconds, _NOTICE_SECONDS))
        self._serving.drain()
        # When the library stops, it drops the calls that it has read and not yet handed over: their callers see
        # CANCELLED, which says nothing. Those that were refused come back after their back-off: in between it is quiet.
        await self._serving.silence(_SILENCE_SECONDS, most_seconds=_SILENCE_MOST_SECONDS)
        server, self._server = self._server, None
        await server.stop(grace_seconds)


def _trace_layers(clock: Clock, tracer: Tracer, meter: Meter) -> list[Layer]:
    """None where nothing would come of it: half of the time that all layers take."""
    if isinstance(tracer, NoOpTracer) and isinstance(meter, NoOpMeter):
        return []
    return [TraceLayer(clock, tracer, meter)]


def _listen(server: grpc.aio.Server, options: ServerOptions) -> str:
    try:
        if options.tls is None:
            port = server.add_insecure_port(options.address)
        else:
            credentials = grpc.ssl_server_credentials([(options.tls.key, options.tls.certificate)])
            port = server.add_secure_port(options.address, credentials)
    except RuntimeError as error:  # what the library raises for every cause
        raise OSError(f"cannot listen on {options.address}: is the address in use, or not of this machine?") from error
    if options.address.startswith("unix:"):
        return options.address
    return f"{options.address.rpartition(':')[0]}:{port}"


def _channel_options(connections: ConnectionOptions, max_request_bytes: int) -> list[tuple[str, int]]:
    return [
        # Two servers on one port by accident would share it silently, so it has to be asked for.
        ("grpc.so_reuseport", int(connections.reuse_port)),
        ("grpc.max_receive_message_length", max_request_bytes * _OVERSIZE_FACTOR),
        ("grpc.max_send_message_length", -1),  # bounded in the layers, with a reason
        ("grpc.max_connection_age_ms", _millis(connections.max_age_seconds)),
        ("grpc.max_connection_age_grace_ms", _millis(connections.max_age_grace_seconds)),
        ("grpc.keepalive_time_ms", _millis(connections.keepalive_interval_seconds)),
        ("grpc.keepalive_timeout_ms", _millis(connections.keepalive_timeout_seconds)),
        # Clients may ping as often as every ten seconds, also while they only wait for a watch or nothing at all.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ]


def _millis(seconds: float) -> int:
    return max(1, round(seconds * 1000))
