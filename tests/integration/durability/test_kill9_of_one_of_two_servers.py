"""Two servers over one PostgreSQL, of which one is always about to be killed or replaced: the other goes on."""

import asyncio
import os
import random
import signal
import time
from contextlib import AsyncExitStack

import pytest

from tests.conftest import StartServer
from tests.integration.durability.load import acknowledged, given_up, sent
from tests.qualification.traffic.tenancy import Tenancy, connect

# Servers are started many times, which takes long where others want the machine as well.
pytestmark = pytest.mark.timeout(600)

_ENDS = 4


async def test_callers_go_on_with_the_other_server_and_both_tell_the_same(
    postgres_database: str, start_server: StartServer
):
    servers = [start_server(postgres_database) for _ in range(2)]
    rng = random.Random(13)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect(server)) for server in servers]
        tenancy = Tenancy(clients, seed="13")
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        for number in range(_ENDS):
            server = servers[number % 2]
            await sent(tenancy, rng.randint(10, 60))
            if number < 2:
                await asyncio.to_thread(server.kill9)
            else:
                assert await asyncio.to_thread(server.terminate) == 0
            # The other server goes on: more than what this one may have answered at the end.
            await acknowledged(tenancy, len(tenancy.callers) + 1)
            await asyncio.to_thread(server.start)
            await tenancy.check()
        await tenancy.stop()
        await tenancy.settle()
        await tenancy.check_everything()
        standing = [await tenancy.standing(client) for client in clients]
        assert standing[0] == standing[1]
        async with connect(await asyncio.to_thread(start_server, "memory:")) as elsewhere:
            await tenancy.check_copy(elsewhere)


async def test_a_server_that_stands_still_for_a_while_takes_nothing_back(
    postgres_database: str, start_server: StartServer
):
    """What it had under way it finishes later, when callers have long given up or asked the other server."""
    servers = [start_server(postgres_database) for _ in range(2)]
    rng = random.Random(23)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect(server)) for server in servers]
        tenancy = Tenancy(clients, seed="23")
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        for number in range(5):
            await sent(tenancy, rng.randint(10, 60))
            os.kill(servers[number % 2].pid, signal.SIGSTOP)
            try:
                await given_up(tenancy, time.monotonic())
            finally:
                os.kill(servers[number % 2].pid, signal.SIGCONT)
            await tenancy.check()
        await tenancy.stop()
        await tenancy.settle()
        await tenancy.check_everything()
