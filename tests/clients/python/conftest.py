"""A fake service to script, and clients of it; both twins in a namespace that every test may name."""

from collections.abc import AsyncIterator, Iterator

import pytest

from durable_memory_client import MemoryClient
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from tests.clients.python.fake_service import FakeService


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ADDRESS", "TOKEN", "TENANT", "PRINCIPAL", "SCOPE"):
        monkeypatch.delenv(f"DURABLE_MEMORY_{name}", raising=False)


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as service:
        yield service


@pytest.fixture
async def memory(service: FakeService) -> AsyncIterator[MemoryClient]:
    async with MemoryClient(service.address, tenant="acme", principal="user-1", scope="project-a") as client:
        yield client


@pytest.fixture
def blocking_memory(service: FakeService) -> Iterator[BlockingMemoryClient]:
    with BlockingMemoryClient(service.address, tenant="acme", principal="user-1", scope="project-a") as client:
        yield client
