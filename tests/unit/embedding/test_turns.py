"""Turns: bounded, queries first and never behind passages alone, nothing lost when somebody gives up."""

import asyncio
from functools import partial

import pytest

from durable_memory.adapters.embedding.turns import Turns
from tests.processes.polling import wait_until_async


class _Line:
    """Callers in a line; `order` is who got a turn. Each gives it back when it is told."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.order: list[str] = []
        self._kinds: list[bool] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def join(self, name: str, *, query: bool) -> asyncio.Task[None]:
        async def stand() -> None:
            await self._turns.acquire(query=query)
            self.order.append(name)
            self._kinds.append(query)

        task = asyncio.create_task(stand())
        self.tasks.append(task)
        await asyncio.sleep(0)
        return task

    async def serve_all(self) -> None:
        for served in range(1, len(self.tasks) + 1):
            await wait_until_async(partial(self._has_served, served))
            self._turns.release(query=self._kinds[served - 1])
        await asyncio.gather(*self.tasks)

    def _has_served(self, count: int) -> bool:
        return len(self.order) >= count


async def test_no_more_than_the_width_have_a_turn_at_once():
    turns = Turns(2)
    line = _Line(turns)
    for name in "abc":
        await line.join(name, query=True)
    assert line.order == ["a", "b"]
    turns.release(query=True)
    await line.tasks[2]
    assert line.order == ["a", "b", "c"]


async def test_passages_leave_a_turn_to_queries_where_there_are_two():
    turns = Turns(3)
    line = _Line(turns)
    for name in "abc":
        await line.join(name, query=False)
    assert line.order == ["a", "b"]
    await line.join("query", query=True)
    assert line.order == ["a", "b", "query"], "however long the passages take"
    turns.release(query=True)
    await line.join("next query", query=True)
    assert line.order == ["a", "b", "query", "next query"], "what a query gives back is no turn of passages"
    turns.release(query=False)
    await line.tasks[2]
    assert line.order[-1] == "c"


async def test_a_query_goes_before_passages_that_were_there_first():
    line = _Line(Turns(1))
    await line.join("first", query=False)
    await line.join("passage", query=False)
    await line.join("query", query=True)
    await line.serve_all()
    assert line.order == ["first", "query", "passage"]


async def test_passages_get_a_turn_however_many_queries_come():
    line = _Line(Turns(1))
    await line.join("first", query=True)
    await line.join("passage", query=False)
    for number in range(20):
        await line.join(f"query {number}", query=True)
    await line.serve_all()
    assert line.order.index("passage") == 9


async def test_one_who_gives_up_before_its_turn_leaves_the_line():
    turns = Turns(1)
    line = _Line(turns)
    await line.join("first", query=False)
    leaves = await line.join("leaves", query=False)
    await line.join("stays", query=False)
    leaves.cancel()
    turns.release(query=False)
    await line.tasks[2]
    assert line.order == ["first", "stays"]
    with pytest.raises(asyncio.CancelledError):
        await leaves


async def test_a_turn_that_comes_in_the_moment_its_owner_gives_up_goes_to_the_next():
    turns = Turns(1)
    line = _Line(turns)
    await line.join("first", query=False)
    leaves = await line.join("leaves", query=False)
    await line.join("stays", query=False)
    turns.release(query=False)  # handed to `leaves`, who has not run yet
    leaves.cancel()
    await line.tasks[2]
    assert line.order == ["first", "stays"]
    turns.release(query=False)
    await turns.acquire(query=False)
