"""Receipts from before there was a bound are forgotten little by little."""

import sqlite3
from contextlib import closing
from pathlib import Path

from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.adapters.sqlite.semantic_records import SqliteSemanticRecords
from durable_memory.domain.namespace import Namespace
from durable_memory.ports.semantic_records import RECEIPTS_KEPT
from tests.conformance.semantic_records import samples

_BACKLOG = """
WITH RECURSIVE earlier (revision) AS (SELECT 1 UNION ALL SELECT revision + 1 FROM earlier WHERE revision < ?)
INSERT INTO refresh_receipts
SELECT namespace_key, authority_digest, fence, index_revision, earlier.revision, source_history_id, history_digest,
    active_count, indexed_count, consistency, work, at, completed_by_successor
FROM refresh_receipts, earlier
"""


async def test_a_backlog_of_receipts_goes_a_thousand_at_a_time_and_the_oldest_first(
    store: SqliteStore, path: Path, namespace: Namespace
):
    records, backlog = SqliteSemanticRecords(store), 2 * RECEIPTS_KEPT + 500
    partition = samples.partition(namespace, samples.generation("backlog"))
    assert await records.record_fence(partition, 1)
    await records.write_receipt(partition, samples.receipt(partition, 1, source_revision=backlog + 1))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(_BACKLOG, (backlog,))
    oldest = []
    for newest in range(backlog + 2, backlog + 6):
        await records.write_receipt(partition, samples.receipt(partition, 1, source_revision=newest))
        kept = await records.list_receipts(partition, before=None, limit=2 * backlog)
        assert [item.source_revision for item in kept] == list(range(newest, newest - len(kept), -1))
        oldest.append(kept[-1].source_revision)
    assert oldest == [1_001, 1_504, 1_505, 1_506]
