"""Holding a lease while work is done under it.

A holder records its fence durably before the work begins, renews at a third of the TTL, and distrusts itself: when its
own monotonic clock says that the lease may have run out, the work is cancelled, whatever the store would say. A holder
that slept through all of this is refused by its fence.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from durable_memory.app.semantic.publishing import CancelledTooLateError, not_known
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.leases import Lease, LeaseStore
from durable_memory.ports.observing import UNOBSERVED, Observer
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.semantic_records import SemanticRecords
from durable_memory.tasks import end

_FLOOR_ATTEMPTS: Final = 8
_RENEWALS_PER_TTL: Final = 3
_MARGIN_SHARE: Final = 0.2
"""The part of the TTL before its end in which the holder no longer trusts its lease."""


class LeaseHolder:
    """Takes leases on partitions for one process.

    Args:
        owner: names this process, unique for its lifetime.
        ttl_seconds: how long a lease lives without renewal.
    """

    def __init__(
        self,
        leases: LeaseStore,
        records: SemanticRecords,
        clock: Clock,
        ids: Ids,
        *,
        owner: str,
        ttl_seconds: float,
        observer: Observer = UNOBSERVED,
    ) -> None:
        self._leases = leases
        self._records = records
        self._clock = clock
        self._ids = ids
        self._owner = owner
        self._observer = observer
        self.ttl_seconds: Final = ttl_seconds

    @asynccontextmanager
    async def hold(
        self, partition: Partition, on_renewed: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncIterator[Lease]:
        """The block runs under the lease, and is cancelled when the lease can no longer be trusted.

        `on_renewed` runs after each renewal, for what has to live as long as the lease.

        Raises: LEASE_HELD, DEPENDENCY_UNAVAILABLE; LEASE_FENCED if the lease was lost meanwhile, or OUTCOME_UNKNOWN if
        that was when the index was being changed.
        """
        lease, trusted_until = await self._acquire(partition)
        work = asyncio.current_task()
        if work is None:
            raise AssertionError("a lease is held by a task")
        lost: list[Exception] = []

        async def keep() -> None:
            try:
                lost.append(await self._keep(lease, trusted_until, on_renewed))
            except Exception as error:  # noqa: BLE001 - raised where the work is: nothing may go on without renewals
                lost.append(error)
            self._observer.lease_lost()
            work.cancel()

        keeper = asyncio.create_task(keep(), name="renew lease")
        try:
            yield lease
        except BaseException as ended:
            if lost and work.uncancel() == 0 and not _tells_of_no_outcome(ended):
                if isinstance(ended, CancelledTooLateError):
                    raise not_known("the lease was lost while the index was being changed") from lost[0]
                raise lost[0] from (None if isinstance(ended, asyncio.CancelledError) else ended)
            if isinstance(ended, CancelledTooLateError):
                # Whoever set a deadline looks for this very class, and not for what is derived from it.
                raise asyncio.CancelledError from None
            raise
        finally:
            keeper.cancel()
            await asyncio.shield(self._end(lease, keeper, lost))

    async def _end(self, lease: Lease, keeper: asyncio.Task[None], lost: Sequence[Exception]) -> None:
        """Give the lease back if it is ours still, whoever leaves meanwhile."""
        await end([keeper])
        if not lost:
            await self._release(lease)

    async def _acquire(self, partition: Partition) -> tuple[Lease, float]:
        """A lease whose fence is recorded as the highest, and until when it is trusted."""
        for _ in range(_FLOOR_ATTEMPTS):
            floor = await self._records.highest_fence(partition)
            started = self._clock.monotonic()
            lease = await self._leases.acquire(
                partition.name,
                self._owner,
                ttl_seconds=self.ttl_seconds,
                floor=floor,
                nonce=self._ids.random_hex(16),
            )
            recorded = False
            try:
                recorded = await self._records.record_fence(partition, lease.fence)
            finally:
                if not recorded:
                    # Another store, or this one before it lost its writes, has granted this fence already; or nobody
                    # can tell. Nothing is done under it, and the next one need not wait for its end.
                    await asyncio.shield(self._release(lease))
            if recorded:
                return lease, self._trusted_until(started)
        raise DomainError(
            Reason.LEASE_HELD, "fences of this partition keep being granted elsewhere", partition=partition.name
        )

    async def _keep(
        self, lease: Lease, trusted_until: float, on_renewed: Callable[[], Awaitable[None]] | None
    ) -> DomainError:
        """Renew until the lease is lost; returns how."""
        pause = self.ttl_seconds / _RENEWALS_PER_TTL
        while True:
            left = trusted_until - self._clock.monotonic()
            if left <= 0:
                return _lost(lease, "the lease ran out before it could be renewed")
            await asyncio.sleep(min(pause, left))
            started = self._clock.monotonic()
            if started >= trusted_until:
                return _lost(lease, "the holder was stopped for longer than its lease")
            try:
                async with asyncio.timeout(trusted_until - started):
                    await self._leases.renew(lease)
                    if on_renewed is not None:
                        await on_renewed()
            except TimeoutError:
                continue
            except DomainError as error:
                if error.reason is Reason.LEASE_FENCED:
                    return error
                continue  # unreachable for a moment: try again for as long as the lease is trusted
            trusted_until = self._trusted_until(started)

    def _trusted_until(self, started: float) -> float:
        return started + self.ttl_seconds * (1 - _MARGIN_SHARE)

    async def _release(self, lease: Lease) -> None:
        # Where it cannot be given back it expires by itself; what was done under it is complete either way.
        with suppress(DomainError):
            await self._leases.release(lease)


def _tells_of_no_outcome(error: BaseException) -> bool:
    return isinstance(error, DomainError) and error.reason is Reason.OUTCOME_UNKNOWN


def _lost(lease: Lease, problem: str) -> DomainError:
    return DomainError(Reason.LEASE_FENCED, problem, fence=lease.fence)
