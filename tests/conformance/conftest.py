"""One fixture per kind of store that a test needs."""

from collections.abc import AsyncIterator

import pytest

from durable_memory.domain.namespace import Namespace
from durable_memory.ports.store import Store
from tests.conformance.backends import ALL, DURABLE, Backend, memory_backend, postgres_backend, sqlite_backend


def make_backend(name: str, request: pytest.FixtureRequest) -> Backend:
    if name == "sqlite":
        return sqlite_backend(request.getfixturevalue("tmp_path") / "store.db")
    if name == "postgres":
        return postgres_backend(request.getfixturevalue("postgres_database"))
    return memory_backend()


@pytest.fixture(params=ALL)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Every store."""
    return make_backend(request.param, request)


@pytest.fixture(params=DURABLE)
def durable_backend(request: pytest.FixtureRequest) -> Backend:
    """The stores whose data outlives the process."""
    return make_backend(request.param, request)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    """An open, empty store."""
    async with backend.opened() as store:
        yield store


@pytest.fixture
def namespace() -> Namespace:
    return Namespace("acme", "user-1", "assistant")
