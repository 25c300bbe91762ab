"""Deployments that must look like one memory: one server over SQLite, and two over one PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from durable_memory_client import MemoryClient
from tests.conftest import StartServer
from tests.processes.server import ServerProcess


@pytest.fixture
def two_servers(postgres_database: str, start_server: StartServer) -> list[ServerProcess]:
    """Two servers over one PostgreSQL."""
    return [start_server(postgres_database) for _ in range(2)]


@pytest.fixture(params=["sqlite", "two servers over postgres"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> list[ServerProcess]:
    """The servers of one deployment."""
    if request.param == "sqlite":
        start_server: StartServer = request.getfixturevalue("start_server")
        return [start_server(f"sqlite:///{tmp_path}/memory.db")]
    deployed: list[ServerProcess] = request.getfixturevalue("two_servers")
    return deployed


@pytest.fixture
async def clients(servers: list[ServerProcess]) -> AsyncIterator[list[MemoryClient]]:
    """One connection to each server of the deployment, in the same namespace."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connect(server)) for server in servers]


@pytest.fixture
async def two_clients(two_servers: list[ServerProcess]) -> AsyncIterator[list[MemoryClient]]:
    """One connection to each of two servers over one PostgreSQL, in the same namespace."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connect(server)) for server in two_servers]


def connect(server: ServerProcess) -> MemoryClient:
    return MemoryClient(server.address, tenant="acme", principal="user-1", scope="default")
