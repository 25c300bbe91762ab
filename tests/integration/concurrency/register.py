"""Registers that only one writer counts up: what a reader may see of them, and what it must."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """An acknowledged write of a value. Times are monotonic seconds."""

    register: str
    value: int
    began: float
    ended: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was found under a register's name: one value, once there is any."""

    register: str
    values: tuple[int, ...]
    began: float
    ended: float


def stale_reads(writes: Sequence[Write], reads: Sequence[Read]) -> list[str]:
    """Every read that saw less than was acknowledged before it began, more than was begun before it ended, less than
    a read before it, or several values at once."""
    found = []
    for register in sorted({write.register for write in writes}):
        mine = sorted((write for write in writes if write.register == register), key=lambda write: write.value)
        ends = [write.ended for write in mine]
        begins = [write.began for write in mine]
        seen: list[tuple[float, int]] = [(float("-inf"), 0)]
        for read in sorted((read for read in reads if read.register == register), key=lambda read: read.ended):
            if len(read.values) > 1:
                found.append(f"{register} had the values {sorted(read.values)} at once")
            value = max(read.values, default=0)
            acknowledged = bisect_left(ends, read.began)
            begun = bisect_left(begins, read.ended)
            before = max((value for ended, value in seen if ended < read.began), default=0)
            if value < acknowledged:
                found.append(f"{register} was read as {value} after {acknowledged} had been acknowledged")
            if value > begun:
                found.append(f"{register} was read as {value} when only {begun} had been sent")
            if value < before:
                found.append(f"{register} was read as {value} after it had been read as {before}")
            seen.append((read.ended, max(value, seen[-1][1])))
    return found
