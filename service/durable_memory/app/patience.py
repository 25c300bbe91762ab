"""How long one who asks waits for others who ask the same, so that all are answered at once.

While calls come in numbers it is worth some turns of the event loop: each accepts another call that is there already.
Whoever is alone most often waits for one turn, some microseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 10
"""Turns of the event loop without anybody new before those that wait are answered. A turn takes some microseconds, and
a call that is there already is accepted and read within these; with half as many, some batches never come about."""

PROBE: Final = 16
"""Where all come alone, one in so many waits all the same, to see whether others come by now."""


class Patience:
    """Remembers whether others came the last time."""

    def __init__(self) -> None:
        self._alone = 0  # in a row

    async def wait(self, count: Callable[[], int], most: int) -> None:
        """Return once nobody new comes any more, or `most` are there, by `count`."""
        before, left = count(), 0 if self._alone % PROBE else PATIENCE
        while True:
            await asyncio.sleep(0)
            now = count()
            if now >= most or (now == before and not left):
                break
            left = PATIENCE if now > before else left - 1
            before = now
        self._alone = 0 if now > 1 else self._alone + 1
