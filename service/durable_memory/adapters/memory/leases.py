"""Leases in the process's memory, on its monotonic clock. The executable reference of `ports/leases.py`."""

from __future__ import annotations

from dataclasses import dataclass

from durable_memory.domain.semantic.refusals import lease_fenced, lease_held
from durable_memory.ports.leases import Lease, LeaseState
from durable_memory.ports.runtime import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grant:
    owner: str
    nonce: str
    fence: int
    expires_at: float


class MemoryLeaseStore:
    """`LeaseStore` that lives and ends with the object. Nothing here awaits, so each call is atomic on its loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._grants: dict[str, _Grant] = {}
        self._highest: dict[str, int] = {}

    async def acquire(self, name: str, owner: str, *, ttl_seconds: float, floor: int, nonce: str) -> Lease:
        now = self._clock.monotonic()
        live = self._live(name)
        if live is None:
            fence = self._highest[name] = max(self.highest_fence(name), floor) + 1
        elif (live.owner, live.nonce) == (owner, nonce) and live.fence > floor:
            fence = live.fence
        else:
            raise lease_held(live.expires_at - now)
        self._grants[name] = _Grant(owner=owner, nonce=nonce, fence=fence, expires_at=now + ttl_seconds)
        return Lease(name=name, owner=owner, fence=fence, ttl_seconds=ttl_seconds)

    async def renew(self, lease: Lease) -> None:
        grant = self._require(lease)
        self._grants[lease.name] = _Grant(
            owner=grant.owner,
            nonce=grant.nonce,
            fence=grant.fence,
            expires_at=self._clock.monotonic() + lease.ttl_seconds,
        )

    async def release(self, lease: Lease) -> None:
        live = self._live(lease.name)
        if live is not None and (live.owner, live.fence) == (lease.owner, lease.fence):
            del self._grants[lease.name]

    async def inspect(self, name: str) -> LeaseState:
        live = self._live(name)
        return LeaseState(
            owner=None if live is None else live.owner,
            fence=self.highest_fence(name),
            remaining_seconds=0.0 if live is None else live.expires_at - self._clock.monotonic(),
        )

    def require_live(self, lease: Lease) -> None:
        """For the index beside these leases. Raises: LEASE_FENCED if the lease is not the live one."""
        self._require(lease)

    def highest_fence(self, name: str) -> int:
        return self._highest.get(name, 0)

    def _require(self, lease: Lease) -> _Grant:
        live = self._live(lease.name)
        if live is None or (live.owner, live.fence) != (lease.owner, lease.fence):
            raise lease_fenced(lease.fence, self.highest_fence(lease.name))
        return live

    def _live(self, name: str) -> _Grant | None:
        grant = self._grants.get(name)
        return grant if grant is not None and self._clock.monotonic() < grant.expires_at else None
