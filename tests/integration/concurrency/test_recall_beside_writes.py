"""Recalls and writes at the same time: nobody is told less than was acknowledged before they asked."""

import asyncio
import random
import time
from collections.abc import Sequence

from durable_memory_client import MemoryClient
from tests.conftest import StartServer
from tests.integration.concurrency.conftest import connect
from tests.integration.concurrency.register import Read, Write, stale_reads
from tests.processes.postgres import PostgresProcess
from tests.processes.proxy import TcpProxy

_REGISTERS = 6
_READERS = 4


async def test_a_recall_sees_what_was_acknowledged_before_it_began(clients: Sequence[MemoryClient]):
    await _count_and_look(clients, clients, values=25)


async def test_a_server_that_is_far_from_the_database_is_late_and_not_out_of_date(
    postgres: PostgresProcess, postgres_database: str, start_server: StartServer
):
    """What it asks the database is long under way, so that a change falls in between almost every time."""
    async with TcpProxy(postgres.port) as line:
        near = await asyncio.to_thread(start_server, postgres_database)
        far = await asyncio.to_thread(start_server, line.dsn(postgres_database))
        line.delay_seconds = 0.01
        async with connect(near) as near_client, connect(far) as far_client:
            await _count_and_look([near_client], [near_client, far_client], values=15)
        await asyncio.to_thread(far.kill9)


async def _count_and_look(writers: Sequence[MemoryClient], readers: Sequence[MemoryClient], *, values: int) -> None:
    """Count registers up, and read them all the time, most of all just after a change."""
    writes: list[Write] = []
    reads: list[Read] = []
    done = asyncio.Event()

    async def count(register: int) -> None:
        rng = random.Random(register)
        name = f"register{register}"
        cited = (await rng.choice(writers).remember(f"{name} value 0", node_id=name)).citation
        for value in range(1, values + 1):
            began = time.monotonic()
            cited = (await rng.choice(writers).revise(cited, content=f"{name} value {value}")).citation
            writes.append(Write(register=name, value=value, began=began, ended=time.monotonic()))
            await asyncio.gather(*(look(client, name) for client in readers))

    async def look(memory: MemoryClient, name: str) -> None:
        began = time.monotonic()
        recall = await memory.preview(name, max_results=100)
        seen = [int(hit.content.split()[-1]) for hit in recall if hit.content.startswith(f"{name} ")]
        reads.append(Read(register=name, values=tuple(seen), began=began, ended=time.monotonic()))

    async def keep_looking(reader: int) -> None:
        rng = random.Random(f"reader {reader}")
        while not done.is_set():
            await look(rng.choice(readers), f"register{rng.randrange(_REGISTERS)}")

    looking = [asyncio.create_task(keep_looking(number)) for number in range(_READERS)]
    try:
        await asyncio.gather(*map(count, range(_REGISTERS)))
    finally:
        done.set()
        await asyncio.gather(*looking)
    assert len(reads) > 100
    found = stale_reads(writes, reads)
    assert not found, "\n".join(found)
