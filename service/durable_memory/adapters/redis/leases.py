"""Leases on a Redis server, on the server's clock."""

from __future__ import annotations

from typing import Final

from durable_memory.adapters.redis import scripts
from durable_memory.adapters.redis.connection import RedisConnection
from durable_memory.adapters.redis.keys import lease_key, manifest_key
from durable_memory.adapters.redis.scripts import Answer
from durable_memory.domain.semantic.refusals import lease_fenced, lease_held
from durable_memory.ports.leases import Lease, LeaseState

MILLIS_PER_SECOND: Final = 1000


class RedisLeaseStore:
    """`LeaseStore` on a connection that its owner opens and closes."""

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def acquire(self, name: str, owner: str, *, ttl_seconds: float, floor: int, nonce: str) -> Lease:
        answer, value = await self._connection.run(
            scripts.ACQUIRE,
            [lease_key(name), manifest_key(name)],
            [owner, nonce, milliseconds(ttl_seconds), floor],
        )
        if answer == Answer.HELD:
            raise lease_held(max(0, value) / MILLIS_PER_SECOND)
        return Lease(name=name, owner=owner, fence=value, ttl_seconds=ttl_seconds)

    async def renew(self, lease: Lease) -> None:
        answer, *highest = await self._connection.run(
            scripts.RENEW,
            [lease_key(lease.name), manifest_key(lease.name)],
            [lease.owner, lease.fence, milliseconds(lease.ttl_seconds)],
        )
        if answer == Answer.FENCED:
            raise lease_fenced(lease.fence, *highest)

    async def release(self, lease: Lease) -> None:
        await self._connection.run(scripts.RELEASE, [lease_key(lease.name)], [lease.owner, lease.fence])

    async def inspect(self, name: str) -> LeaseState:
        lease = lease_key(name)
        owner, left, fence = await self._connection.each(
            [("HGET", lease, "owner"), ("PTTL", lease), ("HGET", manifest_key(name), "highest_fence")]
        )
        live = owner is not None and left >= 0  # 0 in its last millisecond, in which nobody else is granted it
        return LeaseState(
            owner=owner.decode() if live else None,
            fence=int(fence or 0),
            remaining_seconds=left / MILLIS_PER_SECOND if live else 0.0,
        )


def milliseconds(seconds: float) -> int:
    """A TTL as servers take it: never 0, which they refuse."""
    return max(1, round(seconds * MILLIS_PER_SECOND))
