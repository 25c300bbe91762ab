"""The machine's clock and randomness, and the manual ones that tests move by hand."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """`Clock` on the operating system's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """`Clock` that stands still until it is moved."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, by: timedelta) -> None:
        """Move both clocks; `by` may be negative for the wall clock, as real ones do."""
        self._now += by
        self._monotonic += max(by.total_seconds(), 0.0)


class SystemIds:
    """`Ids` from the operating system's randomness; the time-ordered ones are UUID version 7."""

    def time_ordered(self) -> str:
        millis, nanos = divmod(time.time_ns(), 1_000_000)
        sub_millis = nanos * 4096 // 1_000_000  # 12 bits of order within the millisecond
        value = (millis & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | sub_millis << 64 | 0b10 << 62 | secrets.randbits(62)
        digits = f"{value:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def random_hex(self, size: int) -> str:
        return secrets.token_hex(size)
