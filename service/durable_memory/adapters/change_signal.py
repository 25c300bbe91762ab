"""How a commit wakes those who wait for a change of a namespace, inside one process."""

from __future__ import annotations

import asyncio
from typing import Final

MOST_SECONDS: Final = 3.0
"""A wait never lasts longer, so that a lost signal only delays."""


class ChangeSignal:
    """Waiters by namespace key. To be used from the event loop only."""

    def __init__(self, most_seconds: float = MOST_SECONDS) -> None:
        self._most_seconds = most_seconds
        self._waiters: dict[bytes, set[asyncio.Future[None]]] = {}

    async def wait(self, key: bytes) -> None:
        """Return at the next `notify` of the key, or after a few seconds."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(key, set()).add(waiter)
        try:
            async with asyncio.timeout(self._most_seconds):
                await waiter
        except TimeoutError:
            return
        finally:
            self._forget(key, waiter)

    def notify(self, key: bytes) -> None:
        for waiter in self._waiters.get(key, ()):
            _wake(waiter)

    def notify_all(self) -> None:
        """Wake everybody, for an end: what they read next tells them."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                _wake(waiter)

    def _forget(self, key: bytes, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiters[key]
        waiters.discard(waiter)
        if not waiters:
            del self._waiters[key]


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
