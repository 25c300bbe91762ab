"""The one thread that a model lives in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from durable_memory.adapters.embedding.turns import Turns
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure

T = TypeVar("T")


class ModelThread:
    """Runs one thing at a time. What runs cannot be stopped, so its turn ends with it and not with who waits for it."""

    def __init__(self) -> None:
        self._turns = Turns(1)
        self._executor: ThreadPoolExecutor | None = ThreadPoolExecutor(1, thread_name_prefix="embedding-model")

    async def run(self, function: Callable[[], T], *, timeout_seconds: float | None, query: bool = False) -> T:
        """What `function` returns or raises. Raises: EmbeddingError with TIMEOUT, or UNREACHABLE after `close`."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._turns.acquire(query=query)
                if self._executor is None:
                    self._turns.release(query=query)
                    raise EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=False)
                return await asyncio.shield(self._start(self._executor, function, query=query))
        except TimeoutError:
            raise EmbeddingError(EmbeddingFailure.TIMEOUT, retryable=True) from None

    async def close(self, last: Callable[[], None]) -> None:
        """Run `last` when what is under way has ended, and nothing after it. Idempotent."""
        executor, self._executor = self._executor, None
        if executor is not None:
            try:
                await self._turns.acquire(query=True)
                await asyncio.shield(self._start(executor, last, query=True))
            finally:
                executor.shutdown(wait=False)

    def _start(self, executor: ThreadPoolExecutor, function: Callable[[], T], *, query: bool) -> asyncio.Future[T]:
        context = copy_context()  # what is counted there is counted for whoever asked
        running = asyncio.get_running_loop().run_in_executor(executor, context.run, function)
        running.add_done_callback(partial(self._ended, query=query))
        return running

    def _ended(self, running: asyncio.Future[T], *, query: bool) -> None:
        self._turns.release(query=query)
        if not running.cancelled():
            running.exception()  # seen, also where nobody waits for it any more
