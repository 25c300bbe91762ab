"""Deadlines, concurrency and credentials: what is checked before a call gets anywhere."""

import asyncio
from functools import partial

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from durable_memory.domain.caller import Caller, Role
from durable_memory.rpc.authentication import BearerAuthenticator, current_caller
from durablememory.v1 import session_service_pb2
from tests.processes.polling import wait_until_async
from tests.rpc.scripted_server import IMPORT, ScriptedServer, info_of, reason_of, status_of

_GARBAGE = b"\xff" * 8


class _Names:
    """A token is the name of its caller."""

    def verify(self, token: str) -> Caller | None:
        return None if token == "unknown" else Caller(name=token, roles=frozenset(Role))


def _as(name: str) -> dict:
    return {"metadata": (("authorization", f"Bearer {name}"),)}


class _Gate:
    """A unary RPC that waits to be let through, and a stream that waits after its first response."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.running = 0
        self.cancelled = 0

    def is_running(self, calls: int = 1) -> bool:
        return self.running == calls

    def is_cancelled(self) -> bool:
        return (self.running, self.cancelled) == (0, 1)

    async def unary(self, request):
        self.running += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return session_service_pb2.GetSessionResponse()

    async def stream(self, request):
        yield session_service_pb2.GetSessionResponse()
        yield await self.unary(request)


async def _failure(call) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return failed.value


def _gated(server: ScriptedServer) -> _Gate:
    gate = _Gate()
    server.script.unary, server.script.stream = gate.unary, gate.stream
    return gate


async def test_a_call_without_a_deadline_gets_the_default_one():
    async with ScriptedServer(default_deadline_seconds=0.05) as server:
        gate = _gated(server)
        error = await _failure(server.raw(timeout=None))
        assert (error.code(), reason_of(error)) == (StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")
        assert (gate.running, gate.cancelled) == (0, 1)


async def test_no_caller_may_wait_longer_than_the_maximum():
    async with ScriptedServer(maximum_deadline_seconds=0.05) as server:
        gate = _gated(server)
        error = await _failure(server.raw(timeout=20.0))
        assert reason_of(error) == "DEADLINE_EXCEEDED"
        assert gate.cancelled == 1


async def test_the_deadline_of_a_caller_ends_the_work_on_the_server():
    async with ScriptedServer() as server:
        for seconds in (0.1, 1.0, 10.0):
            gate = _gated(server)
            error = await _failure(server.raw(timeout=seconds))
            assert error.code() is StatusCode.DEADLINE_EXCEEDED
            if gate.running or gate.cancelled:
                break  # otherwise it had no time to arrive
        await wait_until_async(gate.is_cancelled, what="the server gave up too")


async def test_a_stream_has_no_deadline_but_its_callers():
    async with ScriptedServer(default_deadline_seconds=0.02, maximum_deadline_seconds=0.02) as server:
        gate = _gated(server)
        responses = server.snapshot()
        assert await responses.read() is not grpc.aio.EOF
        unary = await _failure(server.raw())  # whatever the stream had of these bounds has passed by now
        assert reason_of(unary) == "DEADLINE_EXCEEDED"
        gate.open.set()
        assert await responses.read() is not grpc.aio.EOF
        assert await responses.read() is grpc.aio.EOF


async def test_an_import_that_never_comes_to_its_end_is_ended():
    given_up = asyncio.Event()

    async def never_ending():
        yield b""
        await given_up.wait()

    async with ScriptedServer(maximum_upload_seconds=0.05) as server:
        call = server.channel.stream_unary(IMPORT)
        error = await _failure(call(never_ending(), timeout=20.0))
        assert (error.code(), reason_of(error)) == (StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")
        given_up.set()


@pytest.mark.parametrize("call", ["raw", "snapshot", "watch"])
async def test_a_caller_that_goes_away_leaves_nothing_running(call):
    async with ScriptedServer(max_calls=1, max_streams=1) as server:
        for _ in range(3):
            gate = _gated(server)
            running = getattr(server, call)()
            await wait_until_async(gate.is_running, what="the call runs")
            running.cancel()
            await wait_until_async(gate.is_cancelled, what="the server gave up")


async def test_a_stream_whose_reader_is_slow_and_goes_away_is_closed_at_once():
    closed = asyncio.Event()

    async def stream(request):
        response = session_service_pb2.GetSessionResponse()
        response.session.session_id = "x" * 60_000
        try:
            while True:
                yield response
        finally:
            closed.set()

    async with ScriptedServer() as server:
        server.script.stream = stream
        responses = server.snapshot()
        await responses.read()
        responses.cancel()
        await wait_until_async(closed.is_set, what="the stream is closed")


async def test_calls_above_the_servers_bound_are_refused_wave_after_wave():
    async with ScriptedServer(max_calls=3) as server:
        for _ in range(3):
            gate = _gated(server)
            admitted = [asyncio.ensure_future(server.raw()) for _ in range(3)]
            await wait_until_async(partial(gate.is_running, 3), what="the server is full")
            for error in [await _failure(server.raw()) for _ in range(4)]:
                assert (error.code(), reason_of(error)) == (StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
                assert dict(info_of(error).metadata) == {"limit": "3"}
            retry = error_details_pb2.RetryInfo()
            assert status_of(error).details[1].Unpack(retry)
            gate.open.set()
            await asyncio.gather(*admitted)


async def test_one_caller_cannot_take_what_is_meant_for_all():
    async with ScriptedServer(authenticator=BearerAuthenticator(_Names()), max_calls_per_caller=1) as server:
        gate = _gated(server)
        first = asyncio.ensure_future(server.raw(**_as("greedy")))
        await wait_until_async(gate.is_running, what="the first call runs")
        error = await _failure(server.raw(**_as("greedy")))
        assert (error.code(), reason_of(error)) == (StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED")
        assert dict(info_of(error).metadata) == {"limit": "1"}

        other = asyncio.ensure_future(server.raw(**_as("modest")))
        await wait_until_async(partial(gate.is_running, 2), what="another caller is served")
        gate.open.set()
        await asyncio.gather(first, other)
        await server.raw(**_as("greedy"))


async def test_watchers_do_not_keep_anybody_from_calling():
    async with ScriptedServer(max_calls=1, max_streams=2) as server:
        gate = _gated(server)
        watchers = [server.watch(), server.watch()]
        await wait_until_async(partial(gate.is_running, 2), what="both watch")
        error = await _failure(server.watch().read())
        assert (error.code(), reason_of(error)) == (StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        gate.open.set()
        await server.raw()
        for watcher in watchers:
            watcher.cancel()


async def test_strangers_watch_health_and_reflect_within_bounds_that_are_nobody_elses():
    async with ScriptedServer(authenticator=BearerAuthenticator(_Names()), max_calls=1, max_streams=2) as server:
        watch = server.health.Watch(health_pb2.HealthCheckRequest())
        await watch.read()
        reflecting = server.reflection.ServerReflectionInfo()
        await reflecting.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        await reflecting.read()
        for error in (
            await _failure(server.health.Watch(health_pb2.HealthCheckRequest()).read()),
            await _failure(server.reflection.ServerReflectionInfo().read()),
        ):
            assert (error.code(), reason_of(error)) == (StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        await server.health.Check(health_pb2.HealthCheckRequest())
        await server.raw(**_as("known"))
        gate = _gated(server)
        product = server.watch(**_as("known"))
        await wait_until_async(gate.is_running, what="a stream of the contract is let in")
        for stream in (watch, reflecting, product):
            stream.cancel()


async def test_without_a_credential_nothing_of_a_request_is_read():
    async with ScriptedServer(authenticator=BearerAuthenticator(_Names())) as server:
        for options in ({}, _as("unknown"), {"metadata": (("authorization", "Basic abc"),)}):
            error = await _failure(server.raw(_GARBAGE, **options))
            assert (error.code(), reason_of(error)) == (StatusCode.UNAUTHENTICATED, "CREDENTIALS_INVALID")
            assert dict(info_of(error).metadata) == {}
        assert reason_of(await _failure(server.raw(_GARBAGE, **_as("known")))) == "INVALID_FIELD"


async def test_each_call_knows_its_own_caller():
    async def unary(request):
        before = current_caller().name
        await both.wait()
        assert current_caller().name == before
        answer = session_service_pb2.GetSessionResponse()
        answer.session.session_id = before
        return answer

    both = asyncio.Barrier(2)
    async with ScriptedServer(authenticator=BearerAuthenticator(_Names())) as server:
        server.script.unary = unary
        answers = await asyncio.gather(server.raw(**_as("first")), server.raw(**_as("second")))
    names = [session_service_pb2.GetSessionResponse.FromString(answer).session.session_id for answer in answers]
    assert names == ["first", "second"]
