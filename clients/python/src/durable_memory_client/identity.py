"""Ids that the client mints: of requests, and of the process it runs in."""

from __future__ import annotations

import os
import secrets
import threading
import time
from uuid import UUID

_lock = threading.Lock()
_last_ms = 0
_host: tuple[int, str] | None = None


def new_request_id() -> str:
    """A UUID of version 7: unique, and in the order in which this process made them, up to the millisecond."""
    global _last_ms
    with _lock:
        # A clock that is set back must not break the order.
        _last_ms = max(_last_ms, time.time_ns() // 1_000_000)
        milliseconds = _last_ms
    value = (milliseconds & (2**48 - 1)) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(UUID(int=value))


def host_instance() -> str:
    """Identifies this process to the service: minted once, and again in a forked child."""
    global _host
    candidate = (os.getpid(), new_request_id())
    with _lock:
        if _host is None or _host[0] != candidate[0]:
            _host = candidate
        return _host[1]
