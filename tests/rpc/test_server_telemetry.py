"""Spans and measurements of calls."""

import time

import grpc
import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from opentelemetry.trace import StatusCode as SpanStatus

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.rpc.interceptors.call import note_degradation
from durable_memory.telemetry import recording_telemetry
from durablememory.v1 import session_service_pb2
from tests.processes.polling import wait_until_async
from tests.rpc.scripted_server import ScriptedServer

_TRACE, _SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
_SECRET = "the content of a memory"


class _Recording:
    """A scripted server, and what it has recorded."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.telemetry = recording_telemetry("test", SimpleSpanProcessor(self.spans), self.reader)
        self.server = ScriptedServer(tracer=self.telemetry.tracer, meter=self.telemetry.meter)

    async def span(self):
        """The one finished span; a call ends a moment before its span does."""
        await wait_until_async(lambda: self.spans.get_finished_spans(), what="the span is finished")
        (span,) = self.spans.get_finished_spans()
        return span

    def points(self, name: str) -> list:
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
async def recording():
    recording = _Recording()
    async with recording.server:
        yield recording
    recording.telemetry.shutdown()


async def test_a_call_is_a_span_below_the_callers(recording):
    await recording.server.raw(metadata=(("traceparent", f"00-{_TRACE}-{_SPAN}-01"),))

    span = await recording.span()
    assert span.name == "durablememory.v1.SessionService/GetSession"
    assert span.kind is SpanKind.SERVER
    assert f"{span.context.trace_id:032x}" == _TRACE
    assert f"{span.parent.span_id:016x}" == _SPAN
    assert dict(span.attributes) == {
        "rpc.system.name": "grpc",
        "rpc.service": "durablememory.v1.SessionService",
        "rpc.method": "GetSession",
        "rpc.response.status_code": "OK",
    }


async def test_a_garbled_trace_header_only_starts_a_new_trace(recording):
    await recording.server.raw(metadata=(("traceparent", "garbage"),))
    assert (await recording.span()).parent is None


async def test_the_servers_faults_are_failed_spans_and_the_callers_are_not(recording):
    for error, code, failed in (
        (DomainError(Reason.NODE_NOT_FOUND, _SECRET, node_id=_SECRET), "NOT_FOUND", False),
        (ValueError(_SECRET), "INTERNAL", True),
    ):

        async def unary(request, error=error):
            raise error

        recording.server.script.unary = unary
        with pytest.raises(grpc.aio.AioRpcError):
            await recording.server.raw()
        span = await recording.span()
        assert span.attributes["rpc.response.status_code"] == code
        assert (span.status.status_code is SpanStatus.ERROR) is failed
        assert span.events == ()
        assert _SECRET not in span.to_json()
        recording.spans.clear()


async def test_calls_are_counted_by_method_and_code_with_their_duration(recording):
    async def unary(request):
        raise DomainError(Reason.NODE_NOT_FOUND, "no node")

    began = time.monotonic()
    await recording.server.raw()
    await recording.server.raw()
    recording.server.script.unary = unary
    with pytest.raises(grpc.aio.AioRpcError):
        await recording.server.raw()
    await wait_until_async(lambda: len(recording.spans.get_finished_spans()) == 3, what="all calls are over")

    points = recording.points("rpc.server.call.duration")
    counts = {(point.attributes["rpc.method"], point.attributes["rpc.response.status_code"]): point for point in points}
    assert {key: point.count for key, point in counts.items()} == {
        ("GetSession", "OK"): 2,
        ("GetSession", "NOT_FOUND"): 1,
    }
    assert min(point.sum for point in points) > 0
    assert sum(point.sum for point in points) < time.monotonic() - began  # in seconds: they came one after the other
    assert [point.value for point in recording.points("durable_memory.rpc.active_calls")] == [0]


async def test_an_answer_that_had_to_do_without_something_is_counted(recording):
    async def unary(request):
        note_degradation("INDEX_UNAVAILABLE")
        return session_service_pb2.GetSessionResponse()

    recording.server.script.unary = unary
    await recording.server.raw()

    assert (await recording.span()).attributes["durable_memory.degradations"] == ("INDEX_UNAVAILABLE",)
    (point,) = recording.points("durable_memory.degraded_answers")
    assert (point.value, point.attributes["reason"]) == (1, "INDEX_UNAVAILABLE")


async def test_health_probes_leave_no_spans(recording):
    await recording.server.raw(method="/grpc.health.v1.Health/Check")
    await recording.server.raw()
    assert (await recording.span()).attributes["rpc.method"] == "GetSession"
