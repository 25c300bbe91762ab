"""Spans and metrics of calls: names, codes and durations, never content."""

from __future__ import annotations

from typing import Any, Final

from grpc import StatusCode
from opentelemetry.metrics import Meter
from opentelemetry.trace import SpanKind, Status, Tracer
from opentelemetry.trace import StatusCode as SpanStatus
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from durable_memory.ports.runtime import Clock
from durable_memory.rpc.interceptors.call import IncomingCall, Proceed

_BUCKETS_SECONDS: Final = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
# By OpenTelemetry's convention a server's span has failed only where the server is at fault.
_SERVER_FAULTS: Final = frozenset(
    {
        StatusCode.UNKNOWN,
        StatusCode.DEADLINE_EXCEEDED,
        StatusCode.UNIMPLEMENTED,
        StatusCode.INTERNAL,
        StatusCode.UNAVAILABLE,
        StatusCode.DATA_LOSS,
    }
)
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_TRACE_HEADERS: Final = frozenset({"traceparent", "tracestate"})


class TraceLayer:
    """A span per call, below the caller's by the W3C `traceparent` header, and three instruments:

    - `rpc.server.call.duration` (seconds) by method and status code; its count is the number of calls;
    - `durable_memory.rpc.active_calls` by method;
    - `durable_memory.degraded_answers` by method and reason.
    """

    def __init__(self, clock: Clock, tracer: Tracer, meter: Meter) -> None:
        self._clock = clock
        self._tracer = tracer
        self._duration = meter.create_histogram(
            "rpc.server.call.duration",
            unit="s",
            description="Duration of calls by method and status code",
            explicit_bucket_boundaries_advisory=_BUCKETS_SECONDS,
        )
        self._active = meter.create_up_down_counter(
            "durable_memory.rpc.active_calls", unit="{call}", description="Calls that run now, by method"
        )
        self._degraded = meter.create_counter(
            "durable_memory.degraded_answers",
            unit="{answer}",
            description="Answers that had to do without something, by method and reason",
        )

    async def around(self, call: IncomingCall, proceed: Proceed) -> Any:
        service, _, method = call.method.lstrip("/").partition("/")
        attributes = {"rpc.system.name": "grpc", "rpc.service": service, "rpc.method": method}
        started = self._clock.monotonic()
        self._active.add(1, attributes)
        with self._tracer.start_as_current_span(
            call.method.lstrip("/"),
            context=_PROPAGATOR.extract(_trace_headers(call)),
            kind=SpanKind.SERVER,
            attributes=attributes,
            record_exception=False,  # their text may quote content
            set_status_on_exception=False,
        ) as span:
            try:
                return await proceed()
            finally:
                self._active.add(-1, attributes)
                measured = {**attributes, "rpc.response.status_code": call.status.name}
                self._duration.record(self._clock.monotonic() - started, measured)
                span.set_attribute("rpc.response.status_code", call.status.name)
                for reason in call.degradations:
                    self._degraded.add(1, {**attributes, "reason": reason})
                if call.degradations:
                    span.set_attribute("durable_memory.degradations", call.degradations)
                if call.status in _SERVER_FAULTS:
                    span.set_status(Status(SpanStatus.ERROR))


def _trace_headers(call: IncomingCall) -> dict[str, str]:
    headers = call.context.invocation_metadata() or ()
    return {name: value for name, value in headers if name in _TRACE_HEADERS and isinstance(value, str)}
