"""The collector that the qualification gives its servers: it knows what each of them sent, and keeps every byte."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from durable_memory_client import MemoryClient
from tests.conftest import StartServer
from tests.processes.otlp_receiver import OtlpReceiver
from tests.processes.polling import wait_until_async
from tests.processes.server import ServerProcess

_CALLS = "rpc.server.call.duration"
_REMEMBER = "durablememory.v1.MemoryService/Remember"
_PLENTY = 1 << 40


@pytest.fixture
async def receiver(tmp_path: Path) -> AsyncIterator[OtlpReceiver]:
    async with OtlpReceiver(tmp_path / "otlp.bin") as receiver:
        yield receiver


async def test_it_keeps_what_two_lives_of_a_server_counted_and_did(receiver: OtlpReceiver, start_server: StartServer):
    environment = {
        "DURABLE_MEMORY_SERVER_TELEMETRY_OTLP_ENDPOINT": receiver.endpoint,
        "DURABLE_MEMORY_SERVER_TELEMETRY_METRICS_INTERVAL_SECONDS": "0.2",
        "OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=server-7",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    server = await asyncio.to_thread(start_server, "memory:", env=environment)
    await _remember(server, 3)
    assert await asyncio.to_thread(server.terminate) == 0
    await asyncio.to_thread(server.start)
    await _remember(server, 2)

    def counted() -> float:
        return receiver.total(_CALLS, rpc_method="Remember")

    await wait_until_async(lambda: counted() == 5, what=lambda: f"five calls, {counted()} so far")
    await wait_until_async(lambda: len(list(receiver.spans(_REMEMBER))) == 5, what="five spans")
    lives = [one for one in receiver.histogram(_CALLS) if one.attributes["rpc.method"] == "Remember"]
    assert [(one.instance, one.count) for one in lives] == [("server-7", 3), ("server-7", 2)]
    assert {span.instance for span in receiver.spans()} == {"server-7"}
    assert not any(span.failed for span in receiver.spans(_REMEMBER))
    active = receiver.metric_values("durable_memory.rpc.active_calls", instance="server-7")
    assert active
    assert not receiver.metric_values("durable_memory.rpc.active_calls", instance="server-8")
    assert b"server-7" in receiver.raw_bytes


async def test_what_has_come_in_is_in_the_file_while_more_comes(receiver: OtlpReceiver):
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(schema_url="of-this-test")])

    receiver.take_traces(request)

    assert receiver.raw_path.read_bytes() == request.SerializeToString()


async def test_however_much_comes_in_is_kept():
    """It goes where it takes no room."""
    much = ExportTraceServiceRequest(resource_spans=[ResourceSpans(schema_url="x" * 64_000_000)])
    async with OtlpReceiver(Path("/dev/null"), free_bytes=lambda folder: _PLENTY) as receiver:
        for _ in range(6):
            receiver.take_traces(much)

        assert receiver.raw_bytes_lost == 0


async def test_what_would_leave_the_disk_no_room_is_counted_as_lost(tmp_path: Path):
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(schema_url="of-this-test")])
    size, raw, asked = request.ByteSize(), tmp_path / "otlp.bin", set()

    def free_bytes(folder: Path) -> int:
        """Almost enough for two messages."""
        asked.add(folder)
        return (1 << 30) + 2 * size - 1 - raw.stat().st_size

    async with OtlpReceiver(raw, free_bytes=free_bytes) as receiver:
        for _ in range(3):
            receiver.take_traces(request)

        assert raw.stat().st_size == size
        assert receiver.raw_bytes_lost == 2 * size
        assert asked == {tmp_path}


async def test_what_the_disk_does_not_take_is_counted_as_lost():
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(schema_url="of-this-test")])
    async with OtlpReceiver(Path("/dev/full"), free_bytes=lambda folder: _PLENTY) as receiver:
        receiver.take_traces(request)

        assert receiver.raw_bytes_lost == request.ByteSize()


async def _remember(server: ServerProcess, count: int) -> None:
    async with MemoryClient(server.address, tenant="acme", principal="user-1", scope="default") as client:
        for number in range(count):
            await client.remember(f"Kettle {number} boils water.")
