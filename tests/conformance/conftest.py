"""One fixture per kind of store that a test needs, and namespaces that no other test uses.

Tests share one PostgreSQL database, because making one takes longer than a test; what keeps them apart is what they
test: namespaces.
"""

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.leases import LeaseStore
from durable_memory.ports.store import Store
from durable_memory.ports.vector_index import VectorIndex
from tests.conformance import index_backends
from tests.conformance.backends import ALL, DURABLE, Backend, memory_backend, postgres_backend, sqlite_backend
from tests.conformance.index_backends import IndexBackend, MemoryBackend, Opened, RedisBackend, SqliteBackend
from tests.conformance.index_samples import partition_of
from tests.processes.polling import wait_until
from tests.processes.postgres import PostgresProcess
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis
from tests.processes.redis_cluster import RedisCluster
from tests.processes.sentinel import SentinelProcess, Watch


@pytest.fixture(scope="session")
def conformance_database(postgres: PostgresProcess, postgres_template: str) -> Iterator[str]:
    """The DSN of one database with the current schema. A connection that is left open fails the run."""
    name = f"conformance_{uuid.uuid4().hex}"
    postgres.ensure_running()
    yield asyncio.run(postgres.create_database(name, template=postgres_template))
    postgres.ensure_running()
    wait_until(lambda: asyncio.run(postgres.connections(name)) == 0, what=f"every connection to {name} is closed")
    asyncio.run(postgres.drop_database(name))


def make_backend(name: str, request: pytest.FixtureRequest) -> Backend:
    if name == "sqlite":
        return sqlite_backend(request.getfixturevalue("tmp_path") / "store.db")
    if name == "postgres":
        dsn = request.getfixturevalue("conformance_database")
        request.getfixturevalue("postgres").ensure_running()  # another test may have failed between kill and restart
        return postgres_backend(dsn)
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
    """An open store."""
    async with backend.opened() as store:
        yield store


@pytest.fixture
def unique() -> str:
    """Something to put into names, so that nothing of another test has them."""
    return uuid.uuid4().hex


@pytest.fixture
def namespace(unique: str) -> Namespace:
    """One that nobody has written to."""
    return Namespace("acme", "user-1", unique)


@pytest.fixture
def other_namespace(unique: str) -> Namespace:
    """Another one that nobody has written to."""
    return Namespace("acme", "user-2", unique)


REDIS_SERVERS = {"redis": "redis_server", "redis-8": "newest_redis_server", "valkey": "valkey_server"}


@pytest.fixture(params=index_backends.ALL)
def index_backend(request: pytest.FixtureRequest) -> IndexBackend:
    """Every place of vector indexes and leases. Tests share the servers; what keeps them apart is partitions."""
    if request.param == "memory":
        return MemoryBackend()
    if request.param == "sqlite":
        return SqliteBackend(request.getfixturevalue("tmp_path") / "store.db")
    if request.param == "sentinel":
        server = request.getfixturevalue("redis_server")
        return RedisBackend(request.getfixturevalue("sentinel_url"), [server])
    if request.param == "cluster":
        cluster = request.getfixturevalue("redis_cluster")
        return RedisBackend(cluster.url, cluster.primaries)
    server = request.getfixturevalue(REDIS_SERVERS[request.param])
    server.ensure_running()
    return RedisBackend(server.url, [server])


@pytest.fixture(scope="session")
def sentinel_url(redis_server: RedisProcess) -> Iterator[str]:
    """That of a sentinel that knows the server as the primary, for as long as nobody kills it."""
    redis_server.ensure_running()
    watch = Watch(name="memory", primary_port=redis_server.port, quorum=1)
    with SentinelProcess(system_redis(), watch, secrets.token_hex(20)) as sentinel:
        yield f"redis+sentinel://127.0.0.1:{sentinel.port}/{watch.name}"


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[RedisCluster]:
    """Three shards, which keep nothing on the disk."""
    with RedisCluster(system_redis()) as cluster:
        yield cluster


@pytest.fixture
async def opened(index_backend: IndexBackend) -> AsyncIterator[Opened]:
    """An open index with its leases."""
    async with index_backend.opened() as opened:
        yield opened


@pytest.fixture
def index(opened: Opened) -> VectorIndex:
    return opened.index


@pytest.fixture
def leases(opened: Opened) -> LeaseStore:
    return opened.leases


@pytest.fixture
def partition(unique: str) -> Partition:
    """One that nobody has published to."""
    return partition_of(unique)


@pytest.fixture
def other_partition(unique: str) -> Partition:
    """Another one that nobody has published to."""
    return partition_of(f"other {unique}")
