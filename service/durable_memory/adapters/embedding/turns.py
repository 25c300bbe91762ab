"""Whose turn it is: bounded concurrency in which questions do not wait for the passages of a refresh."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

_QUERIES_IN_A_ROW: Final = 8


class Turns:
    """At most `width` turns at a time. Queries go first; after eight of them in a row one passage does.

    Passages never have all of the turns, for a call with many of them may take a minute. Only where there is a single
    turn does a query wait for the passages that have it.

    Belongs to one event loop. `acquire`, then `release` exactly once, with the same `query`.
    """

    def __init__(self, width: int) -> None:
        self._free = width
        self._free_for_passages = max(1, width - 1)
        self._queries: deque[asyncio.Future[None]] = deque()
        self._passages: deque[asyncio.Future[None]] = deque()
        self._queries_in_a_row = 0

    async def acquire(self, *, query: bool) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._queries if query else self._passages
        waiting.append(turn)
        self._hand_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(query=query)  # it was ours already
            elif turn in waiting:
                waiting.remove(turn)
            raise

    def release(self, *, query: bool) -> None:
        """Hand the turn to whoever is next."""
        self._free += 1
        if not query:
            self._free_for_passages += 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free:
            passages = self._passages if self._free_for_passages else None
            if self._queries and not (passages and self._queries_in_a_row >= _QUERIES_IN_A_ROW):
                waiting = self._queries
            elif passages:
                waiting = passages
            else:
                return
            turn = waiting.popleft()
            if turn.done():
                continue  # its owner has given up
            self._free -= 1
            if waiting is passages:
                self._free_for_passages -= 1
                self._queries_in_a_row = 0
            elif passages:
                self._queries_in_a_row += 1
            turn.set_result(None)
