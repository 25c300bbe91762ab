"""Whose turn it is: bounded concurrency in which a question never waits behind the passages of a refresh."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

_QUERIES_IN_A_ROW: Final = 8


class Turns:
    """At most `width` turns at a time. Queries go first; after eight of them in a row one passage does.

    Belongs to one event loop. `acquire`, then `release` exactly once.
    """

    def __init__(self, width: int) -> None:
        self._free = width
        self._queries: deque[asyncio.Future[None]] = deque()
        self._passages: deque[asyncio.Future[None]] = deque()
        self._queries_in_a_row = 0

    async def acquire(self, *, query: bool) -> None:
        if self._free and not self._queries and not self._passages:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._queries if query else self._passages
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # it was ours already
            elif turn in waiting:
                waiting.remove(turn)
            raise

    def release(self) -> None:
        """Hand the turn to whoever is next."""
        self._free += 1
        while self._free and (turn := self._next()) is not None:
            if not turn.done():
                self._free -= 1
                turn.set_result(None)

    def _next(self) -> asyncio.Future[None] | None:
        if self._queries and (self._queries_in_a_row < _QUERIES_IN_A_ROW or not self._passages):
            self._queries_in_a_row += 1
            return self._queries.popleft()
        self._queries_in_a_row = 0
        return self._passages.popleft() if self._passages else None
