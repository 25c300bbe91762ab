"""A cancellation that comes while something is made to its end is obeyed afterwards, however that ended."""

import asyncio
from typing import Any

import asyncpg
import pytest

from durable_memory.adapters.postgres import PostgresSettings
from durable_memory.adapters.postgres.transaction import WriteTransaction
from durable_memory.tasks import completed


class Server:
    """Refuses what it is asked when it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def execute(self, statement: str, timeout: float | None = None) -> str:
        self.asked.set()
        await self.go.wait()
        raise asyncpg.SerializationError


async def cancelled_meanwhile(call: Any, server: Server) -> asyncio.Task[None]:
    task: asyncio.Task[None] = asyncio.ensure_future(call)
    await server.asked.wait()
    task.cancel()
    await asyncio.sleep(0)
    server.go.set()
    await asyncio.wait({task})
    return task


async def test_a_commit_that_another_was_in_the_way_of_is_not_tried_again_for_a_caller_that_has_gone():
    server: Any = Server()
    unused: Any = None
    task = await cancelled_meanwhile(WriteTransaction(unused, server, unused, PostgresSettings()).commit(), server)
    assert task.cancelled()


async def test_a_commit_that_another_was_in_the_way_of_is_told_to_a_caller_that_waits():
    server: Any = Server()
    unused: Any = None
    server.go.set()
    with pytest.raises(asyncpg.SerializationError):
        await WriteTransaction(unused, server, unused, PostgresSettings()).commit()


async def test_work_that_fails_does_not_hide_the_cancellation_that_came_meanwhile():
    server = Server()

    async def work() -> None:
        await server.execute("SELECT")

    assert (await cancelled_meanwhile(completed(work()), server)).cancelled()
