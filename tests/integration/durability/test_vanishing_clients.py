"""Clients that go away in the middle: they leave no transaction and no connection behind, and the server works on."""

import asyncio
import os
import random
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from durable_memory_client import MemoryClient
from tests.conftest import StartServer
from tests.integration.durability.load import sent
from tests.processes.child import Child
from tests.processes.polling import wait_until_async
from tests.processes.proxy import TcpProxy
from tests.processes.sessions import connections, nothing_is_held
from tests.qualification.recorder.history import Outcome, Write
from tests.qualification.recorder.recorder import Command
from tests.qualification.traffic.tenancy import Tenancy, connect
from tests.qualification.traffic.wording import digest_of, text_of

_ROOT = Path(__file__).resolve().parents[3]
_MOST_CONNECTIONS = 8 + 8 + 2
"""Of one server with its default settings: writes, reads, and one each for heads and notifications."""


async def test_cancelled_calls_leave_nothing_open_and_are_applied_once_or_not_at_all(
    postgres_database: str, start_server: StartServer
):
    server = start_server(postgres_database)
    rng = random.Random(5)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connect(server))
        tenancy = Tenancy([client], seed="5", timeout=None)
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        for number in range(40):
            storm = [asyncio.create_task(_write(tenancy, client, f"storm-{number}-{index}")) for index in range(12)]
            storm += [asyncio.create_task(_read(client)) for _ in range(4)]
            await asyncio.sleep(rng.uniform(0.0, 0.02))
            for task in rng.sample(storm, 14):
                task.cancel()
            await asyncio.gather(*storm, return_exceptions=True)
        await tenancy.check()
        await tenancy.stop()
        await nothing_is_held(postgres_database)

        async def are_few() -> bool:
            return await connections(postgres_database) <= _MOST_CONNECTIONS

        await wait_until_async(are_few, what="no more connections are open than the server may have")
        assert sum(call.outcome is Outcome.UNKNOWN for call in tenancy.recorder.calls) > 40
        await tenancy.settle()
        await tenancy.check_everything()


async def test_cut_connections_leave_nothing_open(postgres_database: str, start_server: StartServer):
    server = start_server(postgres_database)
    rng = random.Random(6)
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(TcpProxy(int(server.address.rpartition(":")[2])))
        client = await stack.enter_async_context(connect(server, address=f"127.0.0.1:{proxy.port}"))
        tenancy = Tenancy([client], seed="6")
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        for _ in range(20):
            await sent(tenancy, rng.randint(5, 25))
            proxy.cut()
        await tenancy.check()
        await tenancy.stop()
        await nothing_is_held(postgres_database)
        await tenancy.settle()
        await tenancy.check_everything()


async def test_killed_clients_leave_nothing_open(postgres_database: str, start_server: StartServer, tmp_path: Path):
    server = start_server(postgres_database)
    async with connect(server) as client:
        for number in range(2):
            before = (await client.get_change_token()).namespace_revision
            child = Child(
                [sys.executable, "-m", "tests.integration.durability.restless", server.address, str(number)],
                log=tmp_path / f"client-{number}.log",
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                cwd=_ROOT,
            )

            async def is_writing(before: int = before) -> bool:
                return (await client.get_change_token()).namespace_revision >= before + 20

            try:
                await wait_until_async(is_writing, what=child.log_tail)
            finally:
                await asyncio.to_thread(child.kill9)
            await nothing_is_held(postgres_database)
        changes = [change async for change in client.list_change_sets(page_size=500)]
        assert [change.namespace_revision for change in changes] == list(range(1, len(changes) + 1))
        assert (await client.remember("still here")).citation.namespace_revision == len(changes) + 1


async def _write(tenancy: Tenancy, client: MemoryClient, request_id: str) -> None:
    text = text_of(request_id)
    command = Command(
        method="Remember",
        request_id=request_id,
        send=lambda timeout: client.remember(text, request_id=request_id, timeout=timeout),
        text=text,
        writes=(Write(expected=0, text=digest_of(text)),),
    )
    await tenancy.recorder.attempt(command)


async def _read(client: MemoryClient) -> None:
    with suppress(asyncio.CancelledError):
        await client.preview("tea")
        await client.snapshot().all()
