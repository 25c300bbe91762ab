"""Bounds how long a call may run."""

from __future__ import annotations

import asyncio
from typing import Any

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.rpc.interceptors.call import IncomingCall, Proceed


class DeadlineLayer:
    """A unary call runs for as long as its caller waits, at most `maximum_seconds`; without a deadline of the
    caller for `default_seconds`. A stream runs for as long as its caller wants it to, but one that only the caller
    sends: that is answered within `maximum_upload_seconds`, because what it has sent is held until then.

    When the time is over the call is cancelled at whatever it waits for: so no port call is without a deadline.
    What a store must not leave half done, it finishes first, and says so.
    """

    def __init__(self, *, default_seconds: float, maximum_seconds: float, maximum_upload_seconds: float) -> None:
        self._default_seconds = default_seconds
        self._maximum_seconds = maximum_seconds
        self._maximum_upload_seconds = maximum_upload_seconds

    async def around(self, call: IncomingCall, proceed: Proceed) -> Any:
        timeout = asyncio.timeout(self._seconds(call))
        try:
            async with timeout:
                call.ends_at = timeout.when()
                return await proceed()
        except TimeoutError:
            if not timeout.expired():
                raise
            raise DomainError(Reason.DEADLINE_EXCEEDED, "the deadline passed") from None

    def _seconds(self, call: IncomingCall) -> float | None:
        remaining = call.context.time_remaining()
        if call.uploading:
            most = self._maximum_upload_seconds
            return most if remaining is None else min(remaining, most)
        if call.streaming:
            return remaining
        return min(self._default_seconds if remaining is None else remaining, self._maximum_seconds)
