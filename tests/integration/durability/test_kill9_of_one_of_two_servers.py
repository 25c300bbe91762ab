"""Two servers over one PostgreSQL, of which one is always about to be killed or replaced: the other goes on."""

import asyncio
import random
from contextlib import AsyncExitStack

from tests.conftest import StartServer
from tests.integration.durability.deployment import Tenancy, connect
from tests.integration.durability.history import Outcome

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
            await asyncio.wait_for(tenancy.recorder.sent(rng.randint(10, 60)), 30.0)
            if number < 2:
                await asyncio.to_thread(server.kill9)
            else:
                assert await asyncio.to_thread(server.terminate) == 0
            acknowledged = _acknowledged(tenancy)
            await asyncio.wait_for(tenancy.recorder.sent(20), 30.0)
            assert _acknowledged(tenancy) > acknowledged, "the other server goes on"
            await asyncio.to_thread(server.start)
            await tenancy.check()
        await tenancy.stop()
        await tenancy.settle()
        await tenancy.check_everything()
        standing = [await tenancy.standing(client) for client in clients]
        assert standing[0] == standing[1]


def _acknowledged(tenancy: Tenancy) -> int:
    return sum(call.outcome is Outcome.OK for call in tenancy.recorder.calls)
