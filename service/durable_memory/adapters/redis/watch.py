"""A task that looks at how things stand: now and then, and again and again while something is in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from redis.backoff import EqualJitterBackoff

from durable_memory.tasks import end

_MOST_DOUBTS: Final = 10
"""So many looks in a row make the pause as long as it gets."""

_log = structlog.stdlib.get_logger(__name__)


class Watch:
    """`look` says whether all is settled. Only this task calls it, however many are in doubt at once.

    Pauses have jitter, because all servers of a deployment lose a primary at the same moment.
    """

    def __init__(
        self, look: Callable[[], Awaitable[bool]], *, quiet_seconds: float, pause_seconds: float, longest_seconds: float
    ) -> None:
        self._look = look
        self._quiet = EqualJitterBackoff(cap=quiet_seconds, base=quiet_seconds)
        self._pause = EqualJitterBackoff(cap=longest_seconds, base=pause_seconds)
        self._in_doubt = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="watch the index servers")

    async def stop(self) -> None:
        """Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            await end([task])

    def hurry(self) -> None:
        """Somebody has met what should not be."""
        self._in_doubt.set()

    async def _run(self) -> None:
        doubts = 0
        while True:
            doubts = min(doubts + 1, _MOST_DOUBTS) if await self._is_in_doubt() else 0
            if doubts:
                await asyncio.sleep(self._pause.compute(doubts - 1))
            self._in_doubt.clear()
            if not await self._settled():
                self._in_doubt.set()

    async def _is_in_doubt(self) -> bool:
        try:
            async with asyncio.timeout(self._quiet.compute(0)):
                await self._in_doubt.wait()
        except TimeoutError:
            return False
        return True

    async def _settled(self) -> bool:
        try:
            return await self._look()
        except Exception as error:  # noqa: BLE001 - on record: nobody else would look again
            _log.error("index_watch_defect", exception=type(error).__name__)
            return False
