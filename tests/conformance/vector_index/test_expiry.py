"""What is staged and what is replaced goes by itself; what is published stays."""

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.manifest import SegmentEntry
from durable_memory.ports.leases import LeaseStore
from durable_memory.ports.vector_index import VectorIndex
from tests.conformance.index_samples import (
    GROWING_SECONDS,
    LONG_SECONDS,
    SHORT_SECONDS,
    grant,
    publication,
    publish,
    stage,
)
from tests.conformance.vector_index.refused import refused
from tests.processes.polling import wait_until_async


async def gone(index: VectorIndex, partition, *segment_ids: str) -> None:
    """Wait until none of the segments can be read."""

    async def none_is_there() -> bool:
        return not await index.segments(partition, segment_ids)

    await wait_until_async(none_is_there, what="the segments are gone")


async def renewed_in_time(index: VectorIndex, partition) -> tuple[SegmentEntry, float]:
    """A segment that was staged for a short time, which it has here, and then renewed for a long one."""
    for ttl in GROWING_SECONDS:
        entry = await stage(index, partition, ttl=ttl)
        try:
            await index.keep_staged(partition, [entry.segment_id], ttl_seconds=LONG_SECONDS)
        except DomainError as error:
            if error.reason is not Reason.LEASE_FENCED:
                raise
        else:
            return entry, ttl
    pytest.fail("no segment lives until it is renewed")


async def published_in_time(index: VectorIndex, leases: LeaseStore, partition) -> tuple[SegmentEntry, float]:
    """A segment that was staged for a short time, which it has here, and then published."""
    lease = await grant(leases, partition)
    for ttl in GROWING_SECONDS:
        entry = await stage(index, partition, ttl=ttl)
        try:
            await index.publish(publication(partition, lease, entry))
        except DomainError as error:
            if error.reason is not Reason.DATA_CORRUPTED:
                raise
        else:
            return entry, ttl
    pytest.fail("no segment lives until it is published")


async def test_staged_segments_expire_unless_they_are_renewed(index, leases, partition):
    renewed, ttl = await renewed_in_time(index, partition)
    left = await stage(index, partition, ttl=ttl)  # when it has gone, what was there before it would have gone as well
    shortened = await stage(index, partition)
    await index.keep_staged(partition, [shortened.segment_id], ttl_seconds=SHORT_SECONDS)
    await index.keep_staged(partition, [], ttl_seconds=SHORT_SECONDS)
    await gone(index, partition, left.segment_id, shortened.segment_id)
    assert list(await index.segments(partition, [renewed.segment_id])) == [renewed.segment_id]
    lease = await grant(leases, partition)
    assert (await index.publish(publication(partition, lease, renewed))).segments == (renewed,)


async def test_a_segment_that_is_gone_cannot_be_renewed(index, partition):
    short = await stage(index, partition, ttl=SHORT_SECONDS)
    other = await stage(index, partition, ttl=SHORT_SECONDS * 3)
    await gone(index, partition, short.segment_id)
    with pytest.raises(DomainError) as refusal:
        await index.keep_staged(partition, [other.segment_id, short.segment_id], ttl_seconds=LONG_SECONDS)
    assert refusal.value.reason is Reason.LEASE_FENCED
    await gone(index, partition, other.segment_id)  # it was not renewed either


async def test_a_publication_whose_staged_segments_expired_is_refused(index, leases, partition):
    lease = await grant(leases, partition)
    manifest = await publish(index, partition, lease)
    lasting = await stage(index, partition)
    short = await stage(index, partition, ttl=SHORT_SECONDS)
    await gone(index, partition, short.segment_id)
    async with refused(index, partition, Reason.DATA_CORRUPTED, what="segment", staged="true"):
        await index.publish(publication(partition, lease, lasting, short, after=manifest, kept=manifest.segments))


async def test_a_refused_publication_lets_its_staged_segments_expire(index, leases, partition):
    lease = await grant(leases, partition)
    manifest = await publish(index, partition, lease)
    entry = await stage(index, partition, ttl=GROWING_SECONDS[0])
    async with refused(index, partition, Reason.INDEX_REVISION_CONFLICT):
        await index.publish(
            publication(partition, lease, entry, after=manifest, kept=manifest.segments, expected_index_revision=7)
        )
    await gone(index, partition, entry.segment_id)


async def test_published_segments_stay(index, leases, partition):
    published, ttl = await published_in_time(index, leases, partition)
    staged = await stage(index, partition, ttl=ttl)
    await gone(index, partition, staged.segment_id)
    assert list(await index.segments(partition, [published.segment_id])) == [published.segment_id]


async def test_replaced_segments_stay_readable_and_then_go(index_backend, partition):
    async with index_backend.opened() as opened:
        lease = await grant(opened.leases, partition)
        kept, replaced, last = [await stage(opened.index, partition) for _ in range(3)]
        first = await opened.index.publish(publication(partition, lease, kept, replaced, last))
        second = await opened.index.publish(publication(partition, lease, after=first, kept=(kept, last)))
        assert len(await opened.index.segments(partition, [kept.segment_id, replaced.segment_id])) == 2
    async with index_backend.opened(grace_seconds=SHORT_SECONDS) as opened:
        third = await opened.index.publish(publication(partition, lease, after=second, kept=(kept,)))
        await gone(opened.index, partition, last.segment_id)
        found = await opened.index.segments(partition, [kept.segment_id, replaced.segment_id, last.segment_id])
        assert sorted(found) == sorted([kept.segment_id, replaced.segment_id])
        assert await opened.index.manifest(partition) == third
