"""Searches that wait together are answered together, so that a recall takes two thirds of the time at 64 callers.

Most of what a search costs is the same for one query and for ten. But the server accepts one call after the other, and
a search that is answered at once keeps the next from being accepted. So while calls come in numbers, a search waits for
others to arrive, some turns of the event loop; a caller who is alone most often waits for one turn, some microseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from durable_memory.app.patience import PATIENCE, PROBE
from durable_memory.app.views.index import LexicalIndex, LexicalRanking, Search

_TOGETHER: Final = 16
"""More take hardly less time each, and the event loop would stand still for longer."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    index: LexicalIndex
    search: Search
    ranking: asyncio.Future[LexicalRanking]


class SearchQueue:
    """Answers the searches of one event loop. One whose caller has left is not answered any more."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._alone = 0  # searches in a row

    async def search(self, index: LexicalIndex, search: Search) -> LexicalRanking:
        """What `index.rank_all` has for it, on the event loop: for searches that are short.

        Raises: what that raises.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(index, search, loop.create_future())
        self._waiting.append(waiting)
        if len(self._waiting) == 1:
            loop.call_soon(self._look, loop, 1, 0 if self._alone % PROBE else PATIENCE)
        return await waiting.ranking

    def _look(self, loop: asyncio.AbstractEventLoop, before: int, patience: int) -> None:
        """Answer, unless others keep arriving: there were `before` the last time."""
        count = len(self._waiting)
        if count < _TOGETHER and (count > before or patience):
            loop.call_soon(self._look, loop, count, PATIENCE if count > before else patience - 1)
            return
        waiting, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
        if self._waiting:
            loop.call_soon(self._look, loop, len(self._waiting), PATIENCE)
        self._alone = 0 if count > 1 else self._alone + 1
        for index in {id(one.index): one.index for one in waiting}.values():
            _answer(index, [one for one in waiting if one.index is index and not one.ranking.done()])


def _answer(index: LexicalIndex, waiting: Sequence[_Waiting]) -> None:
    try:
        found = index.rank_all([one.search for one in waiting])
    except Exception as error:  # noqa: BLE001 - whatever it is, callers get it instead of waiting for ever
        if len(waiting) == 1:
            waiting[0].ranking.set_exception(error)
            return
        for one in waiting:  # one of them fails, and the others must not fail with it
            _answer(index, [one])
        return
    for one, ranking in zip(waiting, found, strict=True):
        one.ranking.set_result(ranking)
