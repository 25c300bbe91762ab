"""Real parts for the stories: PostgreSQL, Redis, a provider that a test tells what to say, and servers between them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from durable_memory_client.call_policy import CallPolicy
from tests.integration.semantic.deployment import Deployment, understands
from tests.processes.embedding_provider import ProviderThread, provider_thread
from tests.processes.postgres import PostgresProcess
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[ProviderThread]:
    with provider_thread(understands()) as running:
        yield running


@pytest.fixture
def provider() -> Iterator[ProviderThread]:
    with provider_thread(understands()) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_database(postgres: PostgresProcess, postgres_template: str) -> AsyncIterator[str]:
    """The DSN of a database that the stories of a module share, each in a namespace of its own."""
    name = f"test_{uuid.uuid4().hex}"
    postgres.ensure_running()
    yield await postgres.create_database(name, template=postgres_template)
    await postgres.drop_database(name)


@pytest.fixture(scope="module")
def shared(
    shared_database: str,
    shared_provider: ProviderThread,
    redis_server: RedisProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployment]:
    """A deployment that the stories of a module share; it has no server yet."""
    with Deployment(shared_database, shared_provider, tmp_path_factory.mktemp("servers"), redis_server) as deployment:
        yield deployment


@pytest.fixture
def own_redis() -> Iterator[RedisProcess]:
    """One that the test may kill. What it acknowledges is on the disk."""
    with RedisProcess(system_redis(), durable=True) as server:
        yield server


@pytest.fixture
def deployment(
    postgres_database: str, provider: ProviderThread, own_redis: RedisProcess, tmp_path: Path
) -> Iterator[Deployment]:
    """A deployment of which the test may kill every part; it has no server yet."""
    with Deployment(postgres_database, provider, tmp_path, own_redis) as deployment:
        yield deployment


@pytest.fixture
def embedded(provider: ProviderThread, tmp_path: Path) -> Iterator[Deployment]:
    """A deployment of one server with everything in one file; it has no server yet."""
    with Deployment(f"sqlite:///{tmp_path}/memory.db", provider, tmp_path) as deployment:
        yield deployment


@pytest.fixture
def scope() -> str:
    """A namespace that nobody has used."""
    return f"scope-{uuid.uuid4().hex}"


@pytest.fixture
def each_call_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client leaves what was UNAVAILABLE at that, so that a test sees what one call does."""
    monkeypatch.setattr(CallPolicy, "delay", lambda *_: None)
