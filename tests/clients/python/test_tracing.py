"""Traces: a call belongs to the one of its caller."""

from durable_memory_client import MemoryClient
from tests.clients.python.fake_service import FakeService

GET_CHANGE_TOKEN = "RepositoryService.GetChangeToken"


async def test_the_trace_of_the_caller_is_passed_on(service: FakeService, memory: MemoryClient):
    from opentelemetry import trace

    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=trace.TraceFlags(1))
    with trace.use_span(trace.NonRecordingSpan(context)):
        await memory.get_change_token()

    traceparent = service.calls(GET_CHANGE_TOKEN)[0].headers["traceparent"]
    assert traceparent == f"00-{0xABC:032x}-{0xDEF:016x}-01"
