"""The Envoy that the qualification puts before its servers: it sends calls to those that serve, and repeats none."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from durablememory.v1 import repository_service_pb2, repository_service_pb2_grpc
from tests.conftest import StartServer
from tests.processes.envoy import EnvoyProcess
from tests.processes.polling import wait_until, wait_until_async
from tests.processes.server import ServerProcess

_HEALTH_INTERVAL_SECONDS = 0.1
_DRAIN_DELAY = {"DURABLE_MEMORY_SERVER_DRAIN_DELAY_SECONDS": "5"}
"""So long Envoy may take to see that a server is about to go: many looks of a busy machine."""

_PATIENCE_SECONDS = 20.0
"""A look at the health of a server that is slow is no reason to leave it out."""

_REQUEST = repository_service_pb2.GetChangeTokenRequest(
    namespace={"tenant_id": "acme", "principal_id": "user-1", "scope_id": "default"}
)


@pytest.fixture
def servers(start_server: StartServer) -> list[ServerProcess]:
    return [start_server("memory:", env=_DRAIN_DELAY) for _ in range(2)]


@pytest.fixture
def envoy(servers: list[ServerProcess], tmp_path: Path) -> Iterator[EnvoyProcess]:
    with EnvoyProcess(
        _ports(servers),
        tmp_path,
        health_interval_seconds=_HEALTH_INTERVAL_SECONDS,
        health_timeout_seconds=_PATIENCE_SECONDS,
    ) as envoy:
        wait_until(lambda: envoy.healthy_ports() == set(_ports(servers)), what="Envoy sees both servers")
        yield envoy


async def test_no_call_fails_while_one_server_after_the_other_drains_and_starts_again(
    servers: list[ServerProcess], envoy: EnvoyProcess
):
    told: Counter[grpc.StatusCode] = Counter()
    stopping = asyncio.Event()

    async def keep_asking(channel: grpc.aio.Channel) -> None:
        stub = repository_service_pb2_grpc.RepositoryServiceStub(channel)
        while not stopping.is_set():
            try:
                await stub.GetChangeToken(_REQUEST, timeout=_PATIENCE_SECONDS)
                told[grpc.StatusCode.OK] += 1
            except grpc.aio.AioRpcError as error:
                told[error.code()] += 1

    async with _channel(envoy) as channel:
        callers = [asyncio.create_task(keep_asking(channel)) for _ in range(4)]
        try:
            for server in servers:
                enough = told[grpc.StatusCode.OK] + 100

                def is_loaded(enough: int = enough) -> bool:
                    return told[grpc.StatusCode.OK] > enough

                await wait_until_async(is_loaded, what="callers are answered")
                assert await asyncio.to_thread(server.terminate) == 0
                await asyncio.to_thread(server.start)
                await wait_until_async(lambda: envoy.healthy_ports() == set(_ports(servers)), what="both are seen")
        finally:
            stopping.set()
            await asyncio.gather(*callers)
    assert set(told) == {grpc.StatusCode.OK}


async def test_a_killed_server_is_left_out_and_without_any_the_call_is_unavailable_at_once(
    servers: list[ServerProcess], envoy: EnvoyProcess
):
    async with _channel(envoy) as channel:
        stub = repository_service_pb2_grpc.RepositoryServiceStub(channel)
        servers[0].kill9()
        wait_until(lambda: envoy.healthy_ports() == {_ports(servers)[1]}, what="one is left")
        for _ in range(4):
            await stub.GetChangeToken(_REQUEST, timeout=_PATIENCE_SECONDS)
        assert envoy.calls_by_port() == {_ports(servers)[0]: 0, _ports(servers)[1]: 4}
        servers[1].kill9()
        wait_until(lambda: not envoy.healthy_ports(), what="none is left")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.GetChangeToken(_REQUEST, timeout=_PATIENCE_SECONDS)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def _ports(servers: list[ServerProcess]) -> list[int]:
    return [int(server.address.rpartition(":")[2]) for server in servers]


def _channel(envoy: EnvoyProcess) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(envoy.address, options=[("grpc.enable_http_proxy", 0)])
