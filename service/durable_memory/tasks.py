"""Ending tasks for certain, and letting them end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Final, TypeVar

T = TypeVar("T")

_AGAIN_SECONDS: Final = 5.0
"""Longer than what a task has to put in order when it is told: giving back a lease, writing down how it ended."""


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until all have ended; what they raise is seen here, and told to nobody.

    Again after a while: drivers take a cancellation for a lost connection now and then, and what goes round in a loop
    would go on for ever. A cancellation of the caller is let through, as of any wait.
    """
    ending = set(tasks)
    pending = set(ending)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_AGAIN_SECONDS)
    for task in ending:
        if not task.cancelled():
            task.exception()


async def completed(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns. It is run to its end, and only then is a cancellation let through."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from None if task.cancelled() else task.exception()
    return task.result()
