"""Records live in their store, and as long as it."""

import asyncio

import pytest

from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.samples import NOW, apply, create
from tests.conformance.semantic_records.backends import RECORDS
from tests.conformance.semantic_records.samples import (
    bind,
    digests,
    due,
    intent,
    maintenance_run,
    receipt,
    schedule,
    vector,
)


async def test_all_that_was_acknowledged_is_there_after_another_start(
    durable_backend, namespace, generation, partition
):
    model = generation.model_digest
    vectors = {text: vector(number) for number, text in enumerate(digests("one", "two"))}
    async with durable_backend.opened() as store:
        records = RECORDS[durable_backend.name](store)
        await apply(store, namespace, create("n", active=True))
        await bind(store, namespace, generation)
        await records.record_generation(generation.authority_digest, generation, NOW)
        await records.cache_vectors(namespace, model, vectors)
        assert await records.record_fence(partition, 4)
        await records.write_receipt(partition, receipt(partition, 4))
        await records.write_intent(partition, intent(4, 1))
        await records.set_schedule(namespace, schedule(generation, 60.0, 1.0))
        await records.add_run(partition, maintenance_run(1, fence=4))
    async with durable_backend.opened() as store:
        records = RECORDS[durable_backend.name](store)
        assert await records.served_generation(generation.authority_digest) == generation
        assert await records.cached_vectors(namespace, model, vectors) == vectors
        assert await records.highest_fence(partition) == 4
        assert await records.last_receipt(partition) == receipt(partition, 4)
        assert await records.pending_intent(partition) == intent(4, 1)
        assert await records.schedule(namespace, generation.authority_digest) == schedule(generation, 60.0, 1.0)
        assert await records.runs(partition) == [maintenance_run(1, fence=4)]
        assert await due(records, generation, 100) == [namespace]


async def test_records_of_a_closed_store_serve_nothing(backend, namespace, generation, partition):
    store = backend.new()
    records = RECORDS[backend.name](store)
    for opened_before in (False, True):
        if opened_before:
            await store.open()
            await store.close()
        for call in (
            records.cached_vectors(namespace, generation.model_digest, digests("text")),
            records.cache_vectors(namespace, generation.model_digest, {digests("text")[0]: vector(1)}),
            records.highest_fence(partition),
            records.record_fence(partition, 1),
            records.write_intent(partition, intent(1)),
            records.last_receipt(partition),
            records.set_schedule(namespace, schedule(generation)),
            records.runs(partition),
            due(records, generation),
        ):
            with pytest.raises(DomainError) as refusal:
                await call
            assert refusal.value.reason is Reason.NOT_SERVING


async def test_a_cancelled_write_happens_wholly_or_not_at_all_and_blocks_nobody(records, partition):
    for fence in range(1, 9):
        call = asyncio.ensure_future(records.record_fence(partition, fence))
        for _ in range(fence):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        assert await records.highest_fence(partition) <= fence
    assert await records.record_fence(partition, 100)
