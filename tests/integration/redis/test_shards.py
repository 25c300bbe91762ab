"""A cluster of several shards: partitions are where their slots are, and what befalls one shard is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

import pytest
from redis.crc import key_slot
from structlog.testing import capture_logs

from durable_memory.adapters.redis import scripts
from durable_memory.adapters.redis.keys import manifest_key
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import Manifest
from tests.conformance.index_samples import encoded_segment, fresh, grant, partition_of, publish, stage
from tests.integration.redis.conftest import NEVER_SECONDS, Opened, OpenIndex, at_once, made
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until_async
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis
from tests.processes.redis_cluster import RedisCluster

SHARDS = 3
QUICK = {"call_timeout_seconds": 1.0, "connect_timeout_seconds": 1.0, "look_timeout_seconds": 1.0}
"""For a shard that stands still."""


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[RedisCluster]:
    with RedisCluster(system_redis()) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: RedisCluster) -> RedisCluster:
    """Three shards that nothing happens to but what the test mends again."""
    return shared_cluster


@pytest.fixture
def replicated() -> Iterator[RedisCluster]:
    """Three shards of its own, each with a replica."""
    with RedisCluster(system_redis(), replicas=1) as cluster:
        yield cluster


def on_each_shard(cluster: RedisCluster) -> list[Partition]:
    """A partition for each shard, in their order."""
    found: dict[int, Partition] = {}
    while len(found) < len(cluster.primaries):
        partition = partition_of(fresh("scope"))
        found.setdefault(cluster.shard_of(manifest_key(partition.name)), partition)
    return [found[shard] for shard in range(len(cluster.primaries))]


def slot_of(partition: Partition) -> int:
    return key_slot(manifest_key(partition.name).encode())


async def refusal(call) -> DomainError:
    with pytest.raises(DomainError) as refused:
        await call
    return refused.value


async def reads(opened: Opened, partition: Partition) -> bool:
    try:
        await opened.index.manifest(partition)
    except DomainError:
        return False
    return True


async def published_again(opened: Opened, partition: Partition) -> Manifest:
    """One segment more than there was, under a lease that is given back."""
    before = await opened.index.manifest(partition)
    lease = await grant(opened.leases, partition)
    manifest = await publish(opened.index, partition, lease, after=before)
    await opened.leases.release(lease)
    return manifest


async def all_published(opened: Opened, partitions: list[Partition]) -> list[Manifest]:
    return [await published_again(opened, partition) for partition in partitions]


async def test_each_partition_is_whole_on_the_shard_of_its_slot(cluster: RedisCluster, open_index: OpenIndex):
    opened = await open_index(cluster.url)
    partitions = on_each_shard(cluster)
    for partition, manifest in zip(partitions, await all_published(opened, partitions), strict=True):
        assert await opened.index.manifest(partition) == manifest
    for shard, partition in zip(cluster.primaries, partitions, strict=True):
        with shard.client() as client:
            assert len(client.keys(f"dm:{{{partition.name}}}:*")) == 2, "manifest and segment"
    await opened.index.check()


async def test_one_server_that_is_named_is_enough_to_find_the_others(cluster: RedisCluster, open_index: OpenIndex):
    opened = await open_index(f"redis+cluster://127.0.0.1:{free_port()},127.0.0.1:{cluster.primaries[1].port}")
    await all_published(opened, on_each_shard(cluster))


async def test_every_shard_that_forgot_the_scripts_is_given_them_again(cluster: RedisCluster, open_index: OpenIndex):
    opened = await open_index(cluster.url)
    for shard in cluster.primaries:
        with shard.client() as client:
            assert all(client.script_exists(*(script.sha1 for script in scripts.ALL))), "loaded when it was opened"
            client.script_flush()
    await all_published(opened, on_each_shard(cluster))


async def test_a_shard_that_would_evict_what_was_published_is_refused(cluster: RedisCluster, open_index: OpenIndex):
    opened = await open_index(cluster.url)
    with cluster.primaries[2].client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            errors = [await refusal(made(cluster.url).index.open()), await refusal(opened.index.check())]
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    for error in errors:
        assert (error.reason, error.metadata) == (Reason.NOT_SERVING, {"state": "index", "policy": "allkeys-lru"})
    await opened.index.check()


async def test_a_server_that_is_in_no_cluster_is_refused_with_the_form_of_its_url(redis_server: RedisProcess):
    error = await refusal(made(f"redis+cluster://127.0.0.1:{redis_server.port}").index.open())
    assert error.reason is Reason.NOT_SERVING
    assert error.message.endswith("its URL begins with redis://")


async def test_a_cluster_that_is_not_there_is_said_to_be_so_without_its_password():
    error = await refusal(made(f"redis+cluster://user:hunter2@127.0.0.1:{free_port()}").index.open())
    assert (error.reason, error.message) == (Reason.DEPENDENCY_UNAVAILABLE, "no server of the cluster answers")


async def test_wrong_credentials_are_said_to_be_refused_and_told_to_nobody(cluster: RedisCluster):
    with capture_logs() as logs:
        error = await refusal(made(cluster.url.replace("://", "://user:hunter2@")).index.open())
    assert error.message == "the index server refuses calls now"
    assert not any(word in f"{error.metadata} {logs}" for word in ("hunter2", "user"))


async def test_a_shard_that_stands_still_costs_the_partitions_of_the_others_nothing(
    cluster: RedisCluster, open_index: OpenIndex
):
    opened = await open_index(cluster.url, **QUICK)
    partitions = on_each_shard(cluster)
    await all_published(opened, partitions)
    cluster.primaries[0].stop_answering()
    try:
        assert (await refusal(opened.index.manifest(partitions[0]))).reason is Reason.DEPENDENCY_UNAVAILABLE
        for _ in range(20):
            assert "left alone" in (await at_once(opened.index.manifest(partitions[0]))).message
        for partition in partitions[1:]:
            assert (await published_again(opened, partition)).index_revision == 2
        error = await refusal(opened.index.check())
        assert error.reason is Reason.DEPENDENCY_UNAVAILABLE
        assert error.message.startswith("1 of 3 shards of the index cannot be used: ")
    finally:
        cluster.primaries[0].answer_again()
    await wait_until_async(partial(reads, opened, partitions[0]), what="the shard is used again")

    async def sound() -> bool:
        try:
            await opened.index.check()
        except DomainError:
            return False
        return True

    await wait_until_async(sound, what="the cluster is as it was")


async def test_an_index_is_opened_although_one_shard_is_down(open_index: OpenIndex):
    with RedisCluster(system_redis()) as cluster:
        partitions = on_each_shard(cluster)
        cluster.primaries[1].kill9()
        opened = await open_index(cluster.url)
        assert [await reads(opened, partition) for partition in partitions] == [True, False, True]
        cluster.primaries[1].start()
        await wait_until_async(partial(reads, opened, partitions[1]), what="the shard is used")
        await opened.index.close()


@pytest.mark.parametrize("way", ["killed", "silent"])
async def test_the_replica_of_a_lost_shard_is_used_once_it_is_promoted(
    replicated: RedisCluster, open_index: OpenIndex, way
):
    opened = await open_index(replicated.url, **QUICK)
    partitions = on_each_shard(replicated)
    manifests = await all_published(opened, partitions)
    lost = replicated.primaries[0]
    await asyncio.to_thread(replicated.replicas[0].catch_up, lost)
    lost.kill9() if way == "killed" else lost.stop_answering()
    for partition, manifest in list(zip(partitions, manifests, strict=True))[1:]:
        assert await opened.index.manifest(partition) == manifest
    await wait_until_async(partial(reads, opened, partitions[0]), 60.0, what="the promoted replica is used")
    assert await opened.index.manifest(partitions[0]) == manifests[0]
    assert (await published_again(opened, partitions[0])).index_revision == 2
    if way == "silent":  # and comes back, as one who does not know yet
        lost.answer_again()
        assert await opened.index.manifest(partitions[0]) != manifests[0]
    await opened.index.close()


async def test_a_slot_that_was_moved_is_followed_by_the_call_that_is_told(cluster: RedisCluster, open_index: OpenIndex):
    opened = await open_index(cluster.url, look_seconds=NEVER_SECONDS)
    (partition, *_), (source, target, _) = on_each_shard(cluster), cluster.primaries
    (manifest,) = await all_published(opened, [partition])
    slot = slot_of(partition)
    cluster.begin_move(slot, source, target)
    cluster.move_keys(slot, source, target)
    cluster.end_move(slot, source, target)
    before = opened.index.connections
    try:
        ids = [item.segment_id for item in manifest.segments]
        assert len(await opened.index.segments(partition, ids)) == 1
        assert await opened.index.manifest(partition) == manifest
        assert opened.index.connections > before, "what was verified there is verified anew"
        later = await published_again(opened, partition)
        assert len(await opened.index.segments(partition, [item.segment_id for item in later.segments])) == 2
    finally:
        await asyncio.to_thread(move_back, cluster, slot, target, source)


async def test_a_partition_is_read_to_the_last_segment_while_its_slot_is_being_moved(
    cluster: RedisCluster, open_index: OpenIndex
):
    opened = await open_index(cluster.url, look_seconds=NEVER_SECONDS)
    (partition, *_), (source, target, _) = on_each_shard(cluster), cluster.primaries
    lease = await grant(opened.leases, partition)
    manifest = None
    for _ in range(6):
        manifest = await publish(opened.index, partition, lease, after=manifest)
    assert manifest is not None
    ids, slot = [item.segment_id for item in manifest.segments], slot_of(partition)
    cluster.begin_move(slot, source, target)
    try:
        for _ in range(9):  # one key more on the other side each time
            assert await opened.index.manifest(partition) == manifest
            assert set(await opened.index.segments(partition, ids)) == set(ids)
            assert (await opened.leases.inspect(partition.name)).fence == lease.fence
            cluster.move_keys(slot, source, target, most=1)
        encoded = encoded_segment(["n1"])
        for _ in range(2):
            await opened.index.stage(partition, "again", encoded, ttl_seconds=60.0)
        cluster.end_move(slot, source, target)
        assert (await publish(opened.index, partition, lease, after=manifest)).index_revision == 7
    finally:
        await asyncio.to_thread(move_back, cluster, slot, target, source)


def move_back(cluster: RedisCluster, slot: int, source: RedisProcess, target: RedisProcess) -> None:
    for node in cluster.primaries:
        with node.client() as client:
            client.execute_command("CLUSTER SETSLOT", slot, "STABLE")
    cluster.begin_move(slot, source, target)
    cluster.move_keys(slot, source, target)
    cluster.end_move(slot, source, target)


async def test_a_partition_whose_manifest_cannot_be_read_is_cleared_on_its_shard(
    cluster: RedisCluster, open_index: OpenIndex
):
    opened = await open_index(cluster.url)
    for shard, partition in zip(cluster.primaries, on_each_shard(cluster), strict=True):
        lease = await grant(opened.leases, partition)
        await publish(opened.index, partition, lease)
        await stage(opened.index, partition)
        with shard.client() as client:
            client.hset(manifest_key(partition.name), "segments", "[")
            await opened.index.clear(partition, lease)
            assert not client.keys(f"dm:{{{partition.name}}}:seg:*")
