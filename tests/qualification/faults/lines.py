"""Whether what is done to lines strikes anything: a line on which nobody speaks is not broken by anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.processes.proxy import TcpProxy

STRUCK_SECONDS: Final = 60.0
"""How much longer than it is about a fault of a line may last, until it has struck something.

It ends as soon as it has: this is for machines on which little is said."""


def disturbed(lines: Iterable[TcpProxy]) -> int:
    """How many chunks did not pass as they came, since the lines are there."""
    return sum(line.disturbed for line in lines)


async def until_disturbed(lines: Sequence[TcpProxy], before: int, within: float = STRUCK_SECONDS) -> int:
    """Wait until something has been disturbed since there were `before`, or time is up; return how much was."""
    with suppress(WaitTimeoutError):
        await wait_until_async(lambda: disturbed(lines) > before, within)
    return disturbed(lines) - before


async def cut_again_and_again(
    lines: Sequence[TcpProxy], pauses: Iterable[float], within: float = STRUCK_SECONDS
) -> int:
    """End all connections, and wait, for each pause in seconds; return how many were ended.

    If there never was one, the next one is awaited and ended.
    """
    ended = 0
    for seconds in pauses:
        ended += sum(line.cut() for line in lines)
        await asyncio.sleep(seconds)
    if not ended:
        with suppress(WaitTimeoutError):
            await wait_until_async(lambda: any(line.connections for line in lines), within)
        ended = sum(line.cut() for line in lines)
    return ended
