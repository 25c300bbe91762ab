"""`LeaseStore` with its calls timed."""

from __future__ import annotations

from opentelemetry.metrics import Meter
from opentelemetry.trace import Tracer

from durable_memory.adapters.opentelemetry.timed_calls import TimedCalls
from durable_memory.ports.leases import Lease, LeaseState, LeaseStore
from durable_memory.ports.runtime import Clock

_FENCE = "durable_memory.lease.fence"


class ObservedLeaseStore:
    """An `acquire` with outcome OK is a lease granted; a `renew` with LEASE_FENCED is one that was lost."""

    def __init__(self, leases: LeaseStore, tracer: Tracer, meter: Meter, clock: Clock) -> None:
        self._leases = leases
        self._calls = TimedCalls(tracer, meter, clock, "lease", "Duration of calls of the lease store, by outcome")

    async def acquire(self, name: str, owner: str, *, ttl_seconds: float, floor: int, nonce: str) -> Lease:
        with self._calls.call("acquire", {"durable_memory.partition": name}) as span:
            lease = await self._leases.acquire(name, owner, ttl_seconds=ttl_seconds, floor=floor, nonce=nonce)
            span.set_attribute(_FENCE, lease.fence)
            return lease

    async def renew(self, lease: Lease) -> None:
        with self._calls.call("renew", _of(lease)):
            await self._leases.renew(lease)

    async def release(self, lease: Lease) -> None:
        with self._calls.call("release", _of(lease)):
            await self._leases.release(lease)

    async def inspect(self, name: str) -> LeaseState:
        with self._calls.call("inspect", {"durable_memory.partition": name}):
            return await self._leases.inspect(name)


def _of(lease: Lease) -> dict[str, str | int]:
    return {"durable_memory.partition": lease.name, _FENCE: lease.fence}
