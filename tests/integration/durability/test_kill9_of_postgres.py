"""The database is killed under a server that stays up: it comes back by itself, and says what is so meanwhile."""

import asyncio
import logging
import random
import time
from collections import Counter
from contextlib import AsyncExitStack

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.conftest import StartServer
from tests.integration.durability.load import sent
from tests.processes.polling import wait_until_async
from tests.processes.postgres import PostgresProcess
from tests.qualification.recorder.history import Outcome
from tests.qualification.recorder.recorder import unknown_and_applied
from tests.qualification.traffic.tenancy import Tenancy, connect

_KILLS = 5
_PROBE_OFTEN = {
    "DURABLE_MEMORY_SERVER_HEALTH_PROBE_INTERVAL_SECONDS": "0.1",
    "DURABLE_MEMORY_SERVER_HEALTH_PROBE_TIMEOUT_SECONDS": "1",
}
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
# What no caller is told when the database goes away in the middle: that the server is at fault, or not there.
_UNTRUE = frozenset({"INTERNAL", "DATA_CORRUPTED", "NOT_SERVING", "UNAVAILABLE", "UNKNOWN", "CANCELLED"})

# Servers are started many times, which takes long where others want the machine as well.
pytestmark = pytest.mark.timeout(600)

_log = logging.getLogger(__name__)


async def test_a_server_outlives_its_database_and_loses_nothing(
    postgres: PostgresProcess, postgres_database: str, start_server: StartServer
):
    server = start_server(postgres_database, env=_PROBE_OFTEN)
    rng = random.Random(7)
    async with AsyncExitStack() as stack:
        channel = await stack.enter_async_context(
            grpc.aio.insecure_channel(server.address, options=(("grpc.enable_http_proxy", 0),))
        )
        health = health_pb2_grpc.HealthStub(channel)

        async def is_said(status: int) -> bool:
            # The published types of the stub lack its calls.
            answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=60.0)  # type: ignore[attr-defined]
            return bool(answer.status == status)

        client = await stack.enter_async_context(connect(server))
        tenancy = Tenancy([client], seed="7")
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        for _ in range(_KILLS):
            await sent(tenancy, rng.randint(20, 60))
            await asyncio.sleep(rng.uniform(0.0, 0.006))
            await asyncio.to_thread(postgres.kill9)
            await wait_until_async(lambda: is_said(_NOT_SERVING), what="health says that the store is gone")
            await asyncio.to_thread(postgres.start)
            back_at = time.monotonic()
            await _acknowledged_after(tenancy, back_at)
            _log.info("first acknowledgement %.2f s after the database was back", time.monotonic() - back_at)
            await wait_until_async(lambda: is_said(_SERVING), what="health says that the store is back")
            await tenancy.check()
        await tenancy.stop()
        await tenancy.settle()
        await tenancy.repeat(rng, 100)
        await tenancy.check_everything()
        calls = tenancy.recorder.calls
        failures = Counter(call.reason for call in calls if call.outcome is not Outcome.OK and not call.is_verdict)
        in_doubt, applied = unknown_and_applied(calls, tenancy.committed)
        _log.info(
            "attempts that failed: %s; commands in doubt %d, of these applied %d", failures, in_doubt, len(applied)
        )
        assert not _UNTRUE & set(failures)
    assert server.is_running


async def _acknowledged_after(tenancy: Tenancy, moment: float) -> None:
    def is_acknowledged() -> bool:
        last = tenancy.recorder.calls[-30:]
        return any(call.began > moment and call.outcome is Outcome.OK for call in last)

    await wait_until_async(is_acknowledged, 60.0, what="a change is acknowledged again")
