"""Many processes at one server: one wins, the others are told so, and nobody in another partition notices."""

from itertools import chain

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.segment import decode_segment
from tests.conformance.index_samples import LONG_SECONDS, fresh, grant, partition_of, publish
from tests.integration.redis.conftest import REDIS_SERVERS, OpenIndex
from tests.integration.redis.racer import PUBLISHED
from tests.integration.redis.racers import all_at_once, racing
from tests.processes.polling import wait_until_async
from tests.processes.redis import RedisProcess

PROCESSES = 16
ROUNDS = 5
PARTITIONS = 200


@pytest.fixture(params=REDIS_SERVERS)
def server(request: pytest.FixtureRequest) -> RedisProcess:
    server: RedisProcess = request.getfixturevalue(request.param)
    server.ensure_running()
    return server


@pytest.mark.timeout(180)
async def test_16_processes_race_to_publish_to_one_partition(redis_server, open_index: OpenIndex):
    opened = await open_index(redis_server.url)
    scope = fresh("race")
    partition = partition_of(scope)
    revision = 0

    async def prepare(racers, race: str) -> None:
        own = [{"node_id": f"{race}-{revision}-{number}"} for number in range(PROCESSES)]
        await all_at_once(racers, "prepare", *own, scope=scope)

    async with racing(redis_server.url, PROCESSES) as racers:
        # All of them under one lease at the same moment: the comparison of revisions alone decides.
        lease = await grant(opened.leases, partition, owner="shared")
        for _ in range(ROUNDS):
            await prepare(racers, "shared")
            outcomes = await all_at_once(
                racers, "publish", scope=scope, expected=revision, owner=lease.owner, fence=lease.fence
            )
            assert sorted(outcomes) == [*[Reason.INDEX_REVISION_CONFLICT] * (PROCESSES - 1), PUBLISHED]
            revision += 1
            manifest = await opened.index.manifest(partition)
            assert manifest is not None
            assert manifest.index_revision == revision == len(manifest.segments)

        # Without a lease of their own none does.
        await prepare(racers, "none")
        outcomes = await all_at_once(racers, "publish", scope=scope, expected=revision, fence=lease.fence)
        assert outcomes == [Reason.LEASE_FENCED] * PROCESSES
        assert await opened.index.manifest(partition) == manifest
        await opened.leases.release(lease)

        # Each with the lease in turn, all expecting the revision that the first of them finds.
        for _ in range(ROUNDS):
            await prepare(racers, "turn")
            outcomes = await all_at_once(racers, "publish_in_turn", scope=scope, expected=revision)
            assert sorted(outcomes) == [*[Reason.INDEX_REVISION_CONFLICT] * (PROCESSES - 1), PUBLISHED]
            revision += 1
            manifest = await opened.index.manifest(partition)
            assert manifest is not None
            assert manifest.index_revision == revision == len(manifest.segments)

        # Those who lose read and try again: in the end all records are there.
        own = [{"node_id": f"converged-{number}"} for number in range(PROCESSES)]
        await all_at_once(racers, "converge", *own, scope=scope)

    manifest = await opened.index.manifest(partition)
    assert manifest is not None
    assert manifest.index_revision == 2 * ROUNDS + PROCESSES
    segments = await opened.index.segments(partition, [entry.segment_id for entry in manifest.segments])
    nodes = [decode_segment(segments[entry.segment_id]).records[0].node_id for entry in manifest.segments]
    assert {node for node in nodes if node.startswith("converged")} == {item["node_id"] for item in own}
    assert len(nodes) == len(set(nodes)) == 2 * ROUNDS + PROCESSES


@pytest.mark.timeout(180)
async def test_races_in_200_partitions_never_reject_each_other(redis_server, open_index: OpenIndex):
    scopes = [fresh("scope") for _ in range(PARTITIONS)]
    async with racing(redis_server.url, 8) as racers:
        own = [{"scopes": scopes[number::8]} for number in range(8)]
        revisions = await all_at_once(racers, "publish_everywhere", *own, rounds=3)
    assert list(chain.from_iterable(revisions)) == [3] * PARTITIONS
    opened = await open_index(redis_server.url)
    manifests = [await opened.index.manifest(partition_of(scope)) for scope in scopes]
    assert [len(manifest.segments) if manifest else 0 for manifest in manifests] == [3] * PARTITIONS


@pytest.mark.parametrize("successor", ["nobody", "holds", "published"])
async def test_a_holder_that_is_stopped_past_its_ttl_and_woken_is_fenced(server, open_index: OpenIndex, successor):
    opened = await open_index(server.url)
    scope = fresh("stopped")
    partition = partition_of(scope)
    async with racing(server.url, 1) as (holder,):
        await holder.ask("prepare", scope=scope, node_id="n1")
        fence = await holder.ask("acquire", scope=scope, ttl=1.0)
        holder.stop()
        holder.tell("publish", scope=scope, expected=0)  # what it was about to do

        async def ran_out() -> bool:
            return (await opened.leases.inspect(partition.name)).owner is None

        await wait_until_async(ran_out, what="the lease ran out")
        if successor != "nobody":
            lease = await grant(opened.leases, partition)
            assert lease.fence == fence + 1
        if successor == "published":
            await publish(opened.index, partition, lease)
        before = await opened.index.manifest(partition)
        holder.wake()
        assert await holder.answer() == Reason.LEASE_FENCED
        assert await opened.index.manifest(partition) == before


async def test_a_publisher_that_is_stopped_past_the_ttl_of_what_it_staged_is_refused(server, open_index: OpenIndex):
    opened = await open_index(server.url)
    scope = fresh("stopped")
    partition = partition_of(scope)
    async with racing(server.url, 1) as (holder,):
        await holder.ask("prepare", scope=scope, node_id="n1")
        await holder.ask("acquire", scope=scope, ttl=LONG_SECONDS)
        holder.stop()
        holder.tell("publish", scope=scope, expected=0)
        with server.client() as client:  # time that passes, at once
            for key in client.keys(f"*{partition.name}*:seg:*"):
                client.pexpire(key, 1)

            async def expired() -> bool:
                return not client.keys(f"*{partition.name}*:seg:*")

            await wait_until_async(expired, what="the segment expired")
        holder.wake()
        assert await holder.answer() == Reason.DATA_CORRUPTED
        assert await opened.index.manifest(partition) is None
    with pytest.raises(DomainError):
        await grant(opened.leases, partition)
