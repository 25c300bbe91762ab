"""Leases: the right to publish to a partition for a while, and the fence that makes it safe.

Promises that every adapter keeps:

- At most one owner holds a lease at a time by the store's own clock, as long as the store loses no writes.
- The fence rises on every grant, never on a renewal, and is above `floor` and above every fence this store still knows.
- **Repeatable.** A grant carries a nonce; the same nonce gets the first result again, as long as that lease lives, so a
  lost answer never conflicts with itself.
- Only the owner's own grant (owner and fence) renews or releases; anybody else changes nothing.

Errors: DomainError with LEASE_HELD (retry_after_ms), LEASE_FENCED, DEPENDENCY_UNAVAILABLE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A grant. `ttl_seconds` counts from before the request was sent, on the holder's monotonic clock."""

    name: str
    owner: str
    fence: int
    ttl_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """What the store says of a lease now. `owner` is `None` where nobody holds it."""

    owner: str | None
    fence: int
    remaining_seconds: float


class LeaseStore(Protocol):
    """See the module's docstring."""

    async def acquire(self, name: str, owner: str, *, ttl_seconds: float, floor: int, nonce: str) -> Lease:
        """Raises: LEASE_HELD if another owner's grant lives (also the same owner's with another nonce)."""
        ...

    async def renew(self, lease: Lease) -> None:
        """Make the lease live for another `ttl_seconds`. Raises: LEASE_FENCED if it is not the live one any more."""
        ...

    async def release(self, lease: Lease) -> None:
        """End the lease if it is still the live one; otherwise nothing."""
        ...

    async def inspect(self, name: str) -> LeaseState:
        """For people and health."""
        ...
