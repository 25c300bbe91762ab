"""What is published comes back exactly."""

import dataclasses

import pytest

from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, MANIFEST_FORMAT, index_history
from durable_memory.domain.semantic.segment import FloatWidth, decode_segment
from durable_memory.ports.vector_index import Consistency
from tests.conformance.index_samples import (
    DESCRIPTOR,
    LONG_SECONDS,
    encoded_segment,
    entry_of,
    grant,
    publication,
    publish,
    stage,
)


async def test_a_partition_that_nobody_published_to_is_empty(index, leases, partition):
    assert await index.manifest(partition) is None
    assert await index.segments(partition, ["absent"]) == {}
    assert await index.segments(partition, []) == {}
    await grant(leases, partition)
    entry = await stage(index, partition)
    assert await index.manifest(partition) is None
    assert list(await index.segments(partition, [entry.segment_id])) == [entry.segment_id]


async def test_a_published_state_comes_back_with_every_field(index, leases, partition):
    lease = await grant(leases, partition, floor=2**53 - 10)
    entry = dataclasses.replace(
        await stage(index, partition, ("n1", 'quote " \\ slash', "\u00e9\u4e2d\U0001f600\x7f")),
        removed=bytes([0b110]),
    )
    wanted = publication(partition, lease, entry, source_history_id="h: {}", source_revision=2**53 - 1)
    manifest = await index.publish(wanted)
    assert manifest.format == MANIFEST_FORMAT
    assert manifest.descriptor == DESCRIPTOR
    assert manifest.index_revision == 1
    assert manifest.history_digest == index_history(INDEX_HISTORY_START, 1, (entry,))
    assert (manifest.fence, manifest.nonce) == (lease.fence, wanted.nonce)
    assert (manifest.source_history_id, manifest.source_revision) == ("h: {}", 2**53 - 1)
    assert manifest.segments == (entry,)
    assert (manifest.live_count, manifest.dead_count) == (1, 2)
    assert await index.manifest(partition) == manifest


@pytest.mark.parametrize("width", FloatWidth)
async def test_vectors_come_back_bit_for_bit_in_both_widths(index, leases, partition, width):
    lease = await grant(leases, partition)
    nodes = [f"n{number}" for number in range(1000)]
    encoded = encoded_segment(nodes, width=width)
    await index.stage(partition, "s", encoded, ttl_seconds=LONG_SECONDS)
    descriptor = dataclasses.replace(DESCRIPTOR, width=width)
    entry = entry_of(encoded, "s", len(nodes))
    manifest = await index.publish(publication(partition, lease, entry, descriptor=descriptor))
    assert manifest.descriptor.width is width
    found = (await index.segments(partition, ["s"]))["s"]
    assert found == encoded
    assert [record.node_id for record in decode_segment(found).records] == nodes


async def test_each_publication_raises_the_revision_by_one_and_chains_the_history(index, leases, partition):
    manifest = None
    digests = [INDEX_HISTORY_START]
    for revision in range(1, 6):
        lease = await grant(leases, partition)
        manifest = await publish(index, partition, lease, after=manifest)
        await leases.release(lease)
        assert manifest.index_revision == revision
        assert manifest.fence == lease.fence == revision
        assert manifest.history_digest == index_history(digests[-1], revision, manifest.segments)
        digests.append(manifest.history_digest)
    assert len(set(digests)) == 6
    assert manifest is not None
    assert len(manifest.segments) == 5


async def test_a_publication_may_list_nothing(index, leases, partition):
    lease = await grant(leases, partition)
    first = await index.publish(publication(partition, lease))
    second = await publish(index, partition, lease, after=first)
    third = await index.publish(publication(partition, lease, after=second))
    assert [first.segments, third.segments] == [(), ()]
    assert await index.manifest(partition) == third
    assert third.index_revision == 3


async def test_segments_are_listed_in_the_order_of_the_publication(index, leases, partition):
    lease = await grant(leases, partition)
    entries = [await stage(index, partition) for _ in range(3)]
    first = await index.publish(publication(partition, lease, *reversed(entries)))
    assert first.segments == tuple(reversed(entries))
    new = await stage(index, partition)
    kept = (dataclasses.replace(entries[1], removed=b"\x01"), entries[0])
    second = await index.publish(publication(partition, lease, new, after=first, kept=kept))
    assert second.segments == (*kept, new)
    assert await index.manifest(partition) == second


async def test_many_segments_are_read_at_once(index, leases, partition):
    lease = await grant(leases, partition)
    entries = [await stage(index, partition, (f"n{number}",)) for number in range(40)]
    await index.publish(publication(partition, lease, *entries))
    ids = [entry.segment_id for entry in entries]
    found = await index.segments(partition, [*ids, "absent"])
    assert sorted(found) == sorted(ids)
    assert [decode_segment(found[id_]).records[0].node_id for id_ in ids] == [f"n{number}" for number in range(40)]


async def test_an_index_says_what_it_promises_and_that_it_is_there(index):
    assert index.consistency is Consistency.INDEX_REVISION_CAS
    await index.check()
