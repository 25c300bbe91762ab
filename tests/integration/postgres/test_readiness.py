"""What a server says of itself while its database cannot be used, and that it never ends because of it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from durable_memory_client import MemoryServiceError
from tests.conftest import StartServer
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import TcpProxy
from tests.processes.server import ServerProcess
from tests.qualification.traffic.tenancy import connect

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_PROBE = {
    "DURABLE_MEMORY_SERVER_HEALTH_PROBE_INTERVAL_SECONDS": "0.2",
    "DURABLE_MEMORY_SERVER_HEALTH_PROBE_TIMEOUT_SECONDS": "0.5",
}
_SAID_SECONDS = 1.5
"""An interval, the time of a probe, and what a busy machine needs."""

_log = logging.getLogger(__name__)


@asynccontextmanager
async def _health(server: ServerProcess) -> AsyncIterator[Any]:
    options = (("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))
    async with grpc.aio.insecure_channel(server.address, options=options) as channel:
        yield health_pb2_grpc.HealthStub(channel)


async def _said(stub: Any, service: str = "") -> int:
    return int((await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=1.0)).status)


async def _seconds_until(stub: Any, status: int) -> float:
    began = time.monotonic()

    async def says_it() -> bool:
        return await _said(stub) == status

    await wait_until_async(says_it, 30.0, what=f"health says {status}")
    return time.monotonic() - began


@pytest.mark.parametrize("way", ["silent", "refusing"])
async def test_health_says_within_a_moment_that_the_database_is_away_and_that_it_is_back(
    postgres_database: str, postgres: PostgresProcess, start_server: StartServer, way: str
):
    async with TcpProxy(postgres.port) as proxy:
        # The proxy is on this event loop.
        server = await asyncio.to_thread(start_server, proxy.dsn(postgres_database), env=_PROBE)
        async with _health(server) as stub, connect(server) as client:
            await client.remember("tea, not coffee")
            for _ in range(2):
                assert await _said(stub) == SERVING
                (proxy.go_silent if way == "silent" else proxy.refuse)()
                away = await _seconds_until(stub, NOT_SERVING)
                assert await _said(stub, "durablememory.v1.RecallService") == NOT_SERVING
                # It is alive, and answers what needs no database.
                assert (await asyncio.wait_for(client.server_info(), 2.0)).caller == "development"
                with pytest.raises(MemoryServiceError):
                    await client.get_change_token(timeout=1.0)
                proxy.mend()
                back = await _seconds_until(stub, SERVING)
                _log.info("%s: NOT_SERVING after %.2f s, SERVING %.2f s after the end", way, away, back)
                assert away < _SAID_SECONDS
                assert back < _SAID_SECONDS
                assert (await client.remember("tea, not coffee")).outcome
        assert await asyncio.to_thread(server.terminate, 10.0) == 0


async def test_a_server_that_starts_before_its_database_serves_soon_after_it_comes(
    postgres_database: str, postgres: PostgresProcess, tmp_path: Path
):
    async with TcpProxy(postgres.port) as proxy:
        proxy.refuse()
        server = ServerProcess(proxy.dsn(postgres_database), tmp_path / "server.log")
        server.launch()
        try:
            await wait_until_async(lambda: "not_ready" in server.log_text(), 30.0, what="it has looked")
            async with _health(server) as stub:
                assert await _said(stub) == NOT_SERVING
                proxy.mend()
                back = await _seconds_until(stub, SERVING)
            _log.info("SERVING %.2f s after the database came", back)
            assert back < 2.5  # a second between two attempts, and a start
        finally:
            await asyncio.to_thread(server.terminate, 10.0)
