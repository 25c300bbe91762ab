"""The qualification sees all that is done to leases and manifests, and knows when it may have missed some."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.conformance.index_samples import LONG_SECONDS, fresh, grant, publish
from tests.integration.redis.conftest import OpenIndex
from tests.processes.polling import wait_until_async
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis
from tests.qualification.checks import fencing, index
from tests.qualification.checks.moments import receipt
from tests.qualification.observers.leases import LeaseObserver
from tests.qualification.report.timeline import Lane, Series, Timeline


@pytest.fixture
def two_servers() -> Iterator[tuple[RedisProcess, RedisProcess]]:
    """A primary and its replica."""
    with RedisProcess(system_redis()) as primary, RedisProcess(system_redis()) as replica:
        replica.replicate(primary.port)
        yield primary, replica


async def test_every_grant_and_publication_is_seen_in_order(
    redis_server: RedisProcess, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url)
    timeline = Timeline()
    await opened.leases.release(await grant(opened.leases, partition))
    async with LeaseObserver({"redis-1": redis_server.port}, timeline) as observer:
        await wait_until_async(lambda: observer.of(partition.name), what="the first look")
        manifest = None
        for _ in range(5):
            lease = await grant(opened.leases, partition)
            manifest = await publish(opened.index, partition, lease, after=manifest)
            await opened.leases.renew(lease)
            await opened.leases.release(lease)
        expiring = await grant(opened.leases, partition, ttl=0.2)
        await wait_until_async(
            lambda: (
                observer.latest[partition.name].highest_fence == 7 and observer.latest[partition.name].lease is None
            ),
            what="the last lease has run out",
        )
        seen = observer.of(partition.name)
    assert expiring.fence == 7
    assert [one.follows for one in seen] == [False] + [True] * (len(seen) - 1)
    grants = list(dict.fromkeys(one.lease.nonce for one in seen if one.lease is not None))
    assert len(grants) == 6
    revisions = [one.published.index_revision for one in seen if one.published is not None]
    assert sorted(set(revisions)) == [1, 2, 3, 4, 5]
    assert fencing.problems(seen, [], ttl_seconds=LONG_SECONDS) == []
    assert index.problems(seen) == []
    assert (observer.missed, observer.compared > 0) == (0, True)
    own = [event for event in timeline.events if event.lane is Lane.LEADERSHIP]
    assert len([event for event in own if event.key == partition.name[:8]]) == 6
    assert all(event.ended is not None for event in own)
    assert [sample.value for sample in timeline.samples[Series.INDEX_REVISION, partition.name[:8]]] == [
        0,
        1,
        2,
        3,
        4,
        5,
    ]


async def test_what_is_done_by_no_script_is_a_gap(redis_server: RedisProcess, open_index: OpenIndex, partition):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    await publish(opened.index, partition, lease)
    async with LeaseObserver({"redis-1": redis_server.port}, Timeline()) as observer:
        await wait_until_async(lambda: observer.of(partition.name), what="the first look")
        with redis_server.client() as client:
            client.hset(f"dm:{{{partition.name}}}:manifest", "highest_fence", "0")
        await wait_until_async(lambda: observer.missed, what="the difference is noticed")
        last = observer.latest[partition.name]
    assert (last.highest_fence, last.follows) == (0, False)
    assert f"{partition.name[:8]} at redis-1: the highest fence fell from 1 to 0" in fencing.fallen_fences(
        observer.of(partition.name)
    )


async def test_what_is_published_while_nobody_watches_is_a_gap_in_one_history(
    redis_server: RedisProcess, open_index: OpenIndex, partition, monkeypatch: pytest.MonkeyPatch
):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    may_watch, connected = asyncio.Event(), LeaseObserver._connected
    watching: list[asyncio.Task[None]] = []

    async def watch(self: LeaseObserver, name: str, port: int) -> None:
        await may_watch.wait()
        watching.append(asyncio.create_task(connected(self, name, port)))
        await asyncio.wait(watching[-1:])

    monkeypatch.setattr(LeaseObserver, "_connected", watch)
    may_watch.set()
    manifests = [await publish(opened.index, partition, lease)]
    async with LeaseObserver({"redis-1": redis_server.port}, Timeline()) as observer:
        await wait_until_async(lambda: observer.of(partition.name), what="the first look")
        may_watch.clear()
        watching[-1].cancel()
        await asyncio.wait(watching)
        for _ in range(2):
            manifests.append(await publish(opened.index, partition, lease, after=manifests[-1]))
        may_watch.set()
        await wait_until_async(lambda: len(observer.of(partition.name)) == 2, what="the next look")
        watching[-1].cancel()
        seen = observer.of(partition.name)
    assert [(one.published.index_revision, one.follows) for one in seen if one.published] == [(1, False), (3, False)]
    assert (len(observer.reigns), observer.missed) == (1, 0)
    receipts = [
        replace(receipt(1, one.index_revision, 1.0, digest=one.history_digest), partition=partition.name)
        for one in manifests
    ]
    assert index.never_seen(seen, receipts) == []


async def test_a_restart_and_a_promotion_begin_another_history(open_index: OpenIndex, partition, two_servers):
    primary, replica = two_servers
    opened = await open_index(primary.url)
    ports = {"redis-1": primary.port, "redis-2": replica.port}
    async with LeaseObserver(ports, Timeline()) as observer:
        await wait_until_async(lambda: observer.reigns, what="the primary is watched")
        await grant(opened.leases, partition, owner=fresh("owner"))
        await wait_until_async(lambda: partition.name in observer.latest, what="a grant is seen")
        await asyncio.to_thread(replica.catch_up, primary)
        await asyncio.to_thread(primary.kill9)
        replica.promote()
        await wait_until_async(lambda: observer.latest[partition.name].node == "redis-2", what="the next primary")
        await asyncio.to_thread(primary.restart_empty)
        await wait_until_async(lambda: len(observer.reigns) == 3, what="the first one is back")
    nodes = [node for node, _ in observer.reigns]
    assert nodes == ["redis-1", "redis-2", "redis-1"]
    assert len({reign for _, reign in observer.reigns}) == 3
    first, then = (next(one for one in observer.seen if one.node == node) for node in ("redis-1", "redis-2"))
    assert first.reign != then.reign
    assert not then.follows
    assert then.highest_fence == 1
