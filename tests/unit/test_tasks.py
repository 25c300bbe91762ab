"""A task that is to end ends, whatever it makes of being told."""

import asyncio

import pytest

from durable_memory import tasks
from durable_memory.tasks import end


async def test_a_loop_that_takes_cancellations_for_lost_connections_ends_all_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tasks, "_AGAIN_SECONDS", 0.01)
    swallowed = 0

    async def goes_on() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed > 2:
                    raise

    task = asyncio.create_task(goes_on())
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await end([task])
    assert task.cancelled()
    assert swallowed == 3


async def test_what_a_task_puts_in_order_when_it_is_told_is_not_interrupted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tasks, "_AGAIN_SECONDS", 3_600.0)
    in_order = False

    async def tidies_up() -> None:
        nonlocal in_order
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            in_order = True

    task = asyncio.create_task(tidies_up())
    await asyncio.sleep(0)
    await end([task])
    assert in_order


async def test_what_a_task_raises_on_its_way_is_seen_and_told_to_nobody():
    async def breaks() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the connection is gone")

    task = asyncio.create_task(breaks())
    await asyncio.sleep(0)
    await end([task])
    assert task.done()


async def test_nothing_to_end_is_ended_at_once():
    await end([])
