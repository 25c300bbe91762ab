"""Partitions never meet, and clearing one is about that one alone."""

import asyncio
from dataclasses import replace

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, index_history
from durable_memory.domain.semantic.segment import FloatWidth
from tests.conformance.index_samples import (
    AUTHORITY,
    DESCRIPTOR,
    LONG_SECONDS,
    encoded_segment,
    entry_of,
    grant,
    partition_of,
    publication,
    publish,
    stage,
)
from tests.conformance.vector_index.refused import refused

OTHER_AUTHORITY = "b" * 64


def alike(unique: str) -> list[Partition]:
    """Pairs that a careless key would mix up."""
    names = [
        ("t", "u", unique),
        ("t", "u", f"{unique} "),
        ("t", f"u{unique}", ""),
        (f"t{unique}", "u", ""),
        ("t", "u:", unique),
        ("t:", "u", unique),
        ("t", "u", f"{unique}}}"),
        ("t", "u", f"{{{unique}}}"),
        ("t", "u", f"{unique}:manifest"),
        ("t", "u", f"{unique}:seg:*"),
        ("t", "u", f"{unique}*"),
        ("t", "u", f"{unique}\u00e9"),
        ("t", "u", f"{unique}e\u0301"),
        ("T", "u", unique),
    ]
    namespaces = [Namespace(tenant, principal, scope or "s") for tenant, principal, scope in names]
    return [Partition(item, authority) for item in namespaces for authority in (AUTHORITY, OTHER_AUTHORITY)]


async def test_partitions_of_names_that_look_alike_never_meet(index, leases, unique):
    partitions = alike(unique)
    published = []
    for number, partition in enumerate(partitions):
        assert await index.manifest(partition) is None
        lease = await grant(leases, partition, floor=number)
        assert lease.fence == number + 1
        published.append(await publish(index, partition, lease))
    assert [await index.manifest(partition) for partition in partitions] == published
    for partition, manifest in zip(partitions, published, strict=True):
        (entry,) = manifest.segments
        holders = [other for other in partitions if await index.segments(other, [entry.segment_id])]
        assert holders == [partition]


async def test_equal_segment_ids_in_two_partitions_are_two_segments(index, leases, partition, other_partition):
    contents = {partition: encoded_segment(["n1"]), other_partition: encoded_segment(["n2", "n3"])}
    for own, encoded in contents.items():
        await index.stage(own, "same", encoded, ttl_seconds=LONG_SECONDS)
        lease = await grant(leases, own)
        await index.publish(publication(own, lease, entry_of(encoded, "same", 1)))
    for own, encoded in contents.items():
        assert await index.segments(own, ["same"]) == {"same": encoded}


async def test_publications_in_200_partitions_never_reject_each_other(index, leases, unique):
    async def work(number: int) -> int:
        own = partition_of(f"{unique} {number}")
        manifest = None
        for _ in range(2):
            lease = await grant(leases, own)
            manifest = await publish(index, own, lease, after=manifest)
            await leases.release(lease)
        assert manifest is not None
        return manifest.index_revision

    assert await asyncio.gather(*map(work, range(200))) == [2] * 200


async def test_a_cleared_partition_is_empty_and_begins_again(index, leases, partition, other_partition):
    lease = await grant(leases, partition)
    first = await publish(index, partition, lease)
    second = await publish(index, partition, lease, after=first)
    other = await publish(index, other_partition, await grant(leases, other_partition))
    await index.clear(partition, lease)
    assert await index.manifest(partition) is None
    assert await index.segments(partition, [entry.segment_id for entry in second.segments]) == {}
    assert await index.manifest(other_partition) == other
    assert len(await index.segments(other_partition, [other.segments[0].segment_id])) == 1

    entry = await stage(index, partition, width=FloatWidth.FLOAT16)
    async with refused(index, partition, Reason.INDEX_REVISION_CONFLICT, expected=2, actual=0):
        await index.publish(publication(partition, lease, entry, after=second))
    descriptor = replace(DESCRIPTOR, width=FloatWidth.FLOAT16)
    again = await index.publish(publication(partition, lease, entry, descriptor=descriptor))
    assert again.index_revision == 1
    assert again.history_digest == index_history(INDEX_HISTORY_START, 1, (entry,))
    assert again.descriptor == descriptor


async def test_what_is_staged_outlives_a_clearing(index, leases, partition):
    lease = await grant(leases, partition)
    await publish(index, partition, lease)
    staged = await stage(index, partition, width=FloatWidth.FLOAT16)
    await index.clear(partition, lease)
    descriptor = replace(DESCRIPTOR, width=FloatWidth.FLOAT16)
    manifest = await index.publish(publication(partition, lease, staged, descriptor=descriptor))
    assert (manifest.index_revision, manifest.segments) == (1, (staged,))


async def test_fences_go_on_after_a_clearing(index, leases, partition):
    lease = await grant(leases, partition, floor=6)
    await publish(index, partition, lease)
    await index.clear(partition, lease)
    await leases.renew(lease)
    await leases.release(lease)
    assert (await leases.inspect(partition.name)).fence == 7
    assert (await grant(leases, partition)).fence == 8


async def test_clearing_needs_the_live_lease(index, leases, partition):
    lease = await grant(leases, partition)
    await publish(index, partition, lease)
    for other in (replace(lease, owner="somebody"), replace(lease, fence=2)):
        async with refused(index, partition, Reason.LEASE_FENCED, fence=other.fence, highest_fence=1):
            await index.clear(partition, other)
    await leases.release(lease)
    async with refused(index, partition, Reason.LEASE_FENCED, fence=1, highest_fence=1):
        await index.clear(partition, lease)


async def test_clearing_again_changes_nothing(index, leases, partition):
    lease = await grant(leases, partition)
    await index.clear(partition, lease)
    await publish(index, partition, lease)
    for _ in range(2):
        await index.clear(partition, lease)
    assert await index.manifest(partition) is None
    assert (await publish(index, partition, lease)).index_revision == 1
    with pytest.raises(DomainError):
        await grant(leases, partition)
