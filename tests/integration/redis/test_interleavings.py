"""What comes between the reading of a manifest and the script that relies on it, and late copies of calls."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from durable_memory.adapters.redis import scripts
from durable_memory.adapters.redis.keys import lease_key, manifest_key, segment_key
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.manifest import index_history
from tests.conformance.index_samples import grant, publication, publish, stage
from tests.integration.redis.conftest import OpenIndex
from tests.processes.proxy import Fate, TcpProxy, Way


@pytest.fixture
async def proxy(redis_server) -> AsyncIterator[TcpProxy]:
    async with TcpProxy(redis_server.port) as proxy:
        yield proxy


def before_each(needle: str, *meddle: Callable[[], object]):
    """Do one of these before each message that contains the needle reaches the server."""
    left = iter(meddle)

    def rule(way: Way, chunk: bytes) -> Fate:
        if way is Way.TO_SERVER and needle.encode() in chunk:
            next(left, lambda: None)()
        return Fate.PASS

    return rule


async def test_a_publication_follows_the_state_that_came_between_at_the_same_revision(
    redis_server, proxy: TcpProxy, open_index: OpenIndex, partition
):
    opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0")
    lease = await grant(opened.leases, partition)
    first = await publish(opened.index, partition, lease)
    other = "1" * 64  # as after the return of another copy of the data
    entry = await stage(opened.index, partition)
    wanted = publication(partition, lease, entry, after=first)
    with redis_server.client() as client:
        proxy.rule = before_each(
            wanted.nonce, lambda: client.hset(manifest_key(partition.name), "history_digest", other)
        )
        manifest = await opened.index.publish(wanted)
    assert manifest.history_digest == index_history(other, 2, (entry,))
    assert await opened.index.manifest(partition) == manifest


async def test_a_state_that_keeps_changing_is_given_up(redis_server, proxy: TcpProxy, open_index: OpenIndex, partition):
    opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0")
    lease = await grant(opened.leases, partition)
    first = await publish(opened.index, partition, lease)
    with redis_server.client() as client:
        key = manifest_key(partition.name)

        def meddle(digit: str) -> Callable[[], object]:
            return lambda: client.hset(key, "history_digest", digit * 64)

        publishing = opened.index.publish(publication(partition, lease, after=first, nonce="the-nonce"))
        for needle, call, reason in (
            ("the-nonce", publishing, Reason.DEPENDENCY_UNAVAILABLE),
            (scripts.CLEAR.sha1, opened.index.clear(partition, lease), Reason.OUTCOME_UNKNOWN),
        ):
            proxy.rule = before_each(needle, *map(meddle, "123456789"))
            with pytest.raises(DomainError) as refusal:
                await call
            assert refusal.value.reason is reason
    assert (await opened.index.manifest(partition)) is not None


async def test_a_clearing_forgets_what_was_published_while_it_read(
    redis_server, proxy: TcpProxy, open_index: OpenIndex, partition
):
    direct = await open_index(redis_server.url)
    opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0")
    lease = await grant(direct.leases, partition)
    first = await publish(direct.index, partition, lease)
    second_entry = await stage(direct.index, partition)
    passing = asyncio.Event()

    def rule(way: Way, chunk: bytes) -> Fate:
        if way is Way.TO_SERVER and scripts.CLEAR.sha1.encode() in chunk and not passing.is_set():
            passing.set()
            return Fate.CUT_BEFORE
        return Fate.PASS

    proxy.rule = rule
    clearing = asyncio.create_task(opened.index.clear(partition, lease))
    await passing.wait()  # it has read the first state, and the first copy of its script was lost
    await direct.index.publish(publication(partition, lease, second_entry, after=first))
    await clearing
    assert await direct.index.manifest(partition) is None
    ids = [second_entry.segment_id]
    assert await direct.index.segments(partition, ids) == {}


async def test_a_clearing_whose_answer_was_lost_and_that_finds_nobody_afterwards_is_unknown(
    redis_server, proxy: TcpProxy, open_index: OpenIndex, partition
):
    direct = await open_index(redis_server.url)
    opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0", retry_pause_seconds=0.01)
    lease = await grant(direct.leases, partition)
    await publish(direct.index, partition, lease)
    sent = 0

    def rule(way: Way, chunk: bytes) -> Fate:
        nonlocal sent
        if way is Way.TO_SERVER and scripts.CLEAR.sha1.encode() in chunk:
            sent += 1
            return Fate.CUT_AFTER if sent == 1 else Fate.PASS
        return Fate.CUT_BEFORE if sent == 2 and way is Way.TO_SERVER else Fate.PASS

    proxy.rule = rule
    with pytest.raises(DomainError) as refusal:
        await opened.index.clear(partition, lease)
    assert sent == 2, "the second attempt found that something else is there than what had been read"
    assert refusal.value.reason is Reason.OUTCOME_UNKNOWN
    assert await direct.index.manifest(partition) is None


async def test_a_lease_below_the_highest_fence_changes_nothing(redis_server, open_index: OpenIndex, partition):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    manifest = await publish(opened.index, partition, lease)
    with redis_server.client() as client:
        client.hset(manifest_key(partition.name), "highest_fence", "7")
    for call in (publish(opened.index, partition, lease, after=manifest), opened.index.clear(partition, lease)):
        with pytest.raises(DomainError) as refusal:
            await call
        assert refusal.value.reason is Reason.LEASE_FENCED
        assert refusal.value.metadata == {"fence": "1", "highest_fence": "7"}
    assert await opened.index.manifest(partition) == manifest


async def test_a_publication_raises_a_fence_that_the_manifest_has_lost(redis_server, open_index: OpenIndex, partition):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition, floor=4)
    with redis_server.client() as client:
        client.hdel(manifest_key(partition.name), "highest_fence")
        await publish(opened.index, partition, lease)
        assert client.hget(manifest_key(partition.name), "highest_fence") == b"5"
        client.hdel(manifest_key(partition.name), "highest_fence")
        await opened.index.clear(partition, lease)
        assert client.hgetall(manifest_key(partition.name)) == {b"highest_fence": b"5"}
        client.delete(lease_key(partition.name))
    assert (await grant(opened.leases, partition)).fence == 6


async def test_a_late_copy_of_a_staging_does_not_change_how_long_it_lives(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url)
    entry = await stage(opened.index, partition, ttl=600.0)
    encoded = (await opened.index.segments(partition, [entry.segment_id]))[entry.segment_id]
    await opened.index.stage(partition, entry.segment_id, encoded, ttl_seconds=5.0)
    with redis_server.client() as client:
        assert client.pttl(segment_key(partition.name, entry.segment_id)) > 5_000
