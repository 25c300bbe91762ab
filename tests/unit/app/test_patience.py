"""Who asks waits for others only where others come."""

from __future__ import annotations

import asyncio

from durable_memory.app.patience import PATIENCE, PROBE, Patience


async def turns_waited(patience: Patience, arrivals: dict[int, int], most: int = 100) -> int:
    """How many turns one waits if so many are there from a turn on; the first is there from the start."""
    turn, there = 0, 1

    def count() -> int:
        nonlocal turn, there
        there = arrivals.get(turn, there)
        turn += 1
        return there

    await patience.wait(count, most)
    return turn - 1


async def test_whoever_is_alone_waits_one_turn_but_now_and_then_for_others() -> None:
    patience = Patience()
    waited = [await turns_waited(patience, {}) for _ in range(2 * PROBE)]
    assert waited == [1 + PATIENCE, *[1] * (PROBE - 1)] * 2


async def test_after_company_the_next_waits_until_nobody_new_has_come_for_some_turns() -> None:
    patience = Patience()
    assert await turns_waited(patience, {1: 2}) == 1 + 1 + PATIENCE
    assert await turns_waited(patience, {3: 2, 9: 3}) == 9 + 1 + PATIENCE
    assert await turns_waited(patience, {}) == 1 + PATIENCE


async def test_nobody_waits_once_enough_are_there() -> None:
    patience = Patience()
    assert await turns_waited(patience, {2: 4}, most=4) == 2


async def test_waiting_lets_others_run() -> None:
    ran: list[int] = []

    async def other() -> None:
        ran.append(1)

    task = asyncio.create_task(other())
    await Patience().wait(lambda: 1, 1)
    assert ran == [1]
    await task
