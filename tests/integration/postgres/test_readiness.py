"""What a server says of itself while its database cannot be used, and that it never ends because of it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.postgres import PostgresSettings, PostgresStore
from durable_memory.adapters.runtime import SystemIds
from durable_memory.config import PREFIX, Settings
from durable_memory.domain.errors import dependency_unavailable
from durable_memory.main import Application, build
from durable_memory.ports.store import Store
from durable_memory.store_url import parse_store_url
from durable_memory_client import MemoryServiceError
from tests.conftest import StartServer
from tests.integration.postgres.conftest import PATIENT
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import TcpProxy
from tests.processes.server import ServerProcess
from tests.qualification.traffic.tenancy import connect

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_NEVER_SECONDS = 1_000.0
"""Longer than any test lasts."""
_PROBE_INTERVAL_SECONDS = 0.2
_PROBE_TIMEOUT_SECONDS = 2.0
_PROBE = {
    "DURABLE_MEMORY_SERVER_HEALTH_PROBE_INTERVAL_SECONDS": str(_PROBE_INTERVAL_SECONDS),
    "DURABLE_MEMORY_SERVER_HEALTH_PROBE_TIMEOUT_SECONDS": str(_PROBE_TIMEOUT_SECONDS),
}


@asynccontextmanager
async def _health(address: str) -> AsyncIterator[Any]:
    options = (("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        yield health_pb2_grpc.HealthStub(channel)


async def _said(stub: Any, service: str = "") -> int:
    return int((await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=60.0)).status)


async def _until_said(stub: Any, status: int, service: str = "") -> None:
    async def says_it() -> bool:
        return await _said(stub, service) == status

    await wait_until_async(says_it, what=f"health says {status}")


@pytest.mark.parametrize("way", ["silent", "refusing"])
async def test_health_says_that_the_database_is_away_and_that_it_is_back(
    postgres_database: str, postgres: PostgresProcess, start_server: StartServer, way: str
):
    async with TcpProxy(postgres.port) as proxy:
        # The proxy is on this event loop.
        server = await asyncio.to_thread(start_server, proxy.dsn(postgres_database), env=_PROBE)
        async with _health(server.address) as stub, connect(server) as client:
            await client.remember("tea, not coffee")
            for _ in range(2):
                await _until_said(stub, SERVING)
                (proxy.go_silent if way == "silent" else proxy.refuse)()
                await _until_said(stub, NOT_SERVING)
                await _until_said(stub, NOT_SERVING, "durablememory.v1.RecallService")
                # It is alive, and answers what needs no database.
                assert (await client.server_info()).caller == "development"
                with pytest.raises(MemoryServiceError):
                    await client.get_change_token(timeout=1.0)
                assert await _said(stub) == NOT_SERVING
                proxy.mend()
                await _until_said(stub, SERVING)
                assert (await client.remember("tea, not coffee", timeout=60.0)).outcome
        assert await asyncio.to_thread(server.terminate) == 0


@asynccontextmanager
async def _served(store: Store, dsn: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Application]:
    """A server on this event loop."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    settings: dict[str, Any] = {
        "address": "127.0.0.1:0",
        "embedding": {"provider": "none"},
        "health": {
            "probe_interval_seconds": _PROBE_INTERVAL_SECONDS,
            "probe_timeout_seconds": _PROBE_TIMEOUT_SECONDS,
        },
    }
    application = build(Settings(store=parse_store_url(dsn), **settings), store=store)
    try:
        await application.start()
        yield application
    finally:
        await application.stop()


async def test_health_does_not_wait_for_the_answer_of_a_database_that_has_gone_silent(
    postgres_database: str, postgres: PostgresProcess, monkeypatch: pytest.MonkeyPatch
):
    never = ("head_timeout_seconds", "silence_timeout_seconds", "connect_timeout_seconds")
    settings = PostgresSettings(**{**PATIENT, **dict.fromkeys(never, _NEVER_SECONDS)})
    async with TcpProxy(postgres.port) as proxy:
        store = PostgresStore(proxy.dsn(postgres_database), ids=SystemIds(), settings=settings)
        async with _served(store, postgres_database, monkeypatch) as server, _health(server.address) as stub:
            await _until_said(stub, SERVING)
            proxy.go_silent()
            await _until_said(stub, NOT_SERVING)
            proxy.mend()
            await _until_said(stub, SERVING)


async def test_a_server_that_starts_before_its_database_serves_when_it_comes(
    postgres_database: str, postgres: PostgresProcess, tmp_path: Path
):
    async with TcpProxy(postgres.port) as proxy:
        proxy.refuse()
        server = ServerProcess(proxy.dsn(postgres_database), tmp_path / "server.log")
        server.launch()
        try:
            await wait_until_async(lambda: "not_ready" in server.log_text(), 60.0, what="it has looked")
            async with _health(server.address) as stub:
                assert await _said(stub) == NOT_SERVING
                proxy.mend()
                await _until_said(stub, SERVING)
        finally:
            await asyncio.to_thread(server.terminate)


class _LateStore(MemoryStore):
    """Can be opened at the sixth attempt."""

    attempts = 0

    async def open(self) -> None:
        self.attempts += 1
        if self.attempts < 6:
            raise dependency_unavailable("not yet")
        await super().open()


async def test_it_looks_for_its_database_every_second_at_least(monkeypatch: pytest.MonkeyPatch):
    store = _LateStore(SystemIds())
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        task = asyncio.current_task()
        if store.attempts < 6 and task is not None and task.get_name() == "durable-memory-supervisor":
            pauses.append(seconds)
            seconds = 0
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", pause)
    async with _served(store, "postgresql://u@127.0.0.1:1/d", monkeypatch) as server:
        await server.wait_ready()
    assert len(pauses) == 5
    assert max(pauses) <= 1.0
