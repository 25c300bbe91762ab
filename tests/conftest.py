"""Fixtures that every kind of test may use: real processes, fresh databases, and proof that nothing leaks."""

import asyncio
import signal
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from tests.processes import orphans
from tests.processes.child import is_alive
from tests.processes.polling import wait_until, wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import newest_redis, system_redis, valkey
from tests.processes.server import ServerProcess

# A shell that starts a run in the background has it ignore Ctrl-C, and so would all programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is up to whatever else the machine does: it is measured elsewhere, and judged nowhere.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

_TEMPLATE = "durable_memory_template"

StartServer = Callable[..., ServerProcess]


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Fail the run when a process that a test started is still there at its end."""
    orphans.begin()  # it stays as long as this process
    this = psutil.Process()
    before = set(this.children(recursive=True))
    yield
    started = set(this.children(recursive=True)) - before
    wait_until(lambda: not any(map(is_alive, started)), what=lambda: f"all processes ended: {started}")


@pytest.fixture(autouse=True)
def no_task_is_left(request: pytest.FixtureRequest) -> None:
    """Fail a coroutine test that leaves a task running on its event loop."""
    if request.node.get_closest_marker("asyncio") is not None:
        request.getfixturevalue("_loop_without_tasks")


@pytest.fixture
async def _loop_without_tasks() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield

    def left() -> set[asyncio.Task[Any]]:
        return {task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()}

    # A closed channel or pool may need a few turns of the loop to end its tasks.
    await wait_until_async(lambda: not left(), what=lambda: f"all tasks ended: {left()}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresProcess]:
    """One durable PostgreSQL server for the session. A test that kills it starts it again."""
    with PostgresProcess() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres_template(postgres: PostgresProcess) -> str:
    """The name of a database with the current schema; it exists to be copied."""
    from durable_memory.adapters.postgres.migrations import migrate

    await migrate(await postgres.create_database(_TEMPLATE))
    return _TEMPLATE


@pytest.fixture
async def postgres_database(postgres: PostgresProcess, postgres_template: str) -> AsyncIterator[str]:
    """The DSN of a fresh database with the current schema. A connection left open fails the test."""
    async for dsn in _database(postgres, postgres_template):
        yield dsn


@pytest.fixture
async def postgres_empty_database(postgres: PostgresProcess) -> AsyncIterator[str]:
    """The DSN of a fresh database without any schema."""
    async for dsn in _database(postgres, "template0"):
        yield dsn


async def _database(postgres: PostgresProcess, template: str) -> AsyncIterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    # A test that failed between a kill and its restart must not fail those after it.
    postgres.ensure_running()
    yield await postgres.create_database(name, template=template)
    postgres.ensure_running()

    async def is_unused() -> bool:
        return await postgres.connections(name) == 0

    try:
        await wait_until_async(is_unused, what=f"every connection to {name} is closed")
    finally:
        await postgres.drop_database(name)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisProcess]:
    """One Redis server of the system's version for the session, which keeps nothing on the disk."""
    with RedisProcess(system_redis()) as server:
        yield server


@pytest.fixture(scope="session")
def newest_redis_server() -> Iterator[RedisProcess]:
    """The same in version 8."""
    with RedisProcess(newest_redis()) as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[RedisProcess]:
    """The same of Valkey."""
    with RedisProcess(valkey()) as server:
        yield server


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Start real servers: ``start_server(store, args=(), env=None) -> ServerProcess``.

    Each is serving when the call returns. All are ended with the test, which fails if one died by itself.
    """
    servers: list[ServerProcess] = []

    def start(store: str, args: Sequence[str] = (), env: Mapping[str, str] | None = None) -> ServerProcess:
        server = ServerProcess(store, tmp_path / f"server-{len(servers)}.log", args=args, env=env)
        server.start()
        servers.append(server)
        return server

    yield start
    died = [server for server in servers if server.ended_by_itself]
    for server in servers:
        server.close()
    assert not died, "\n".join(f"{server.address} died by itself:\n{server.log_text()}" for server in died)
