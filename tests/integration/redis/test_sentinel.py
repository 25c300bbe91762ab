"""A primary with replicas that real sentinels watch: what a promotion costs, and what it costs nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.manifest import Manifest
from tests.conformance.index_samples import fresh, grant, partition_of, publish
from tests.integration.redis.conftest import NEVER_SECONDS, Opened, OpenIndex, left_by_all, made
from tests.integration.redis.test_failover import FloorRecorder, hold
from tests.processes.polling import wait_until_async
from tests.qualification.cluster.redis_group import MASTER, RedisGroup

pytestmark = pytest.mark.timeout(180)

PUBLISHERS = 4
TTL_SECONDS = 5.0
"""So long at most a publisher waits for a lease whose grant it never heard of."""

IN_A_PROMOTION = {
    Reason.DEPENDENCY_UNAVAILABLE,
    Reason.OUTCOME_UNKNOWN,
    Reason.LEASE_FENCED,
    Reason.INDEX_REVISION_CONFLICT,
    Reason.DATA_CORRUPTED,  # the promoted one has the manifest, and not a segment that it lists
}


@pytest.fixture
async def group() -> AsyncIterator[RedisGroup]:
    async with RedisGroup() as group:
        yield group


async def refusal(call) -> DomainError:
    with pytest.raises(DomainError) as refused:
        await call
    return refused.value


async def answers(opened: Opened) -> bool:
    try:
        await opened.index.check()
    except DomainError:
        return False
    return True


def has_moved(logs: Sequence[Mapping[str, Any]]) -> bool:
    return "index_primary_changed" in [entry["event"] for entry in logs]


async def test_a_killed_primary_is_replaced_by_the_promoted_one_although_nobody_calls(
    group: RedisGroup, open_index: OpenIndex, partition
):
    opened = await open_index(group.url)
    manifest = await publish(opened.index, partition, await grant(opened.leases, partition))
    await group.wait_settled()
    old = group.primary
    with capture_logs() as logs:
        await asyncio.to_thread(old.kill9)
        await group.wait_promoted(away_from=old)
        await wait_until_async(lambda: has_moved(logs), what="the promoted one is used")
    assert await opened.index.manifest(partition) == manifest, "to the first who calls it is as if nothing had been"
    await wait_until_async(lambda: old.proxy.connections == 0, what="the killed one is left")


async def test_a_primary_that_falls_silent_is_replaced_as_well(group: RedisGroup, open_index: OpenIndex, partition):
    """Of calls and transfers with all the time of the world, which the silent one never answers."""
    opened = await open_index(
        group.url, call_timeout_seconds=NEVER_SECONDS, transfer_timeout_seconds=NEVER_SECONDS, attempts=2
    )
    manifest = await publish(opened.index, partition, await grant(opened.leases, partition))
    await group.wait_settled()
    ids = [entry.segment_id for entry in manifest.segments]
    old = group.primary
    old.stop_answering()
    try:
        waiting = asyncio.gather(opened.index.manifest(partition), opened.index.segments(partition, ids))
        await group.wait_promoted(away_from=old)
        found, segments = await waiting
        assert (found, list(segments)) == (manifest, ids)
    finally:
        old.answer_again()


async def test_publications_go_on_through_a_promotion_and_none_is_half_or_twice(
    group: RedisGroup, open_index: OpenIndex
):
    """Each publisher follows what is there, as refreshes do; fences are recorded elsewhere as the repository does."""
    stop, done = asyncio.Event(), 0

    async def work(scope: str) -> tuple[FloorRecorder, list[Manifest]]:
        nonlocal done
        opened, partition, recorder = await open_index(group.url), partition_of(scope), FloorRecorder()
        published: list[Manifest] = []
        while not stop.is_set():
            try:
                lease = await hold(opened, partition, recorder, ttl=TTL_SECONDS)
                published.append(
                    await publish(opened.index, partition, lease, after=await opened.index.manifest(partition))
                )
                await opened.leases.release(lease)
                done += 1
            except DomainError as error:
                if error.reason not in IN_A_PROMOTION:
                    raise
                await wait_until_async(partial(answers, opened), 60.0, what="a primary answers")
        return recorder, published

    workers = [asyncio.create_task(work(fresh("scope"))) for _ in range(PUBLISHERS)]
    await wait_until_async(lambda: done >= PUBLISHERS * 5, what="all publish")
    old = group.primary
    await asyncio.to_thread(old.kill9)
    await group.wait_promoted(away_from=old)
    before = done
    await wait_until_async(lambda: done >= before + PUBLISHERS * 5, 60.0, what="all publish again")
    stop.set()
    for recorder, published in await asyncio.gather(*workers):
        assert recorder.accepted == sorted(set(recorder.accepted))
        fences = [manifest.fence for manifest in published]
        assert fences == sorted(set(fences)), "each was published under a fence of its own"
        assert len({manifest.history_digest for manifest in published}) == len(published)


async def test_a_primary_that_is_replaced_while_it_runs_takes_no_write_more(
    group: RedisGroup, open_index: OpenIndex, partition
):
    opened = await open_index(group.url)
    lease = await grant(opened.leases, partition)
    manifest = await publish(opened.index, partition, lease)
    await group.wait_settled()
    old = group.primary
    with group.sentinels[0].client() as client:
        client.execute_command("SENTINEL", "FAILOVER", MASTER)
    await group.wait_promoted(away_from=old)
    await group.wait_settled()

    async def published() -> Manifest | None:
        try:
            return await publish(opened.index, partition, lease, after=manifest)
        except DomainError as error:
            if error.reason is not Reason.DEPENDENCY_UNAVAILABLE:
                raise
            return None

    later = await wait_until_async(published, what="the promoted one takes the publication")
    assert later is not None
    assert later.index_revision == 2
    await left_by_all(old)  # nothing is asked of the replica that it is now


async def test_sentinels_that_are_gone_break_nothing_that_works(group: RedisGroup, open_index: OpenIndex, partition):
    opened = await open_index(group.url)
    lease = await grant(opened.leases, partition)
    manifest = await publish(opened.index, partition, lease)
    for sentinel in group.sentinels:
        sentinel.kill9()
    group.nodes[0].proxy.cut()

    async def later() -> Manifest | None:
        try:
            return await publish(opened.index, partition, lease, after=manifest)
        except DomainError:
            return None

    assert await wait_until_async(later, what="new connections to the primary are made") is not None
    await opened.index.check()
    assert (await refusal(made(group.url).index.open())).message == "no sentinel answers"

    group.nodes[0].kill9()

    async def said() -> bool:
        return (await refusal(opened.index.check())).message.endswith(", and no sentinel answers")

    await wait_until_async(said, what="a look at its health says all that is missing")


async def test_a_promotion_that_loses_writes_is_seen_as_an_older_state_and_fenced(
    group: RedisGroup, open_index: OpenIndex, partition
):
    recorder = FloorRecorder()
    opened = await open_index(group.url)
    first = await hold(opened, partition, recorder)
    manifest = await publish(opened.index, partition, first)
    await opened.leases.release(first)
    await group.wait_settled()
    lost: list[Manifest] = []

    async def write() -> None:
        lease = await hold(opened, partition, recorder)
        lost.append(await publish(opened.index, partition, lease, after=manifest))

    await group.promote_losing_writes(write)

    async def now() -> Manifest | None:
        try:
            return await opened.index.manifest(partition)
        except DomainError:
            return None

    assert await wait_until_async(now, what="the promoted one is used") == manifest
    assert lost[0].history_digest != manifest.history_digest, "which is what a receipt is compared with"
    successor = await hold(opened, partition, recorder)
    assert successor.fence == lost[0].fence + 1
    assert (await publish(opened.index, partition, successor, after=manifest)).fence == successor.fence
