"""When grants and segments of the memory adapter end, to the moment."""

from datetime import UTC, datetime, timedelta

import pytest

from durable_memory.adapters.memory.leases import MemoryLeaseStore
from durable_memory.adapters.memory.vector_index import MemoryVectorIndex
from durable_memory.adapters.runtime import ManualClock
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.leases import Lease
from tests.conformance.index_samples import encoded_segment, fresh, grant, partition_of, publication, stage

PARTITION = partition_of("clock")
ALMOST = timedelta(seconds=10) - timedelta(microseconds=1)
REST = timedelta(microseconds=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2030, 1, 1, tzinfo=UTC))


@pytest.fixture
def leases(clock: ManualClock) -> MemoryLeaseStore:
    return MemoryLeaseStore(clock)


@pytest.fixture
def index(leases: MemoryLeaseStore, clock: ManualClock) -> MemoryVectorIndex:
    return MemoryVectorIndex(leases, clock, replaced_grace_seconds=10)


async def test_a_lease_lives_for_exactly_its_ttl_and_a_wall_clock_set_back_does_not_matter(clock, leases):
    lease = await grant(leases, PARTITION, ttl=10)
    clock.advance(timedelta(days=-1))
    clock.advance(ALMOST)
    await leases.renew(lease)
    clock.advance(ALMOST)
    with pytest.raises(DomainError) as held:
        await grant(leases, PARTITION)
    assert held.value.reason is Reason.LEASE_HELD
    assert held.value.metadata == {"retry_after_ms": "1"}
    clock.advance(REST)
    with pytest.raises(DomainError) as fenced:
        await leases.renew(lease)
    assert fenced.value.reason is Reason.LEASE_FENCED
    assert (await grant(leases, PARTITION)).fence == 2


async def test_a_repeated_grant_begins_its_ttl_anew(clock, leases):
    async def ask() -> int:
        lease: Lease = await leases.acquire(PARTITION.name, "owner", ttl_seconds=10, floor=0, nonce="nonce")
        return lease.fence

    assert await ask() == 1
    clock.advance(ALMOST)
    assert await ask() == 1
    clock.advance(ALMOST)
    assert await ask() == 1
    clock.advance(timedelta(seconds=10))
    assert await ask() == 2


async def test_staged_and_replaced_segments_live_for_exactly_their_time(clock, leases, index):
    lease = await grant(leases, PARTITION, ttl=1000)
    staged = await stage(index, PARTITION, ttl=10)
    published = await stage(index, PARTITION, ttl=10)
    manifest = await index.publish(publication(PARTITION, lease, published))
    clock.advance(ALMOST)
    assert len(await index.segments(PARTITION, [staged.segment_id, published.segment_id])) == 2
    clock.advance(REST)
    assert list(await index.segments(PARTITION, [staged.segment_id, published.segment_id])) == [published.segment_id]
    await index.publish(publication(PARTITION, lease, after=manifest))
    clock.advance(ALMOST)
    assert len(await index.segments(PARTITION, [published.segment_id])) == 1
    clock.advance(REST)
    assert await index.segments(PARTITION, [published.segment_id]) == {}
    # Its id is free again, which no other segment ever uses.
    await index.stage(PARTITION, published.segment_id, encoded_segment([fresh()]), ttl_seconds=10)
