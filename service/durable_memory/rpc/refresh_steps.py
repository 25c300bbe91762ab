"""A refresh as a stream: where it stands, as often as its reader asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from durable_memory.app.semantic.refresh_progress import RefreshProgress, Report
from durable_memory.ports.semantic_records import Receipt


class _LatestStep:
    """What a refresh reached last and nobody has taken yet."""

    def __init__(self) -> None:
        self._step: RefreshProgress | None = None
        self._moved = asyncio.Event()

    async def report(self, step: RefreshProgress) -> None:
        self._step = step
        self.wake()

    def wake(self) -> None:
        self._moved.set()

    async def moved(self) -> None:
        """Return once there was a report, or a `wake`, since the last time."""
        await self._moved.wait()
        self._moved.clear()

    def take(self) -> RefreshProgress | None:
        step, self._step = self._step, None
        return step


async def steps_of(refresh: Callable[[Report], Awaitable[Receipt]]) -> AsyncGenerator[RefreshProgress | Receipt, None]:
    """The steps of a refresh as they are reached, then what it returns.

    The refresh is a task of its own: a caller that reads slowly misses steps and never holds up what runs under a
    lease, and a lost lease cancels the work and not the call that has to tell of it. It ends with the generator.
    """
    steps = _LatestStep()
    task = asyncio.ensure_future(refresh(steps.report))
    task.add_done_callback(lambda _: steps.wake())
    try:
        while not task.done():
            await steps.moved()
            while (step := steps.take()) is not None:
                yield step
        yield await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
