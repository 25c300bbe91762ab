"""How much has to have happened before a fault strikes, or after it: counted, for the time is up to the machine."""

import asyncio
import math

from tests.processes.polling import wait_until_async
from tests.qualification.traffic.tenancy import Tenancy

_PATIENCE_SECONDS = 60.0


async def sent(tenancy: Tenancy, more: int) -> None:
    """Return when `more` further attempts have been started."""
    await asyncio.wait_for(tenancy.recorder.sent(more), _PATIENCE_SECONDS)


async def acknowledged(tenancy: Tenancy, more: int) -> None:
    """Return when `more` further commands have been acknowledged."""
    already = len(tenancy.recorder.acknowledged)

    def new() -> int:
        return len(tenancy.recorder.acknowledged) - already

    await wait_until_async(lambda: new() >= more, _PATIENCE_SECONDS, what=lambda: f"{new()} of {more} acknowledged")


async def given_up(tenancy: Tenancy, moment: float) -> None:
    """Return when every attempt that had begun by then, in seconds of the monotonic clock, has ended."""

    def is_over() -> bool:
        return not any(call.ended == math.inf and call.began <= moment for call in tenancy.recorder.calls_so_far())

    await wait_until_async(is_over, _PATIENCE_SECONDS, what="no caller waits any more")
