"""The plug is pulled while everybody writes: what was acknowledged is there once, and the rest can be found out."""

import asyncio
import logging
import random
from contextlib import AsyncExitStack

import pytest

from tests.conftest import StartServer
from tests.integration.durability.load import acknowledged, sent
from tests.processes.server import ServerProcess
from tests.qualification.recorder.history import Outcome
from tests.qualification.recorder.recorder import unknown_and_applied
from tests.qualification.traffic.tenancy import BUSY, QUIET, Tenancy, connect

# Twenty kills of each store, in parts that can run beside each other.
_KILLS = 5
_SEEDS = (1, 2, 3, 4)
_REPEATED = 100
_ACKNOWLEDGED = 11
"""Between two kills, at least: otherwise nothing is shown."""

# Servers are started many times, which takes long where others want the machine as well.
pytestmark = pytest.mark.timeout(600)

_log = logging.getLogger(__name__)


@pytest.mark.parametrize("seed", _SEEDS)
async def test_kill_9_under_load_loses_nothing_that_was_acknowledged(store: str, start_server: StartServer, seed: int):
    server = start_server(store)
    rng = random.Random(seed)
    async with AsyncExitStack() as stack:
        tenancies = []
        for scope, kinds in (("project-a", BUSY), ("project-b", QUIET)):
            client = await stack.enter_async_context(connect(server, scope))
            tenancy = Tenancy([client], seed=f"{seed}/{scope}", kinds=kinds)
            stack.push_async_callback(tenancy.close)
            tenancies.append(tenancy)
        for tenancy in tenancies:
            tenancy.start()
        for _ in range(_KILLS):
            await _load(rng, tenancies)
            await _kill9_and_restart(server)
            for tenancy in tenancies:
                await tenancy.check()
        for tenancy in tenancies:
            await tenancy.stop()
            await tenancy.settle()
            await tenancy.check_everything()
        await _nothing_moves_while_nobody_writes(server, tenancies, rng)
    _report(tenancies[0])


async def _load(rng: random.Random, tenancies: list[Tenancy]) -> None:
    """Return at a moment that nobody could foresee, after there was some work; often just when a call was sent."""
    await acknowledged(tenancies[0], _ACKNOWLEDGED)
    await sent(tenancies[0], rng.randint(10, 60))
    await asyncio.sleep(rng.uniform(0.0, 0.006))


async def _kill9_and_restart(server: ServerProcess) -> None:
    await asyncio.to_thread(server.kill9)
    await asyncio.to_thread(server.restart)


async def _nothing_moves_while_nobody_writes(
    server: ServerProcess, tenancies: list[Tenancy], rng: random.Random
) -> None:
    standing = [await tenancy.standing() for tenancy in tenancies]
    await _kill9_and_restart(server)
    assert [await tenancy.standing() for tenancy in tenancies] == standing
    for tenancy in tenancies:
        await tenancy.repeat(rng, _REPEATED)
    assert [await tenancy.standing() for tenancy in tenancies] == standing
    for tenancy in tenancies:
        await tenancy.check_everything()


def _report(tenancy: Tenancy) -> None:
    calls = tenancy.recorder.calls
    in_doubt, applied = unknown_and_applied(calls, tenancy.committed)
    counts = {outcome.value: sum(call.outcome is outcome for call in calls) for outcome in Outcome}
    _log.info("attempts %s, commands in doubt %d, of these applied %d", counts, in_doubt, len(applied))
    # Otherwise nothing was shown.
    assert counts["ok"] >= _ACKNOWLEDGED * _KILLS
    assert in_doubt
