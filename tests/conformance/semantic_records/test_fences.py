"""One fence, one holder; and whatever is written under a fence is written under the highest one."""

import asyncio

import pytest

from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.samples import apply, create
from tests.conformance.semantic_records.samples import (
    bind,
    due,
    intent,
    maintenance_run,
    receipt,
)
from tests.conformance.semantic_records.samples import (
    partition as partition_of,
)

HOLDERS = 16


async def test_a_fence_is_recorded_if_it_is_above_every_recorded_one(records, partition):
    assert await records.highest_fence(partition) == 0
    answers = {fence: await records.record_fence(partition, fence) for fence in (5, 5, 4, 7, 6)}
    assert answers == {5: False, 4: False, 7: True, 6: False}
    assert await records.highest_fence(partition) == 7


async def test_a_fence_that_no_grant_can_have_is_not_recorded(records, partition):
    for fence in (0, -1):
        assert not await records.record_fence(partition, fence)
    assert await records.highest_fence(partition) == 0


async def test_of_many_holders_of_one_fence_one_records_it(records, partition):
    for fence in (1, 2, 3):
        recorded = await asyncio.gather(*(records.record_fence(partition, fence) for _ in range(HOLDERS)))
        assert recorded.count(True) == 1
    assert await records.highest_fence(partition) == 3


async def test_of_many_fences_at_once_the_highest_is_left(records, partition):
    fences = range(1, HOLDERS + 1)
    recorded = await asyncio.gather(*(records.record_fence(partition, fence) for fence in fences))
    assert recorded[-1]
    assert await records.highest_fence(partition) == HOLDERS


async def test_partitions_have_fences_of_their_own(records, partition, other_namespace, generation, other_generation):
    assert await records.record_fence(partition, 9)
    for other in (
        partition_of(other_namespace, generation),
        partition_of(partition.namespace, other_generation),
    ):
        assert await records.highest_fence(other) == 0
        assert await records.record_fence(other, 1)
    assert await records.highest_fence(partition) == 9


WRITES = {
    "intent": lambda records, partition, fence: records.write_intent(partition, intent(fence)),
    "receipt": lambda records, partition, fence: records.write_receipt(partition, receipt(partition, fence)),
    "run": lambda records, partition, fence: records.add_run(partition, maintenance_run(fence=fence)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_work_under_another_fence_than_the_highest_is_refused_and_leaves_nothing(records, partition, write):
    for highest, fences in ((0, (1,)), (7, (6, 8))):
        if highest:
            assert await records.record_fence(partition, highest)
        for fence in fences:
            with pytest.raises(DomainError) as refusal:
                await write(records, partition, fence)
            assert refusal.value.reason is Reason.LEASE_FENCED
            assert refusal.value.metadata == {"fence": str(fence), "highest_fence": str(highest)}
        assert await records.highest_fence(partition) == highest
    assert await records.pending_intent(partition) is None
    assert await records.list_receipts(partition, before=None, limit=10) == []
    assert await records.runs(partition) == []
    await write(records, partition, 7)


async def test_a_new_holder_and_a_late_receipt_of_the_old_one_come_one_after_the_other(records, partition):
    """Either the receipt is written and the new holder finds it, or its writer learns that it was fenced."""
    for fence in range(1, 2 * HOLDERS, 2):
        assert await records.record_fence(partition, fence)
        answers = await asyncio.gather(
            records.write_receipt(partition, receipt(partition, fence)),
            records.record_fence(partition, fence + 1),
            return_exceptions=True,
        )
        late, recorded = answers
        last = await records.last_receipt(partition)
        assert recorded is True
        if late is None:
            assert last == receipt(partition, fence)
        else:
            assert isinstance(late, DomainError)
            assert late.reason is Reason.LEASE_FENCED
            assert last is None or last.fence < fence


async def test_a_receipt_that_is_refused_covers_nothing(store, records, namespace, generation, partition):
    head = (await apply(store, namespace, create("n", active=True))).head
    await bind(store, namespace, generation)
    assert await records.record_fence(partition, 2)
    with pytest.raises(DomainError):
        await records.write_receipt(
            partition, receipt(partition, 1, source_revision=head.revision, history_id=head.history_id)
        )
    assert await due(records, generation, 10) == [namespace]
