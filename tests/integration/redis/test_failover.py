"""Failovers that lose what was acknowledged: fences stay apart because the highest is recorded elsewhere as well."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from durable_memory.adapters.redis.keys import lease_key
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.leases import Lease
from tests.conformance.index_samples import LONG_SECONDS, grant, publish
from tests.integration.redis.conftest import Opened, OpenIndex
from tests.processes.polling import wait_until_async
from tests.processes.proxy import TcpProxy
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import newest_redis, system_redis, valkey

ACQUIRERS = 24


@dataclass
class FloorRecorder:
    """What the repository does with fences: the highest is kept, and one that is not higher is refused."""

    highest: int = 0
    accepted: list[int] = field(default_factory=list)

    async def floor(self) -> int:
        await asyncio.sleep(0)
        return self.highest

    async def record(self, fence: int) -> bool:
        await asyncio.sleep(0)
        if fence <= self.highest:
            return False
        self.highest = fence
        self.accepted.append(fence)
        return True


@dataclass
class Pair:
    """A primary, and a replica that stands behind a line that can fall silent."""

    primary: RedisProcess
    replica: RedisProcess
    line: TcpProxy


@pytest.fixture(params=[system_redis, newest_redis, valkey], ids=["redis", "redis-8", "valkey"])
async def pair(request) -> AsyncIterator[Pair]:
    async with _pair(request.param()) as pair:
        yield pair


@asynccontextmanager
async def _pair(binary) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        primary = stack.enter_context(RedisProcess(binary))
        replica = stack.enter_context(RedisProcess(binary))
        line = await stack.enter_async_context(TcpProxy(primary.port))
        await asyncio.to_thread(replica.replicate, line.port)
        yield Pair(primary, replica, line)


async def in_step(pair: Pair) -> None:
    """Wait until the replica has everything."""
    await asyncio.to_thread(pair.replica.catch_up, pair.primary)


async def hold(opened: Opened, partition: Partition, recorder: FloorRecorder, *, ttl: float = LONG_SECONDS) -> Lease:
    """Take the lease as holders do: nothing is done under a fence before it is recorded as the highest."""

    async def held() -> Lease | None:
        floor = await recorder.floor()
        try:
            lease = await grant(opened.leases, partition, floor=floor, ttl=ttl)
        except DomainError as error:
            if error.reason is Reason.LEASE_HELD:
                return None
            raise
        if await recorder.record(lease.fence):
            return lease
        await opened.leases.release(lease)
        return None

    lease = await wait_until_async(held, what="a lease whose fence is the highest")
    assert lease is not None
    return lease


async def test_a_promoted_replica_without_the_last_writes_grants_a_higher_fence_than_any_before(
    pair: Pair, open_index: OpenIndex, partition
):
    recorder = FloorRecorder()
    before = await open_index(pair.primary.url)
    first = await hold(before, partition, recorder)
    manifest = await publish(before.index, partition, first)
    await before.leases.release(first)
    await in_step(pair)

    pair.line.swallow()
    lost = await hold(before, partition, recorder)
    assert (await publish(before.index, partition, lost, after=manifest)).index_revision == 2
    assert lost.fence == 2
    await before.index.close()
    pair.primary.kill9()
    pair.replica.promote()

    after = await open_index(pair.replica.url)
    assert await after.index.manifest(partition) == manifest  # the publication is lost, and so is the grant
    assert (await after.leases.inspect(partition.name)).fence == first.fence
    successor = await hold(after, partition, recorder)
    assert successor.fence == 3
    for call in (
        publish(after.index, partition, lost, after=manifest),
        after.index.clear(partition, lost),
        after.leases.renew(lost),
    ):
        with pytest.raises(DomainError) as refusal:
            await call
        assert refusal.value.reason is Reason.LEASE_FENCED
    assert (await publish(after.index, partition, successor, after=manifest)).fence == 3
    assert recorder.accepted == [1, 2, 3]


async def test_acquirers_at_two_primaries_never_hold_the_same_fence(pair: Pair, open_index: OpenIndex, partition):
    recorder = FloorRecorder()
    old = await open_index(pair.primary.url)
    await old.leases.release(await hold(old, partition, recorder))
    await in_step(pair)
    pair.replica.promote()  # and nobody tells the old primary
    new = await open_index(pair.replica.url)

    async def acquire(number: int) -> int:
        side = (old, new)[number % 2]
        lease = await hold(side, partition, recorder)
        await side.leases.release(lease)
        return lease.fence

    fences = await asyncio.gather(*map(acquire, range(ACQUIRERS)))
    assert len(set(fences)) == ACQUIRERS
    assert recorder.accepted == sorted(recorder.accepted)


async def test_a_lease_that_a_promoted_replica_still_knows_holds_until_it_runs_out(
    pair: Pair, open_index: OpenIndex, partition
):
    before = await open_index(pair.primary.url)
    lease = await grant(before.leases, partition)
    await in_step(pair)
    await before.index.close()
    pair.primary.kill9()
    pair.replica.promote()
    after = await open_index(pair.replica.url)
    with pytest.raises(DomainError) as refusal:
        await grant(after.leases, partition, floor=lease.fence)
    assert refusal.value.reason is Reason.LEASE_HELD
    assert (await publish(after.index, partition, lease)).fence == lease.fence
    assert 0 < (await after.leases.inspect(partition.name)).remaining_seconds <= LONG_SECONDS
    with pair.replica.client() as client:  # time that passes, at once
        client.pexpire(lease_key(partition.name), 1)
    successor = await hold(after, partition, FloorRecorder(highest=lease.fence))
    assert successor.fence == lease.fence + 1


async def test_a_restart_without_anything_grants_above_the_recorded_fence(open_index: OpenIndex, partition):
    recorder = FloorRecorder()
    with RedisProcess(system_redis()) as server:
        opened = await open_index(server.url)
        for _ in range(3):
            await opened.leases.release(await hold(opened, partition, recorder))
        server.restart_empty()
        assert (await hold(opened, partition, recorder)).fence == 4
        assert recorder.accepted == [1, 2, 3, 4]
        await opened.index.close()
