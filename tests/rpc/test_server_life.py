"""The server's life: listening, ready, healthy, drained."""

import asyncio
import os
import socket
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.postgres.migrations import migrate
from durable_memory.adapters.runtime import SystemIds
from durable_memory.domain.errors import dependency_unavailable
from durable_memory.main import StartError
from durablememory.v1 import repository_service_pb2 as repository_pb
from durablememory.v1 import session_service_pb2
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until_async
from tests.rpc.scripted_server import ScriptedServer, info_of, reason_of

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_SERVICES = (
    "CandidateService",
    "MemoryService",
    "RecallService",
    "RepositoryService",
    "SemanticService",
    "SessionService",
    "TransferService",
)
_INFO = session_service_pb2.GetServerInfoRequest()
_TOKEN_REQUEST = repository_pb.GetChangeTokenRequest(
    namespace={"tenant_id": "acme", "principal_id": "user-1", "scope_id": "default"}
)


async def _health(stubs, service=""):
    return (await stubs.health.Check(health_pb2.HealthCheckRequest(service=service))).status


async def _failure(call) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return failed.value


async def _rest(stream) -> list:
    """What is left of a stream, if it ends well."""
    rest = []
    while (response := await stream.read()) is not grpc.aio.EOF:
        rest.append(response)
    return rest


class _FailingStore(MemoryStore):
    """A store that answers its probe only while `healthy`."""

    healthy = True

    async def check(self) -> None:
        if not self.healthy:
            raise dependency_unavailable("gone")


async def test_a_started_server_serves_and_says_so_for_each_service(server_app):
    stubs = await server_app.stubs()

    for service in ("", *(f"durablememory.v1.{name}" for name in _SERVICES)):
        assert await _health(stubs, service) == SERVING
    assert (await _failure(_health(stubs, "durablememory.v1.NoService"))).code() is StatusCode.NOT_FOUND
    assert (await stubs.sessions.GetServerInfo(_INFO)).caller == "development"
    assert (await stubs.repository.GetChangeToken(_TOKEN_REQUEST)).change_token.namespace_revision == 0


async def test_reflection_tells_every_service(server_app):
    stubs = await server_app.stubs()
    call = stubs.reflection.ServerReflectionInfo()
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    answer = await call.read()
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF

    assert {service.name for service in answer.list_services_response.service} == {
        *(f"durablememory.v1.{name}" for name in _SERVICES),
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }


async def test_health_needs_no_credential_and_everything_else_does(guarded_app):
    stranger = await guarded_app.stubs()
    assert await _health(stranger) == SERVING
    assert reason_of(await _failure(stranger.sessions.GetServerInfo(_INFO))) == "CREDENTIALS_INVALID"

    reader = await guarded_app.stubs("reader")
    assert (await reader.sessions.GetServerInfo(_INFO)).caller == "reader"
    foreign = await guarded_app.stubs("foreign")
    assert reason_of(await _failure(foreign.repository.GetChangeToken(_TOKEN_REQUEST))) == "PERMISSION_DENIED"


async def test_a_server_without_its_database_is_alive_and_says_why_it_does_not_serve(serve_application):
    app = await serve_application(f"postgresql://nobody:secret@127.0.0.1:{free_port()}/none")
    stubs = await app.stubs()

    assert await _health(stubs) == NOT_SERVING
    error = await _failure(stubs.sessions.GetServerInfo(_INFO))
    assert (error.code(), reason_of(error)) == (StatusCode.UNAVAILABLE, "NOT_SERVING")
    assert dict(info_of(error).metadata) == {"state": "starting", "cause": "DEPENDENCY_UNAVAILABLE"}
    assert "secret" not in app.application.description


async def test_a_server_serves_as_soon_as_its_schema_is_current(serve_application, postgres_empty_database):
    app = await serve_application(
        postgres_empty_database, health={"probe_interval_seconds": 0.05, "probe_timeout_seconds": 60.0}
    )
    try:
        stubs = await app.stubs()

        async def told_of_the_schema():
            error = await _failure(stubs.sessions.GetServerInfo(_INFO))
            assert reason_of(error) == "NOT_SERVING"
            return info_of(error).metadata["state"] == "schema" and info_of(error).metadata

        # Of a server that PostgreSQL keeps waiting, something else is said at first.
        assert {"have", "want"} <= set(await wait_until_async(told_of_the_schema, what="it says what it waits for"))
        assert await _health(stubs) == NOT_SERVING

        await migrate(postgres_empty_database)
        await asyncio.wait_for(app.application.wait_ready(), 60.0)
        assert await _health(stubs) == SERVING
        await stubs.repository.GetChangeToken(_TOKEN_REQUEST)
    finally:
        await app.application.stop()


async def test_health_follows_the_store(serve_application):
    store = _FailingStore(SystemIds())
    app = await serve_application(store_object=store, health={"probe_interval_seconds": 0.02})
    stubs = await app.stubs()
    watch = stubs.health.Watch(health_pb2.HealthCheckRequest())
    assert (await watch.read()).status == SERVING

    store.healthy = False
    assert (await watch.read()).status == NOT_SERVING
    # Calls are let in all the same: only the probe knows of the failure.
    await stubs.repository.GetChangeToken(_TOKEN_REQUEST)
    store.healthy = True
    assert (await watch.read()).status == SERVING
    watch.cancel()


@asynccontextmanager
async def _peer_that_takes_nothing(address, method):
    """A caller of a stream who gives the server no room to send anything on it: HTTP/2 by hand."""

    def frame(kind, flags, stream, payload):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def text(value):
        return bytes([len(value)]) + value.encode()

    no_window = frame(4, 0, 0, (4).to_bytes(2, "big") + bytes(4))
    headers = b"".join(
        (b"\x83\x86\x04", text(method), b"\x01", text(address), b"\x0f\x10", text("application/grpc"))
    ) + b"".join((b"\x00", text("te"), text("trailers")))
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + no_window)
    writer.write(frame(1, 4, 1, headers) + frame(0, 1, 1, bytes(5)))  # a message without a field ends the request
    kind = stream = None
    while (kind, stream) != (1, 1):  # the answer has begun, so its first message waits for room
        head = await asyncio.wait_for(reader.readexactly(9), 60.0)
        kind, stream = head[3], int.from_bytes(head[5:], "big")
        await reader.readexactly(int.from_bytes(head[:3], "big"))
    try:
        yield
    finally:
        writer.close()


async def test_a_peer_that_takes_nothing_keeps_health_from_nobody_and_holds_up_no_drain():
    async with ScriptedServer() as server:
        watch = server.health.Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == SERVING
        async with _peer_that_takes_nothing(server.server.address, "/grpc.health.v1.Health/Watch"):
            server.server.report(healthy=False)
            assert (await asyncio.wait_for(watch.read(), 30.0)).status == NOT_SERVING
            assert (await server.health.Check(health_pb2.HealthCheckRequest(), timeout=30.0)).status == NOT_SERVING
            server.server.report(healthy=True)
            assert (await asyncio.wait_for(watch.read(), 30.0)).status == SERVING
            await asyncio.wait_for(server.drain(grace_seconds=0.2), 30.0)


async def test_health_of_all_services_can_be_listed(server_app):
    stubs = await server_app.stubs()
    messages: Any = health_pb2  # the published types do not know List yet
    listed = await stubs.health.List(messages.HealthListRequest())
    assert {service: one.status for service, one in listed.statuses.items()} == dict.fromkeys(
        ("", *(f"durablememory.v1.{name}" for name in _SERVICES)), SERVING
    )


async def test_who_watches_a_service_that_there_is_not_is_told_so_and_left_waiting(server_app):
    stubs = await server_app.stubs()
    watch = stubs.health.Watch(health_pb2.HealthCheckRequest(service="durablememory.v1.NoService"))
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    watch.cancel()


async def test_an_address_that_is_taken_is_an_error_at_once(serve_application):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(StartError, match=address):
            await serve_application(address=address)


async def test_two_servers_never_share_a_port_by_accident(serve_application):
    first = await serve_application()
    with pytest.raises(StartError, match=first.address):
        await serve_application(address=first.address)


async def test_servers_share_a_port_when_they_are_told_to(serve_application):
    first = await serve_application(reuse_port=True)
    second = await serve_application(address=first.address, reuse_port=True)
    assert second.address == first.address


async def test_a_second_server_on_one_file_is_told_who_has_it(serve_application):
    first = await serve_application("sqlite")
    with pytest.raises(StartError, match=f"{os.getpid()}.*{first.address}"):
        await serve_application("sqlite")


async def test_an_embedded_store_that_cannot_be_opened_ends_the_start(serve_application, tmp_path):
    with pytest.raises(StartError, match="cannot be opened"):
        await serve_application(f"sqlite:///{tmp_path / 'missing' / 'memory.db'}")


async def test_a_server_can_be_reached_by_a_socket_file(serve_application, tmp_path):
    app = await serve_application(address=f"unix:{tmp_path / 'socket'}")
    assert await _health(await app.stubs()) == SERVING


async def test_what_was_written_is_there_for_the_next_server_on_the_file(serve_application):
    page_keys = []
    for _ in range(2):
        app = await serve_application("sqlite")
        page_keys.append(app.application.page_tokens)
        await app.application.stop()
    first, second = page_keys
    token = first.encode("m", b"namespace", _TOKEN_REQUEST, {"after": "node-1"})
    assert second.decode("m", b"namespace", _TOKEN_REQUEST, token) == {"after": "node-1"}


async def test_a_drain_finishes_what_runs_and_tells_watchers_to_go_elsewhere(serve_application):
    app = await serve_application(drain={"grace_seconds": 3_600.0})
    stubs = await app.stubs()
    health = stubs.health.Watch(health_pb2.HealthCheckRequest())
    assert (await health.read()).status == SERVING
    watch = stubs.repository.WatchNamespace(
        repository_pb.WatchNamespaceRequest(namespace=_TOKEN_REQUEST.namespace, after_namespace_revision=0)
    )
    await watch.initial_metadata()

    await asyncio.wait_for(app.application.stop(), 60.0)  # less than the grace: nobody had to be waited for

    assert (await health.read()).status == NOT_SERVING
    error = await _failure(_rest(watch))
    assert (error.code(), reason_of(error)) == (StatusCode.UNAVAILABLE, "NOT_SERVING")
    assert dict(info_of(error).metadata) == {"state": "draining"}
    assert (await _failure(stubs.sessions.GetServerInfo(_INFO))).code() is StatusCode.UNAVAILABLE


async def test_a_drain_lets_accepted_calls_finish_and_new_ones_not_in():
    started, finish = asyncio.Event(), asyncio.Event()

    async def slow(request):
        started.set()
        await finish.wait()
        return session_service_pb2.GetSessionResponse()

    async with ScriptedServer() as server:
        server.script.unary = slow
        running = asyncio.ensure_future(server.raw())
        await started.wait()
        drain = asyncio.ensure_future(server.drain(grace_seconds=3_600.0))
        await wait_until_async(lambda: server.server.refusal is not None, what="the drain has begun")
        assert (await _failure(server.raw())).code() is StatusCode.UNAVAILABLE
        assert not drain.done()
        finish.set()
        assert await running == b""
        await asyncio.wait_for(drain, 60.0)


async def test_a_drain_does_not_wait_for_ever():
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def stuck(request):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with ScriptedServer() as server:
        server.script.unary = stuck
        running = asyncio.ensure_future(server.raw())
        await started.wait()
        await asyncio.wait_for(server.drain(grace_seconds=0.1), 60.0)
        await asyncio.wait_for(cancelled.wait(), 30.0)
        assert (await _failure(running)).code() in (StatusCode.UNAVAILABLE, StatusCode.CANCELLED)


async def test_while_load_balancers_are_given_time_everything_is_still_served():
    async with ScriptedServer() as server:
        drain = asyncio.ensure_future(server.server.drain(delay_seconds=3_600.0, grace_seconds=1.0))
        health = server.channel.unary_unary(
            "/grpc.health.v1.Health/Check", response_deserializer=health_pb2.HealthCheckResponse.FromString
        )

        async def says_not_serving():
            return (await health(b"")).status == NOT_SERVING

        await wait_until_async(says_not_serving, what="health says NOT_SERVING")
        assert await server.raw() == b""
        drain.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drain
