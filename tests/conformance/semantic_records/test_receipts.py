"""Intents and receipts: what a partition was about to hold, and what it holds."""

from dataclasses import replace

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.semantic_records import RECEIPTS_KEPT, RefreshWork
from tests.conformance.semantic_records.samples import intent, receipt
from tests.conformance.semantic_records.samples import partition as partition_of

LARGE = 2**53 - 1


async def test_an_intent_comes_back_with_every_field(records, partition):
    assert await records.pending_intent(partition) is None
    assert await records.record_fence(partition, 3)
    written = intent(3, 41, source_revision=LARGE)
    await records.write_intent(partition, written)
    assert await records.pending_intent(partition) == written


async def test_an_intent_replaces_the_one_before(records, partition):
    for fence in (1, 2):
        assert await records.record_fence(partition, fence)
        await records.write_intent(partition, intent(fence))
    again = replace(intent(2, 5), work=RefreshWork())
    await records.write_intent(partition, again)
    assert await records.pending_intent(partition) == again


async def test_an_intent_stays_pending_under_the_next_fence(records, partition):
    assert await records.record_fence(partition, 1)
    await records.write_intent(partition, intent(1))
    assert await records.record_fence(partition, 2)
    assert await records.pending_intent(partition) == intent(1)


async def test_the_newest_receipt_ends_the_pending_intent(records, partition):
    assert await records.record_fence(partition, 1)
    await records.write_intent(partition, intent(1))
    await records.write_receipt(partition, receipt(partition, 1))
    assert await records.pending_intent(partition) is None
    await records.write_intent(partition, intent(1, 1))
    assert await records.pending_intent(partition) == intent(1, 1)


async def test_the_next_holder_completes_a_publication_and_then_finds_nothing_else_to_do(records, partition):
    """Two receipts of one fence and index revision, because other revisions of the source are behind them."""
    assert await records.record_fence(partition, 1)
    await records.write_intent(partition, intent(1))
    assert await records.record_fence(partition, 2)
    completed = replace(receipt(partition, 2, source_revision=1), completed_by_successor=True)
    unchanged = receipt(partition, 2, source_revision=3)
    await records.write_receipt(partition, completed)
    assert await records.pending_intent(partition) is None
    await records.write_receipt(partition, unchanged)
    assert await records.last_receipt(partition) == unchanged
    assert await records.list_receipts(partition, before=None, limit=10) == [unchanged, completed]


async def test_a_receipt_comes_back_with_every_field(records, partition):
    assert await records.last_receipt(partition) is None
    assert await records.record_fence(partition, LARGE)
    written = replace(
        receipt(partition, LARGE, LARGE, source_revision=LARGE), active_count=0, completed_by_successor=True
    )
    await records.write_receipt(partition, written)
    assert await records.last_receipt(partition) == written


async def test_a_receipt_of_an_index_without_any_publication_can_be_kept(records, partition):
    """Of a namespace without ACTIVE nodes."""
    assert await records.record_fence(partition, 1)
    empty = receipt(partition, 1, 0, source_revision=0)
    await records.write_receipt(partition, empty)
    assert await records.last_receipt(partition) == empty


async def test_an_older_receipt_replaces_no_newer_one_and_ends_no_intent(records, partition):
    assert await records.record_fence(partition, 1)
    newer, older = receipt(partition, 1, 5), receipt(partition, 1, 4, source_revision=9)
    await records.write_receipt(partition, newer)
    await records.write_intent(partition, intent(1, 5))
    await records.write_receipt(partition, older)
    assert await records.last_receipt(partition) == newer
    assert await records.pending_intent(partition) == intent(1, 5)
    assert await records.list_receipts(partition, before=None, limit=10) == [newer, older]


async def test_an_index_that_counts_from_one_again_has_newer_receipts_under_its_higher_fence(records, partition):
    written = []
    for fence, index_revision in ((1, 900), (2, 1)):
        assert await records.record_fence(partition, fence)
        written.append(receipt(partition, fence, index_revision))
        await records.write_receipt(partition, written[-1])
    assert await records.last_receipt(partition) == written[-1]


async def test_a_receipt_that_is_repeated_is_there_once_and_as_it_was_first(records, partition):
    assert await records.record_fence(partition, 1)
    first = receipt(partition, 1)
    await records.write_receipt(partition, first)
    await records.write_intent(partition, intent(1, 1))
    await records.write_receipt(partition, replace(first, indexed_count=0, work=RefreshWork()))
    assert await records.list_receipts(partition, before=None, limit=10) == [first]
    assert await records.pending_intent(partition) is None


async def test_receipts_are_listed_newest_first_in_pages(records, partition):
    written = []
    for fence in (1, 2, 10):
        assert await records.record_fence(partition, fence)
        for index_revision in (9, 10):
            for source_revision in (99, 100):
                written.append(receipt(partition, fence, index_revision, source_revision=source_revision))
                await records.write_receipt(partition, written[-1])
    paged = []
    before = None
    while page := await records.list_receipts(partition, before=before, limit=5):
        assert len(page) <= 5
        paged += page
        before = page[-1].position
    assert paged == written[::-1]


async def test_a_page_of_receipts_may_start_before_a_position_that_does_not_exist(records, partition):
    assert await records.record_fence(partition, 2)
    await records.write_receipt(partition, receipt(partition, 2))
    assert await records.list_receipts(partition, before=(2, 1, 0), limit=10) == []
    assert await records.list_receipts(partition, before=(3, 0, 0), limit=10) == [receipt(partition, 2)]
    assert await records.list_receipts(partition, before=None, limit=0) == []


async def test_partitions_have_intents_and_receipts_of_their_own(
    records, partition, other_namespace, generation, other_generation
):
    assert await records.record_fence(partition, 1)
    await records.write_intent(partition, intent(1))
    await records.write_receipt(partition, receipt(partition, 1))
    await records.write_intent(partition, intent(1, 1))
    for other in (partition_of(other_namespace, generation), partition_of(partition.namespace, other_generation)):
        assert await records.pending_intent(other) is None
        assert await records.last_receipt(other) is None
        assert await records.list_receipts(other, before=None, limit=10) == []
        assert await records.record_fence(other, 1)
        await records.write_receipt(other, receipt(other, 1, 7))
        assert await records.last_receipt(other) == receipt(other, 1, 7)
    assert await records.pending_intent(partition) == intent(1, 1)
    assert await records.last_receipt(partition) == receipt(partition, 1)


async def test_a_receipt_of_another_generation_is_a_defect(records, partition, namespace, other_generation):
    assert await records.record_fence(partition, 1)
    with pytest.raises(DomainError) as refusal:
        await records.write_receipt(partition, receipt(partition_of(namespace, other_generation), 1))
    assert refusal.value.reason is Reason.INTERNAL
    assert await records.last_receipt(partition) is None


async def test_the_newest_thousand_receipts_are_kept_of_each_partition(records, partition, other_generation):
    assert await records.record_fence(partition, 1)
    other = partition_of(partition.namespace, other_generation)
    assert await records.record_fence(other, 1)
    await records.write_receipt(other, receipt(other, 1))
    for number in range(RECEIPTS_KEPT + 3):
        await records.write_receipt(partition, receipt(partition, 1, source_revision=number))
    kept = await records.list_receipts(partition, before=None, limit=2 * RECEIPTS_KEPT)
    assert [item.source_revision for item in kept] == list(range(RECEIPTS_KEPT + 2, 2, -1))
    assert await records.last_receipt(other) == receipt(other, 1)
