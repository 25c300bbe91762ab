"""Where namespaces stand: one query answers every call that began before it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping

from durable_memory.domain.errors import DomainError
from durable_memory.domain.state import Head

ReadHeads = Callable[[Collection[bytes]], Awaitable[Mapping[bytes, Head]]]
"""The heads of those namespaces that were written to, by key, with whatever was committed before the call."""


class Heads:
    """One query at a time. Callers that come while it is under way are answered by the next, so no answer is older
    than its question. The query is a task of its own: a caller that goes away does not stop it for the others."""

    def __init__(self, read: ReadHeads) -> None:
        self._read = read
        self._waiting: dict[bytes, list[asyncio.Future[Head | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def of(self, key: bytes) -> Head | None:
        """The head, or None if the namespace was never written to. Raises what the query raises."""
        future: asyncio.Future[Head | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(future)
        if self._task is None:
            self._task = asyncio.ensure_future(self._answer())
        return await future

    async def close(self) -> None:
        """Answer those who wait, and end."""
        while self._task is not None:
            await asyncio.wait({self._task})

    async def _answer(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, {}
                await self._answer_all(asked)
        finally:
            self._task = None

    async def _answer_all(self, asked: Mapping[bytes, list[asyncio.Future[Head | None]]]) -> None:
        try:
            heads = await self._read(asked.keys())
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must hear of it
            for future in _pending(asked):
                # A copy each: raising an exception changes it.
                future.set_exception(error.with_metadata() if isinstance(error, DomainError) else error)
            return
        for key, futures in asked.items():
            for future in futures:
                if not future.done():
                    future.set_result(heads.get(key))


def _pending(asked: Mapping[bytes, list[asyncio.Future[Head | None]]]) -> list[asyncio.Future[Head | None]]:
    return [future for futures in asked.values() for future in futures if not future.done()]
