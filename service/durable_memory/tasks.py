"""Ending tasks for certain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

_AGAIN_SECONDS: Final = 0.2


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until all have ended; what they raise is seen here, and told to nobody.

    Again and again: drivers take a cancellation for a lost connection now and then, and what goes round in a loop
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
