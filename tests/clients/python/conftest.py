"""A fake service to script, and clients of it; both twins in a namespace that every test may name."""

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from durable_memory_client import MemoryClient, call_policy
from durable_memory_client.aio import calls
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from tests.clients.python.fake_service import FakeService


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("DURABLE_MEMORY_")]:
        monkeypatch.delenv(name)


class StandingClock:
    """The client's time, which passes only where it waits for its next attempt, and then at once.

    So that what is left for an attempt does not hang on how fast the ones before it were.
    """

    def __init__(self) -> None:
        self.now = 1_000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """Stands in for the clock of the asynchronous client."""
    clock = StandingClock()
    for module in (call_policy, calls):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(calls, "sleep", clock.sleep)
    return clock


@pytest.fixture
def hasty_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once, for files that use it."""
    monkeypatch.setattr(call_policy.RetryPolicy, "backoff", lambda self, attempt: 0.01)


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
