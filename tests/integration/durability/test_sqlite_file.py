"""The SQLite file: served by one process, whole at every moment, and full disks are said to be full."""

import asyncio
import os
import random
import shutil
import signal
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from durable_memory_client.errors import DependencyUnavailableError
from tests.conftest import StartServer
from tests.integration.durability.load import acknowledged, sent
from tests.processes.polling import wait_until, wait_until_async
from tests.processes.server import ServerProcess
from tests.qualification.checks.kernel import problems
from tests.qualification.recorder.history import Outcome
from tests.qualification.traffic.tenancy import Tenancy, connect


async def test_a_second_server_of_a_file_is_refused_and_told_who_serves_it(start_server: StartServer, tmp_path: Path):
    first = start_server(f"sqlite:///{tmp_path}/memory.db")
    # Another name of the same file is the same file.
    (tmp_path / "link.db").symlink_to(tmp_path / "memory.db")
    for name in ("memory.db", "link.db"):
        second = ServerProcess(f"sqlite:///{tmp_path}/{name}", tmp_path / f"{name}.log")
        second.launch()
        try:
            assert second.wait_exit() == 1
        finally:
            second.close()
        assert f"another process ({first.pid} at {first.address}) serves this database" in second.log_text()
        assert "Traceback" not in second.log_text()
    async with connect(first) as memory:
        assert (await memory.remember("still served")).citation.namespace_revision == 1


async def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n" * 1000)
    server = ServerProcess(f"sqlite:///{path}", tmp_path / "server.log")
    server.launch()
    try:
        assert server.wait_exit() == 1
    finally:
        server.close()
    assert "cannot be opened" in server.log_text()
    assert "Traceback" not in server.log_text()
    assert path.read_text() == "dear diary\n" * 1000


async def test_a_server_that_is_killed_while_it_makes_its_file_makes_it_the_next_time(
    start_server: StartServer, tmp_path: Path
):
    rng = random.Random(17)
    for number in range(4):
        path = tmp_path / f"memory-{number}.db"
        server = ServerProcess(f"sqlite:///{path}", tmp_path / f"killed-{number}.log")
        server.launch()
        try:
            await wait_until_async(path.exists, what="the file is there")
            await asyncio.sleep(rng.uniform(0.0, 0.02))
        finally:
            server.kill9()
        server.start()
        async with connect(server) as memory:
            assert (await memory.remember("kept")).citation.namespace_revision == 1
        server.close()


@pytest.mark.parametrize("way", ["snapshot of the disk", "backup by SQLite"])
async def test_a_copy_that_is_taken_under_load_is_whole(start_server: StartServer, tmp_path: Path, way: str):
    source, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    server = start_server(f"sqlite:///{source}")
    async with AsyncExitStack() as stack:
        tenancy = Tenancy([await stack.enter_async_context(connect(server))], seed=way)
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        await acknowledged(tenancy, 150)
        known = list(tenancy.recorder.calls)
        await asyncio.to_thread(_disk_snapshot if way == "snapshot of the disk" else _backup, server, source, copy)
        later = tenancy.recorder.calls_so_far()
        await tenancy.stop()
        await tenancy.check()
        other = start_server(f"sqlite:///{copy}")
        async with connect(other) as memory:
            changes = [change async for change in memory.list_change_sets(page_size=500)]
            found = problems(known, changes, later=later)
            assert not found, "\n".join(found)
            token = await memory.get_change_token()
            assert token.namespace_revision == len(changes)
            assert len(await memory.snapshot().all()) > 50
            assert len(await memory.preview("tea", max_results=10)) == 10


def _disk_snapshot(server: ServerProcess, source: Path, copy: Path) -> None:
    """Everything beside each other at one moment, as a file system's or a volume's snapshot has it."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        process = psutil.Process(server.pid)
        wait_until(lambda: process.status() == psutil.STATUS_STOPPED, what="the server stands still")
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{source}{suffix}", f"{copy}{suffix}")
    finally:
        os.kill(server.pid, signal.SIGCONT)


def _backup(server: ServerProcess, source: Path, copy: Path) -> None:
    """What `sqlite3 memory.db '.backup copy.db'` does, beside the server."""
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(copy)) as target:
        live.backup(target)


async def test_a_file_that_cannot_grow_refuses_writes_and_loses_nothing_that_was_acknowledged(
    start_server: StartServer, tmp_path: Path
):
    server = start_server(
        f"sqlite:///{tmp_path}/memory.db", env={"DURABLE_MEMORY_SERVER_HEALTH_PROBE_INTERVAL_SECONDS": "0.1"}
    )
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connect(server))
        tenancy = Tenancy([client], seed="full")
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        await sent(tenancy, 100)
        _let_no_file_grow_beyond(server, (tmp_path / "memory.db-wal").stat().st_size + 40_000)

        def is_refused() -> bool:
            recent = tenancy.recorder.calls[-20:]
            refused = [call for call in recent if call.reason == "DEPENDENCY_UNAVAILABLE"]
            # A caller that only had to wait too long tells nothing.
            return len(refused) > 10 and not any(call.outcome is Outcome.OK for call in recent)

        await wait_until_async(is_refused, 60.0, what="nothing can be written any more")
        assert "INTERNAL" not in {call.reason for call in tenancy.recorder.calls}
        with pytest.raises(DependencyUnavailableError) as refused:
            await client.remember("one more")
        assert "restart" in refused.value.message or "full" in refused.value.message
        await wait_until_async(lambda: _is_not_serving(server), what="health tells")
        # What is there can be read.
        await tenancy.check()
        assert len(await client.preview("tea", max_results=5)) == 5
        assert await asyncio.to_thread(server.terminate) == 0
        await asyncio.to_thread(server.start)
        await sent(tenancy, 20)
        await tenancy.check()
        await tenancy.stop()
        await tenancy.settle()
        await tenancy.check_everything()
        async with connect(await asyncio.to_thread(start_server, "memory:")) as elsewhere:
            await tenancy.check_copy(elsewhere)


def _let_no_file_grow_beyond(server: ServerProcess, size: int) -> None:
    psutil.Process(server.pid).rlimit(psutil.RLIMIT_FSIZE, (size, psutil.RLIM_INFINITY))


def _is_not_serving(server: ServerProcess) -> bool:
    with grpc.insecure_channel(server.address, options=(("grpc.enable_http_proxy", 0),)) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        # The published types of the stub lack its calls.
        answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=60.0)  # type: ignore[attr-defined]
    return bool(answer.status == health_pb2.HealthCheckResponse.NOT_SERVING)
