"""Repeats: of publications, of stagings, and those that arrive when nobody waits for them any more."""

from dataclasses import replace

import pytest

from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.index_samples import (
    LONG_SECONDS,
    SHORT_SECONDS,
    encoded_segment,
    fresh,
    grant,
    publication,
    publish,
    stage,
)
from tests.conformance.vector_index.refused import refused
from tests.processes.polling import wait_until_async


async def test_a_repeated_publication_returns_its_manifest_and_changes_nothing(index, leases, partition):
    lease = await grant(leases, partition)
    before = await publish(index, partition, lease)
    entry = await stage(index, partition)
    wanted = publication(partition, lease, entry, after=before, kept=(replace(before.segments[0], removed=b"\x01"),))
    manifest = await index.publish(wanted)
    assert [await index.publish(wanted) for _ in range(3)] == [manifest] * 3
    assert await index.manifest(partition) == manifest
    assert manifest.index_revision == 2


async def test_a_repeated_publication_needs_no_lease_any_more(index, leases, partition):
    lease = await grant(leases, partition)
    wanted = publication(partition, lease, await stage(index, partition))
    manifest = await index.publish(wanted)
    await leases.release(lease)
    assert await index.publish(wanted) == manifest
    await grant(leases, partition)
    assert await index.publish(wanted) == manifest


async def test_a_repeat_from_before_the_published_state_is_refused(index, leases, partition):
    lease = await grant(leases, partition)
    wanted = publication(partition, lease, await stage(index, partition))
    first = await index.publish(wanted)
    await publish(index, partition, lease, after=first)
    async with refused(index, partition, Reason.INDEX_REVISION_CONFLICT, expected=0, actual=2):
        await index.publish(wanted)


async def test_staging_a_segment_again_changes_nothing(index, leases, partition):
    lease = await grant(leases, partition)
    entry = await stage(index, partition)
    encoded = encoded_segment(("n1", "n2"))
    await index.stage(partition, entry.segment_id, encoded, ttl_seconds=LONG_SECONDS)
    manifest = await index.publish(publication(partition, lease, entry))
    await index.stage(partition, entry.segment_id, encoded, ttl_seconds=LONG_SECONDS)
    assert await index.segments(partition, [entry.segment_id]) == {entry.segment_id: encoded}
    assert await index.manifest(partition) == manifest


async def test_an_id_that_was_used_for_another_segment_is_refused(index, leases, partition):
    entry = await stage(index, partition)
    for nodes in (("n3", "n4"), ("n1", "n2", "n3")):
        with pytest.raises(DomainError) as refusal:
            await index.stage(partition, entry.segment_id, encoded_segment(nodes), ttl_seconds=LONG_SECONDS)
        assert refusal.value.reason is Reason.INTERNAL
    assert await index.segments(partition, [entry.segment_id]) == {entry.segment_id: encoded_segment(("n1", "n2"))}


async def test_a_late_repeat_never_lets_a_published_segment_expire(index, leases, partition):
    lease = await grant(leases, partition)
    entry = await stage(index, partition)
    await index.publish(publication(partition, lease, entry))
    encoded = encoded_segment(("n1", "n2"))
    await index.stage(partition, entry.segment_id, encoded, ttl_seconds=SHORT_SECONDS)
    await index.keep_staged(partition, [entry.segment_id], ttl_seconds=SHORT_SECONDS)
    later = fresh("segment")  # when it has gone, what was renewed before it would have gone as well
    await index.stage(partition, later, encoded, ttl_seconds=SHORT_SECONDS * 1.5)

    async def gone() -> bool:
        return not await index.segments(partition, [later])

    await wait_until_async(gone, what="the later segment expired")
    assert await index.segments(partition, [entry.segment_id]) == {entry.segment_id: encoded}
