"""Bounds how many calls run at once: in the whole server, and for each caller.

A call above a bound is refused at once instead of queued: its deadline would pass in the queue, and a client that is
told waits better than a server does. The library's own `maximum_concurrent_rpcs` is not used; it stops limiting
after its first wave (grpc/grpc#41531).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.rpc.interceptors.call import IncomingCall, Proceed


class LoadLayer:
    """At most `max_calls` unary calls and `max_streams` streams in this server; more are OVERLOADED.

    Streams have a bound of their own, so that many watchers do not keep anybody from calling.
    """

    def __init__(self, *, max_calls: int, max_streams: int) -> None:
        self._limits = {False: max_calls, True: max_streams}
        self._running = {False: 0, True: 0}

    async def around(self, call: IncomingCall, proceed: Proceed) -> Any:
        kind = call.streaming
        if self._running[kind] >= self._limits[kind]:
            raise DomainError(
                Reason.OVERLOADED,
                f"the server runs {self._limits[kind]} calls already; try again",
                limit=self._limits[kind],
            )
        self._running[kind] += 1
        try:
            return await proceed()
        finally:
            self._running[kind] -= 1


class CallerLoadLayer:
    """At most `max_calls` unary calls and `max_streams` streams of one caller; more are RATE_LIMITED.

    It comes after the credentials, and counts by the caller's name.
    """

    def __init__(self, *, max_calls: int, max_streams: int) -> None:
        self._limits = {False: max_calls, True: max_streams}
        self._running: Counter[tuple[str, bool]] = Counter()

    async def around(self, call: IncomingCall, proceed: Proceed) -> Any:
        if call.caller is None:
            raise RuntimeError("the caller's load is bounded before the caller is known")
        key = call.caller.name, call.streaming
        limit = self._limits[call.streaming]
        if self._running[key] >= limit:
            raise DomainError(
                Reason.RATE_LIMITED, f"this caller has {limit} calls running already; try again", limit=limit
            )
        self._running[key] += 1
        try:
            return await proceed()
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]  # names come and go; their counts need not stay
