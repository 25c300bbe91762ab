"""PostgreSQL ends connections of a server at random, in transactions and in commits: callers hardly notice."""

import asyncio
import logging
import random
from collections import Counter
from contextlib import AsyncExitStack

import asyncpg

from tests.conftest import StartServer
from tests.integration.durability.load import sent
from tests.processes.sessions import nothing_is_held
from tests.qualification.recorder.history import Outcome
from tests.qualification.recorder.recorder import unknown_and_applied
from tests.qualification.traffic.tenancy import Tenancy, connect

_CUTS = 80
# Those that are doing something first: that is where it hurts.
_CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
ORDER BY xact_start IS NULL, random() LIMIT 2
"""
_UNTRUE = frozenset({"INTERNAL", "DATA_CORRUPTED", "NOT_SERVING", "UNAVAILABLE", "UNKNOWN", "CANCELLED"})

_log = logging.getLogger(__name__)


async def test_cut_connections_to_the_database_lose_nothing(postgres_database: str, start_server: StartServer):
    server = start_server(postgres_database)
    rng = random.Random(19)
    async with AsyncExitStack() as stack:
        administrator = await asyncpg.connect(postgres_database)
        stack.push_async_callback(administrator.close)
        tenancy = Tenancy([await stack.enter_async_context(connect(server))], seed="19")
        stack.push_async_callback(tenancy.close)
        tenancy.start()
        for _ in range(_CUTS):
            await sent(tenancy, rng.randint(1, 8))
            await asyncio.sleep(rng.uniform(0.0, 0.004))
            await administrator.fetch(_CUT)
        await tenancy.check()
        await tenancy.stop()
        await nothing_is_held(postgres_database)
        await tenancy.settle()
        await tenancy.repeat(rng, 100)
        await tenancy.check_everything()
    calls = tenancy.recorder.calls
    failures = Counter(call.reason for call in calls if call.outcome is not Outcome.OK and not call.is_verdict)
    in_doubt, applied = unknown_and_applied(calls, tenancy.committed)
    _log.info("attempts that failed: %s; commands in doubt %d, of these applied %d", failures, in_doubt, len(applied))
    assert not _UNTRUE & set(failures)
