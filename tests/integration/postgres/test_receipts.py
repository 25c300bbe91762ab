"""Receipts from before there was a bound are forgotten little by little."""

import asyncpg

from durable_memory.adapters.postgres import PostgresStore
from durable_memory.adapters.postgres.semantic_records import PostgresSemanticRecords
from durable_memory.ports.semantic_records import RECEIPTS_KEPT
from tests.conformance.semantic_records import samples
from tests.integration.postgres.plans import NAMESPACE

_BACKLOG = """
INSERT INTO durable_memory.refresh_receipt
SELECT namespace_key, authority_digest, fence, index_revision, earlier.revision, source_history_id, history_digest,
    active_count, indexed_count, consistency, work, at, completed_by_successor
FROM durable_memory.refresh_receipt CROSS JOIN generate_series(1, $1::bigint) AS earlier (revision)
"""


async def test_a_backlog_of_receipts_goes_a_thousand_at_a_time_and_the_oldest_first(
    store: PostgresStore, postgres_database: str
):
    records, backlog = PostgresSemanticRecords(store), 2 * RECEIPTS_KEPT + 500
    partition = samples.partition(NAMESPACE, samples.generation("backlog"))
    assert await records.record_fence(partition, 1)
    await records.write_receipt(partition, samples.receipt(partition, 1, source_revision=backlog + 1))
    connection = await asyncpg.connect(postgres_database)
    try:
        await connection.execute(_BACKLOG, backlog)
    finally:
        await connection.close()
    oldest = []
    for newest in range(backlog + 2, backlog + 6):
        await records.write_receipt(partition, samples.receipt(partition, 1, source_revision=newest))
        kept = await records.list_receipts(partition, before=None, limit=2 * backlog)
        assert [item.source_revision for item in kept] == list(range(newest, newest - len(kept), -1))
        oldest.append(kept[-1].source_revision)
    assert oldest == [1_001, 1_504, 1_505, 1_506]
