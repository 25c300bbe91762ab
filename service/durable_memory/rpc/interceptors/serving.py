"""Lets calls in only while the server can serve them, and ends the endless ones when it stops."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from durable_memory.domain.errors import DomainError, not_serving
from durable_memory.rpc.interceptors.call import PRODUCT_PREFIX, IncomingCall, Proceed

_PARTS: Final = 2
_LINGER_SECONDS: Final = 0.5
"""How long the end of a finite stream is kept back in a drain. The library closes a connection when it has handed over
the end of its last stream; what the system has not sent by then is dropped as soon as the reader says a word."""


class ServingLayer:
    """Answers NOT_SERVING with the reason while the server starts or drains.

    `draining` refuses new calls and lets those that run finish, all but the endless streams: these are told
    NOT_SERVING, so that their callers take them up elsewhere. Health and reflection always answer.
    """

    def __init__(self) -> None:
        self._refusal: DomainError | None = not_serving("starting", "the server is starting")
        self._draining = False
        self._arrived = 0
        self._endless: set[asyncio.Task[object]] = set()
        self._told: set[asyncio.Task[object]] = set()

    @property
    def refusal(self) -> DomainError | None:
        """Why calls are refused now; None while they are served."""
        return self._refusal

    def not_ready(self, reason: DomainError) -> None:
        """Refuse calls for `reason`: the schema is behind, the store cannot be reached."""
        self._refusal = reason

    def ready(self) -> None:
        """Serve."""
        self._refusal = None

    def drain(self) -> None:
        """Refuse new calls and end the endless ones."""
        self._draining = True
        self._refusal = not_serving("draining", "the server is stopping")
        for task in self._endless:
            self._told.add(task)
            task.cancel()

    async def silence(self, seconds: float, *, most_seconds: float) -> None:
        """Return when no call has come in for `seconds`, or after `most_seconds`."""
        # In parts: one that the event loop came late to says little, for what came meanwhile is not counted yet.
        part = seconds / _PARTS
        silent = 0
        for _ in range(max(_PARTS, round(most_seconds / part))):
            arrived = self._arrived
            await asyncio.sleep(part)
            silent = silent + 1 if arrived == self._arrived else 0
            if silent == _PARTS:
                return

    async def around(self, call: IncomingCall, proceed: Proceed) -> Any:
        self._arrived += 1
        # An endless stream that gets in after the others were told would hold up the drain.
        if self._refusal is not None and (call.method.startswith(PRODUCT_PREFIX) or (self._draining and call.endless)):
            raise self._refusal.with_metadata()
        if not call.endless:
            answer = await proceed()
            if self._draining and call.streaming and not call.uploading:
                await asyncio.sleep(_LINGER_SECONDS)
            return answer
        task = _current_task()
        self._endless.add(task)
        try:
            return await proceed()
        except asyncio.CancelledError:
            if task not in self._told or task.uncancel() > 0:
                raise  # the caller went away, perhaps at the same moment
            raise not_serving("draining", "the server is stopping") from None
        finally:
            self._endless.discard(task)
            self._told.discard(task)


def _current_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a call is served outside a task")
    return task
