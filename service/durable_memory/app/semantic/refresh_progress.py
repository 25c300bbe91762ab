"""What a refresh tells those who wait for it, and those who keep a record of its run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from durable_memory.ports.semantic_records import Receipt


class RefreshPhase(StrEnum):
    """What a refresh is doing, for whoever waits for it."""

    DIFFING = "DIFFING"
    EMBEDDING = "EMBEDDING"
    STAGING = "STAGING"
    PUBLISHED = "PUBLISHED"
    UNCHANGED = "UNCHANGED"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshProgress:
    """`done` of `total` texts have vectors."""

    phase: RefreshPhase
    done: int = 0
    total: int = 0


@dataclass(slots=True)
class Granted:
    """For whoever records that a refresh ran: the fence of its lease, 0 until there is one.

    Both others are called while the lease is held. `on_lease`: before anything is done, and what it raises ends it all.
    `on_receipt`: so that what comes of it is on record before another begins.
    """

    fence: int = 0
    on_lease: Callable[[], Awaitable[None]] | None = None
    on_receipt: Callable[[Receipt], Awaitable[None]] | None = None


Report = Callable[[RefreshProgress], Awaitable[None]]
