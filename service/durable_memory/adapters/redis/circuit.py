"""The circuit breaker: while a server does not answer, nobody waits for it but one that asks whether it is back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_OPENS_AT: Final = 5
_WEIGHT_OF_LOSS: Final = 1
_WEIGHT_OF_SILENCE: Final = 2
"""Silence has cost each attempt all of its time; a connection that is refused or cut has cost next to nothing."""


class Circuit:
    """Opens when attempts in a row had no answer: three that met silence, or five whose connection was lost.

    Attempts that ran side by side count as one, for they met the same. Opening ends the waits of all that are under
    way, so that a transfer with much time does not sit through an outage that others have found. Belongs to one event
    loop, whose clock it goes by.
    """

    def __init__(self) -> None:
        self._weight = 0
        self._failed_at = 0.0
        self._waiting: set[asyncio.Timeout] = set()
        self._emptied: asyncio.Event | None = None
        self.is_open = False

    @asynccontextmanager
    async def attempt(self, seconds: float) -> AsyncIterator[None]:
        """Around one attempt. Raises: TimeoutError after so many seconds, or when the circuit opens or is retired."""
        if self.is_retired:
            raise TimeoutError
        async with asyncio.timeout(seconds) as wait:
            self._waiting.add(wait)
            try:
                yield
            finally:
                self._waiting.discard(wait)
                if self._emptied is not None and not self._waiting:
                    self._emptied.set()

    def answered(self) -> bool:
        """The server has answered, whatever it said. True if that closes the circuit."""
        closes, self.is_open, self._weight = self.is_open, False, 0
        return closes

    def unanswered(self, began: float, *, silence: bool) -> bool:
        """An attempt that began then has met no answer. True if that opens the circuit."""
        if self.is_open or self.is_retired or began < self._failed_at:
            return False
        now = asyncio.get_running_loop().time()
        self._failed_at = now
        self._weight += _WEIGHT_OF_SILENCE if silence else _WEIGHT_OF_LOSS
        self.is_open = self._weight >= _OPENS_AT
        if self.is_open:
            self._end_waits()
        return self.is_open

    @property
    def is_retired(self) -> bool:
        return self._emptied is not None

    async def retire(self) -> None:
        """End what is under way, wait for it to be over, and let nothing begin. Idempotent."""
        if self._emptied is None:
            self._emptied = asyncio.Event()
            self.is_open = False
            self._end_waits()
        if self._waiting:
            await self._emptied.wait()

    def _end_waits(self) -> None:
        now = asyncio.get_running_loop().time()
        for wait in self._waiting:
            if not wait.expired():
                wait.reschedule(now)
