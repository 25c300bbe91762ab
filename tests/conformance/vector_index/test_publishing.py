"""Compare and swap."""

import asyncio
from dataclasses import replace

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.manifest import index_history
from durable_memory.domain.semantic.segment import FloatWidth, decode_segment
from durable_memory.ports.leases import Lease
from tests.conformance.index_samples import (
    DESCRIPTOR,
    SHORT_SECONDS,
    encoded_segment,
    entry_of,
    fresh,
    grant,
    publication,
    publish,
    stage,
)
from tests.conformance.vector_index.refused import refused
from tests.processes.polling import wait_until_async

PUBLISHERS = 16


@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("expected", [0, 1, 2, 3])
async def test_a_publication_with_another_expected_revision_is_refused(index, leases, partition, published, expected):
    lease = await grant(leases, partition)
    manifest = None
    for _ in range(published):
        manifest = await publish(index, partition, lease, after=manifest)
    entry = await stage(index, partition)
    kept = () if manifest is None else manifest.segments
    wanted = publication(partition, lease, entry, after=manifest, kept=kept, expected_index_revision=expected)
    if expected != published:
        async with refused(index, partition, Reason.INDEX_REVISION_CONFLICT, expected=expected, actual=published):
            await index.publish(wanted)
        wanted = replace(wanted, expected_index_revision=published)
    assert (await index.publish(wanted)).index_revision == published + 1


async def test_a_publication_without_the_live_lease_is_refused(index, leases, partition):
    lease = await grant(leases, partition, owner="owner-1")
    manifest = await publish(index, partition, lease)
    for other in (replace(lease, owner="owner-2"), replace(lease, fence=2), replace(lease, fence=0)):
        async with refused(index, partition, Reason.LEASE_FENCED, fence=other.fence, highest_fence=1):
            await publish(index, partition, other, after=manifest)
    await leases.release(lease)
    async with refused(index, partition, Reason.LEASE_FENCED, fence=1, highest_fence=1):
        await publish(index, partition, lease, after=manifest)
    successor = await grant(leases, partition, owner="owner-1")
    async with refused(index, partition, Reason.LEASE_FENCED, fence=1, highest_fence=2):
        await publish(index, partition, lease, after=manifest)
    assert (await publish(index, partition, successor, after=manifest)).fence == 2


async def test_a_publication_after_the_lease_ran_out_is_refused(index, leases, partition):
    lease = await grant(leases, partition, ttl=SHORT_SECONDS)

    async def ran_out() -> bool:
        return (await leases.inspect(partition.name)).owner is None

    await wait_until_async(ran_out, what="the lease ran out")
    async with refused(index, partition, Reason.LEASE_FENCED, fence=1, highest_fence=1):
        await publish(index, partition, lease)


async def test_a_publication_under_the_lease_of_another_partition_is_refused(index, leases, partition, other_partition):
    lease = await grant(leases, partition, owner="owner-1")
    other = await grant(leases, other_partition, owner="owner-1")
    assert lease.fence == other.fence
    async with refused(index, partition, Reason.LEASE_FENCED, fence=1):
        await publish(index, partition, other)
    async with refused(index, other_partition, Reason.LEASE_FENCED, fence=1):
        await index.clear(other_partition, lease)


@pytest.mark.parametrize(
    ("changes", "expected", "actual"),
    [
        ({"dimension": 5}, "4", "5"),
        ({"width": FloatWidth.FLOAT16}, "32", "16"),
        ({"metric": "DOT_PRODUCT"}, "COSINE", "DOT_PRODUCT"),
        ({"normalization": "NONE"}, "L2", "NONE"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value,
)
async def test_a_publication_with_another_descriptor_is_refused(index, leases, partition, changes, expected, actual):
    lease = await grant(leases, partition)
    manifest = await publish(index, partition, lease)
    (field,) = changes
    async with refused(index, partition, Reason.DIMENSION_MISMATCH, field=field, expected=expected, actual=actual):
        await publish(index, partition, lease, after=manifest, descriptor=replace(DESCRIPTOR, **changes))


async def test_a_publication_that_lists_a_segment_that_is_not_there_is_refused(index, leases, partition):
    lease = await grant(leases, partition)
    manifest = await publish(index, partition, lease)
    absent = entry_of(encoded_segment(["n"]), fresh(), 1)
    for kept, staged, is_staged in ((manifest.segments, [absent], "true"), ((*manifest.segments, absent), [], "false")):
        new = await stage(index, partition)
        async with refused(index, partition, Reason.DATA_CORRUPTED, what="segment", staged=is_staged):
            await index.publish(publication(partition, lease, new, *staged, after=manifest, kept=kept))


async def test_a_publication_that_lists_a_segment_with_another_length_or_checksum_is_refused(index, leases, partition):
    lease = await grant(leases, partition)
    manifest = await publish(index, partition, lease)
    (kept,) = manifest.segments
    new = await stage(index, partition)
    checksum = "0" * 64
    for right, staged in ((kept, "false"), (new, "true")):
        for wrong in (
            replace(right, nbytes=right.nbytes + 1),
            replace(right, nbytes=right.nbytes - 1),
            replace(right, checksum=checksum),
        ):
            segments = tuple(wrong if item is right else item for item in (kept, new))
            async with refused(index, partition, Reason.DATA_CORRUPTED, what="segment", staged=staged):
                await index.publish(publication(partition, lease, new, after=manifest, segments=segments))
    assert (await index.publish(publication(partition, lease, new, after=manifest, kept=(kept,)))).index_revision == 2


async def test_a_lost_lease_is_told_before_a_conflict_that_it_led_to(index, leases, partition):
    paused = await grant(leases, partition)
    entry = await stage(index, partition)
    wanted = publication(partition, paused, entry)
    await leases.release(paused)
    successor = await grant(leases, partition)
    await publish(index, partition, successor)
    async with refused(index, partition, Reason.LEASE_FENCED, fence=1, highest_fence=2):
        await index.publish(wanted)
    await leases.release(successor)
    async with refused(index, partition, Reason.LEASE_FENCED, fence=1, highest_fence=2):
        await index.publish(wanted)


async def test_of_many_who_publish_in_turn_one_wins_each_round(index, leases, partition):
    async def attempt(publisher: int, after) -> str:
        """Publish what follows `after`, as soon as the lease can be had."""
        entry = await stage(index, partition, (f"n-{publisher}",))

        async def acquired() -> Lease | None:
            try:
                return await grant(leases, partition)
            except DomainError as error:
                if error.reason is Reason.LEASE_HELD:
                    return None
                raise

        lease = await wait_until_async(acquired, what="the lease is granted")
        assert lease is not None
        kept = () if after is None else after.segments
        try:
            await index.publish(publication(partition, lease, entry, after=after, kept=kept))
        except DomainError as error:
            return f"{error.reason} {error.metadata}"
        finally:
            await leases.release(lease)
        return "published"

    manifest = None
    for round_ in range(1, 4):
        outcomes = await asyncio.gather(*(attempt(publisher, manifest) for publisher in range(PUBLISHERS)))
        assert outcomes.count("published") == 1
        conflict = {"expected": str(round_ - 1), "actual": str(round_)}
        assert outcomes.count(f"{Reason.INDEX_REVISION_CONFLICT} {conflict}") == PUBLISHERS - 1
        manifest = await index.manifest(partition)
        assert manifest.index_revision == round_
        assert len(manifest.segments) == round_


async def test_of_many_who_publish_at_once_without_the_lease_none_does(index, leases, partition):
    lease = await grant(leases, partition)
    manifest = await publish(index, partition, lease)

    async def attempt(publisher: int) -> Reason:
        with pytest.raises(DomainError) as refusal:
            await publish(index, partition, replace(lease, owner=f"owner-{publisher}"), after=manifest)
        return refusal.value.reason

    assert set(await asyncio.gather(*map(attempt, range(PUBLISHERS)))) == {Reason.LEASE_FENCED}
    assert await index.manifest(partition) == manifest


async def test_a_reader_sees_the_old_or_the_new_state_and_never_half_of_one(index, leases, partition):
    publications = 25
    lease = await grant(leases, partition)
    published = asyncio.Event()

    async def write() -> None:
        manifest = None
        for revision in range(1, publications + 1):
            entries = [await stage(index, partition, (node,), revision=revision) for node in ("n1", "n2")]
            wanted = publication(partition, lease, *entries, after=manifest, source_revision=revision)
            previous = "0" * 64 if manifest is None else manifest.history_digest
            manifest = await index.publish(wanted)
            assert manifest.history_digest == index_history(previous, revision, tuple(entries))
            await asyncio.sleep(0)  # the memory index lets nobody else run by itself
        published.set()

    async def read() -> set[int]:
        seen = set()
        while not published.is_set():
            manifest = await index.manifest(partition)
            if manifest is not None:
                segments = await index.segments(partition, [entry.segment_id for entry in manifest.segments])
                records = [decode_segment(segments[entry.segment_id]).records[0] for entry in manifest.segments]
                assert [record.node_id for record in records] == ["n1", "n2"]
                assert {record.revision for record in records} == {manifest.source_revision}
                assert manifest.index_revision == manifest.source_revision
                seen.add(manifest.index_revision)
            await asyncio.sleep(0)
        return seen

    writing = asyncio.create_task(write())
    seen = await asyncio.gather(read(), read(), read())
    await writing
    assert all(seen)
