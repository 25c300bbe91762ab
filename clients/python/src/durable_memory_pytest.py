"""pytest fixtures of Durable Memory: a real server, and a client in a namespace of its own.

A module by itself, because pytest loads it at every start: it costs nothing until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from durable_memory_client import MemoryClient
    from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
    from durable_memory_client.testing import EmbeddedServer


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "durable_memory_embedding_provider",
        "Who makes the vectors of the test server: none (recall by words only), local, local-fast or auto",
        default="none",
    )


@pytest.fixture(scope="session")
def durable_memory_server(pytestconfig: pytest.Config) -> Iterator[EmbeddedServer]:
    """A real server on a loopback port, over a temporary SQLite file; one for the whole session.

    `durable_memory_embedding_provider = local` in the configuration of pytest has it recall by meaning too.
    `durable_memory_server.address` is for code that makes its own client.
    """
    from durable_memory_client.testing import EmbeddedServer, ServerStartError

    server = EmbeddedServer(embedding_provider=pytestconfig.getini("durable_memory_embedding_provider"))
    try:
        server.start()
    except ServerStartError as error:
        pytest.fail(str(error), pytrace=False)
    yield server
    server.stop()


@pytest.fixture
def durable_memory_client(durable_memory_server: EmbeddedServer) -> MemoryClient:
    """An asyncio client in a fresh namespace. It connects in the loop of the test, which closes it:

    async def test_my_agent(durable_memory_client):
        async with durable_memory_client as memory: ...
    """
    return durable_memory_server.client()


@pytest.fixture
def durable_memory_blocking_client(durable_memory_server: EmbeddedServer) -> Iterator[BlockingMemoryClient]:
    """A blocking client in a fresh namespace, closed with the test."""
    with durable_memory_server.blocking_client() as client:
        yield client
