"""SIGTERM under load: the server finishes what it took, and whoever watches goes on where it was."""

import asyncio
import logging
import random
from contextlib import AsyncExitStack

from tests.conftest import StartServer
from tests.integration.durability.deployment import Tenancy, connect
from tests.integration.durability.recorder import unknown_and_applied

_DRAINS = 5

_log = logging.getLogger(__name__)


async def test_a_drain_breaks_no_promise_and_leaves_no_call_without_an_answer(store: str, start_server: StartServer):
    server = start_server(store)
    rng = random.Random(11)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connect(server))
        tenancy = Tenancy([client], seed="11")
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        for _ in range(_DRAINS):
            await asyncio.wait_for(tenancy.recorder.sent(rng.randint(20, 60)), 30.0)
            assert await asyncio.to_thread(server.terminate, 10.0) == 0
            await asyncio.to_thread(server.start)
            await tenancy.check()
        await tenancy.stop()
        await tenancy.settle()
        await tenancy.check_everything()
    in_doubt, applied = unknown_and_applied(tenancy.recorder.calls, tenancy.committed)
    _log.info("%d calls, %d in doubt, %d of these applied", len(tenancy.recorder.calls), in_doubt, applied)
    assert applied == 0, "what the server finished, it also answered"
