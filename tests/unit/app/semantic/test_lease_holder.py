"""A lease is held for as long as its work lasts, renewed in time, and never trusted for longer than it lives."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from durable_memory.adapters.memory.leases import MemoryLeaseStore
from durable_memory.adapters.memory.semantic_records import MemorySemanticRecords
from durable_memory.adapters.runtime import ManualClock
from durable_memory.app.semantic.lease_holder import LeaseHolder
from durable_memory.app.semantic.publishing import to_its_end
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from tests.processes.polling import wait_until_async
from tests.unit.app.semantic.idle_time import IdleTime
from tests.unit.app.stores import Gate, HookedStore, fails_once
from tests.unit.app.world import NAMESPACE, START, CountingIds, opened_store, refused

PARTITION = Partition(NAMESPACE, "ab" * 32)
LOST = DomainError(Reason.DEPENDENCY_UNAVAILABLE, "nobody answers")


class Place:
    """Leases and records on a clock, and holders of them."""

    def __init__(self, records: HookedStore, clock: Any) -> None:
        self.records = records
        self.clock = clock
        self.leases = HookedStore(MemoryLeaseStore(clock))

    def holder(self, name: str = "one", ttl_seconds: float = 30.0) -> LeaseHolder:
        leases: Any = self.leases
        records: Any = self.records
        return LeaseHolder(leases, records, self.clock, CountingIds(name), owner=name, ttl_seconds=ttl_seconds)

    async def owner(self) -> str | None:
        owner: str | None = (await self.leases.inspect(PARTITION.name)).owner
        return owner


@pytest.fixture
async def place() -> Place:
    return Place(HookedStore(MemorySemanticRecords(await opened_store(CountingIds("store")))), ManualClock(START))


@pytest.fixture
async def timed(idle_time: IdleTime) -> Place:
    """On the clock of the event loop, which renewals are timed by."""
    return Place(HookedStore(MemorySemanticRecords(await opened_store(CountingIds("store")))), idle_time)


async def test_the_fence_is_on_record_before_the_work_begins_and_the_lease_ends_with_it(place: Place) -> None:
    async with place.holder().hold(PARTITION) as lease:
        assert await place.records.highest_fence(PARTITION) == lease.fence == 1
        assert await place.owner() == "one"
        with refused(Reason.LEASE_HELD):
            async with place.holder("two").hold(PARTITION):
                pass
    assert await place.owner() is None
    async with place.holder("two").hold(PARTITION) as next_lease:
        assert next_lease.fence == 2


async def test_a_fence_that_is_on_record_already_is_given_back_and_a_higher_one_taken(place: Place) -> None:
    """As after a failover of the lease store, between the look at the floor and the grant."""
    left = [5, 6]

    async def overtaken() -> None:
        if left:
            await place.records._store.record_fence(PARTITION, left.pop(0))

    place.records.before["record_fence"] = overtaken
    async with place.holder().hold(PARTITION) as lease:
        assert lease.fence == 7
    assert place.leases.calls == Counter(acquire=3, release=3)


async def test_a_grant_whose_fence_cannot_be_recorded_is_given_back(place: Place) -> None:
    place.records.before["record_fence"] = fails_once(LOST)
    began: list[str] = []
    with refused(Reason.DEPENDENCY_UNAVAILABLE):
        async with place.holder().hold(PARTITION):
            began.append("the work")
    assert began == []
    assert await place.owner() is None


async def test_whoever_leaves_while_the_fence_is_recorded_keeps_no_lease(place: Place) -> None:
    gate = Gate()
    place.records.before["record_fence"] = gate

    async def hold() -> None:
        async with place.holder().hold(PARTITION):
            pytest.fail("nothing is done under it")

    work = asyncio.create_task(hold())
    await gate.reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await place.owner() is None


async def test_a_lease_is_renewed_every_third_of_its_life(timed: Place) -> None:
    renewed: list[float] = []
    begun = timed.clock.monotonic()

    async def note() -> None:
        renewed.append(timed.clock.monotonic() - begun)

    async with timed.holder(ttl_seconds=0.6).hold(PARTITION, note):
        await asyncio.sleep(0.9)
        assert await timed.owner() == "one", "for longer than its life"
    assert renewed == pytest.approx([0.2, 0.4, 0.6, 0.8])


async def test_a_renewal_that_nobody_answers_is_repeated_while_the_lease_is_trusted(timed: Place) -> None:
    timed.leases.before["renew"] = fails_once(LOST)
    async with timed.holder(ttl_seconds=0.6).hold(PARTITION):
        await asyncio.sleep(0.9)
        assert timed.leases.calls["renew"] == 4
        assert await timed.owner() == "one"


async def test_the_work_is_cancelled_before_the_lease_can_have_run_out(timed: Place) -> None:
    timed.leases.before["renew"] = Gate()  # never opened
    begun = timed.clock.monotonic()
    with refused(Reason.LEASE_FENCED):
        async with timed.holder(ttl_seconds=0.5).hold(PARTITION):
            await asyncio.Event().wait()
    assert timed.clock.monotonic() - begun == pytest.approx(0.8 * 0.5)
    assert timed.leases.calls["release"] == 0, "it is not ours to end"


async def test_the_work_is_cancelled_as_soon_as_a_renewal_is_refused(timed: Place) -> None:
    with refused(Reason.LEASE_FENCED, fence=1, highest_fence=2):
        async with timed.holder(ttl_seconds=0.3).hold(PARTITION) as lease:
            await timed.leases.release(lease)
            async with timed.holder("two").hold(PARTITION):
                await asyncio.Event().wait()
    assert await timed.owner() is None


async def test_a_lease_that_is_lost_while_the_index_is_changed_leaves_the_outcome_unknown(timed: Place) -> None:
    changing = asyncio.Event()

    async def change() -> None:
        await changing.wait()

    with refused(Reason.OUTCOME_UNKNOWN):
        async with timed.holder(ttl_seconds=0.3).hold(PARTITION) as lease:
            await timed.leases.release(lease)
            work = asyncio.current_task()
            assert work is not None
            asyncio.create_task(_set_when_cancelled(work, changing))  # noqa: RUF006 - ends with the work
            await to_its_end(change())


async def _set_when_cancelled(work: asyncio.Task[None], event: asyncio.Event) -> None:
    await wait_until_async(lambda: work.cancelling() > 0)
    event.set()


async def test_a_deadline_that_passes_while_the_index_is_changed_is_a_deadline_that_passed(place: Place) -> None:
    changing = asyncio.Event()

    async def change() -> None:
        await changing.wait()

    work = asyncio.current_task()
    assert work is not None
    ending = asyncio.create_task(_set_when_cancelled(work, changing))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), place.holder().hold(PARTITION):
            await to_its_end(change())
    await ending
    assert await place.owner() is None


async def _fails_when_cancelled(error: DomainError) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise error from None


async def test_what_the_work_fails_with_when_its_lease_is_lost_does_not_hide_that(timed: Place) -> None:
    with refused(Reason.LEASE_FENCED):
        async with timed.holder(ttl_seconds=0.3).hold(PARTITION) as lease:
            await timed.leases.release(lease)
            await _fails_when_cancelled(LOST)
    work = asyncio.current_task()
    assert work is not None
    assert work.cancelling() == 0, "nobody else has cancelled it"


async def test_an_outcome_that_nobody_knows_is_not_known_by_the_loss_of_the_lease_either(timed: Place) -> None:
    with refused(Reason.OUTCOME_UNKNOWN):
        async with timed.holder(ttl_seconds=0.3).hold(PARTITION) as lease:
            await timed.leases.release(lease)
            await _fails_when_cancelled(DomainError(Reason.OUTCOME_UNKNOWN, "no answer came"))
    work = asyncio.current_task()
    assert work is not None
    assert work.cancelling() == 0


async def test_the_work_ends_with_a_defect_in_its_renewals_for_nothing_may_go_on_without_them(timed: Place) -> None:
    timed.leases.before["renew"] = fails_once(KeyError("field"))
    with pytest.raises(KeyError):
        async with timed.holder(ttl_seconds=0.3).hold(PARTITION):
            await asyncio.Event().wait()


@pytest.mark.parametrize("reason", [Reason.DEPENDENCY_UNAVAILABLE, Reason.NOT_SERVING, Reason.OUTCOME_UNKNOWN])
async def test_work_that_is_done_is_done_whether_or_not_the_lease_can_be_given_back(
    place: Place, reason: Reason
) -> None:
    place.leases.before["release"] = fails_once(DomainError(reason, "nobody answers"))
    async with place.holder().hold(PARTITION):
        pass
    assert place.leases.calls["release"] == 1


async def test_whoever_leaves_while_a_renewal_ends_keeps_no_lease(timed: Place) -> None:
    renewing, stopped = Gate(), asyncio.Event()

    async def slow_to_stop() -> None:
        try:
            await renewing()
        except asyncio.CancelledError:
            stopped.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            raise

    timed.leases.before["renew"] = slow_to_stop

    async def hold() -> None:
        async with timed.holder(ttl_seconds=6.0).hold(PARTITION):
            await renewing.reached.wait()

    work = asyncio.create_task(hold())
    await stopped.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    async def is_free() -> bool:
        return await timed.owner() is None

    await wait_until_async(is_free)
