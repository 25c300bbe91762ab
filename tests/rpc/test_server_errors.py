"""Whatever goes wrong in a call, the caller gets a status with a reason, and nothing of the server's insides."""

import asyncio
import io
import json
import logging
from datetime import UTC, datetime, timedelta

import grpc
import pytest
import structlog
from google.rpc import error_details_pb2
from grpc import StatusCode

from durable_memory.adapters.runtime import ManualClock
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.rpc.errors import ERROR_TABLE
from durable_memory.telemetry import configure_logging
from durablememory.v1 import session_service_pb2
from tests.rpc.scripted_server import ScriptedServer, info_of, reason_of, status_of

_SECRET = "the content of a memory"


@pytest.fixture
def log(monkeypatch):
    """The lines that the server logs, as objects."""
    output = io.StringIO()
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", root.handlers)
    monkeypatch.setattr(root, "level", root.level)
    configure_logging("info", output)
    yield lambda: [json.loads(line) for line in output.getvalue().splitlines()]
    structlog.reset_defaults()


def _raising(error: BaseException):
    async def unary(request):
        raise error

    return unary


async def _failure(server, *arguments, **options) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await server.raw(*arguments, **options)
    return failed.value


async def test_every_reason_reaches_the_caller_with_its_status():
    async with ScriptedServer() as server:
        for reason, row in ERROR_TABLE.items():
            server.script.unary = _raising(DomainError(reason, "refused", node_id="node-1"))
            error = await _failure(server)
            assert (error.code(), reason_of(error)) == (row.status, reason.value)
            assert dict(info_of(error).metadata) == {"node_id": "node-1"}


@pytest.mark.parametrize("call", ["snapshot", "watch"])
async def test_a_stream_fails_with_a_reason_after_what_it_has_sent(call):
    async def stream(request):
        yield session_service_pb2.GetSessionResponse()
        raise DomainError(Reason.HISTORY_COMPACTED, "compacted", oldest=7)

    async with ScriptedServer() as server:
        server.script.stream = stream
        responses = getattr(server, call)(timeout=60.0)
        assert await responses.read() is not grpc.aio.EOF
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await responses.read()
    assert failed.value.code() is StatusCode.OUT_OF_RANGE
    assert dict(info_of(failed.value).metadata) == {"oldest": "7"}


async def test_an_upload_fails_with_a_reason():
    async def collect(requests):
        raise DomainError(Reason.DATA_CORRUPTED, "the footer does not match", what="footer")

    async with ScriptedServer() as server:
        server.script.collect = collect
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await server.import_raw(b"")
    assert (failed.value.code(), reason_of(failed.value)) == (StatusCode.DATA_LOSS, "DATA_CORRUPTED")


async def test_an_unexpected_exception_is_an_incident_that_tells_the_caller_nothing_but_its_id(log):
    async with ScriptedServer() as server:
        server.script.unary = _raising(KeyError(_SECRET))
        error = await _failure(server)

    assert (error.code(), reason_of(error)) == (StatusCode.INTERNAL, "INTERNAL")
    incident_id = info_of(error).metadata["incident_id"]
    assert incident_id in (error.details() or "")
    assert _SECRET.encode() not in status_of(error).SerializeToString()
    (incident,) = [line for line in log() if line["event"] == "incident"]
    assert incident["incident_id"] == incident_id
    assert incident["method"] == "/durablememory.v1.SessionService/GetSession"
    assert incident["exceptions"] == ["builtins.KeyError"]
    assert any("test_server_errors.py" in frame for frame in incident["frames"])
    assert _SECRET not in json.dumps(incident)


async def test_an_operator_may_have_the_text_of_exceptions_in_the_log(log):
    async with ScriptedServer(log_exception_text=True) as server:
        server.script.unary = _raising(ValueError(_SECRET))
        error = await _failure(server)

    assert _SECRET not in (error.details() or "")
    assert [line["text"] for line in log() if line["event"] == "incident"] == [_SECRET]


async def test_a_timeout_of_something_inside_is_a_passed_deadline():
    async with ScriptedServer() as server:
        server.script.unary = _raising(TimeoutError())
        error = await _failure(server)
    assert (error.code(), reason_of(error)) == (StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")


async def test_outages_are_logged_and_refusals_are_not(log):
    async with ScriptedServer() as server:
        server.script.unary = _raising(DomainError(Reason.DEPENDENCY_UNAVAILABLE, "gone", dependency="store"))
        await _failure(server)
        server.script.unary = _raising(DomainError(Reason.NODE_NOT_FOUND, "no node", node_id="node-1"))
        await _failure(server)

    (line,) = [line for line in log() if line["event"] == "call_failed"]
    assert (line["reason"], line["error.dependency"]) == ("DEPENDENCY_UNAVAILABLE", "store")


async def test_an_outage_is_no_line_a_call(log):
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with ScriptedServer(clock=clock) as server:
        server.script.unary = _raising(DomainError(Reason.DEPENDENCY_UNAVAILABLE, "gone", dependency="store"))
        for _ in range(5):
            await _failure(server)
        clock.advance(timedelta(seconds=11))
        await _failure(server)
        server.script.unary = _raising(DomainError(Reason.OUTCOME_UNKNOWN, "in the dark"))
        await _failure(server)

    lines = [(line["reason"], line["times"]) for line in log() if line["event"] == "call_failed"]
    assert lines == [("DEPENDENCY_UNAVAILABLE", 1), ("DEPENDENCY_UNAVAILABLE", 5), ("OUTCOME_UNKNOWN", 1)]


# Field 2 of GetSessionRequest is text: one that is not UTF-8, a length beyond the end, a group that never ends.
@pytest.mark.parametrize("garbage", [b"\x12\x02\xff\xfe", b"\x12\x7fabc", b"\x0b", b"\xff" * 64])
async def test_a_request_that_is_no_message_is_an_invalid_field(garbage):
    async with ScriptedServer() as server:
        error = await _failure(server, garbage)
        assert (error.code(), reason_of(error)) == (StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
        assert dict(info_of(error).metadata) == {"field": "request"}

        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await server.import_raw(b"", garbage)
        assert (failed.value.code(), reason_of(failed.value)) == (StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")


async def test_fields_of_a_later_contract_are_not_garbage():
    async with ScriptedServer() as server:
        assert await server.raw(b"\xfa\x7f\x03new") == b""


async def test_a_request_above_the_limit_is_refused_with_the_limit():
    async with ScriptedServer(max_request_bytes=64 * 1024) as server:
        error = await _failure(server, b"\xfa\x7f\xff\xff\x04" + b"x" * 81_919)
        assert (error.code(), reason_of(error)) == (StatusCode.INVALID_ARGUMENT, "LIMIT_EXCEEDED")
        assert dict(info_of(error).metadata) == {
            "field": "request",
            "limit": str(64 * 1024),
            "actual": "81924",
            "unit": "bytes",
        }
        # Far above it the transport refuses by itself, before the message is in memory.
        far = await _failure(server, b"x" * 1024 * 1024)
        assert far.code() is StatusCode.RESOURCE_EXHAUSTED


async def test_an_answer_above_the_limit_is_refused_with_the_limit():
    async def unary(request):
        answer = session_service_pb2.GetSessionResponse()
        answer.session.session_id = "x" * 70_000
        return answer

    async with ScriptedServer(max_response_bytes=64 * 1024) as server:
        server.script.unary = unary
        error = await _failure(server)
    assert (error.code(), reason_of(error)) == (StatusCode.INVALID_ARGUMENT, "LIMIT_EXCEEDED")
    assert info_of(error).metadata["field"] == "response"


async def test_an_unknown_method_or_service_is_unimplemented():
    async with ScriptedServer() as server:
        for method in ("/durablememory.v1.SessionService/NoSuchRpc", "/durablememory.v9.NoService/GetSession"):
            assert (await _failure(server, method=method)).code() is StatusCode.UNIMPLEMENTED


async def test_refusals_that_will_pass_say_when_to_come_back():
    async with ScriptedServer() as server:
        server.script.unary = _raising(DomainError(Reason.REQUEST_IN_PROGRESS, "running"))
        status = status_of(await _failure(server))
    retry = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(retry) for detail in status.details if detail.Is(retry.DESCRIPTOR))
    assert retry.retry_delay.ToMilliseconds() > 0


async def test_a_cancellation_of_something_inside_does_not_leave_the_caller_waiting(log):
    async with ScriptedServer() as server:
        server.script.unary = _raising(asyncio.CancelledError())
        error = await _failure(server)
    assert (error.code(), reason_of(error)) == (StatusCode.INTERNAL, "INTERNAL")
    (incident,) = [line for line in log() if line["event"] == "incident"]
    assert incident["exceptions"] == ["asyncio.exceptions.CancelledError"]
