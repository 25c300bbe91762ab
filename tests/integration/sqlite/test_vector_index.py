"""What is particular to the index in the file: its clock, its durability, and what it leaves on the disk."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from durable_memory.adapters.runtime import ManualClock
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.adapters.sqlite.leases import SqliteLeaseStore
from durable_memory.adapters.sqlite.statements import SQL
from durable_memory.adapters.sqlite.vector_index import SqliteVectorIndex
from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.index_samples import grant, partition_of, publication, publish, stage

PARTITION = partition_of("file")
OTHER = partition_of("other")
ALMOST = timedelta(seconds=10) - timedelta(microseconds=1)
REST = timedelta(microseconds=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2030, 1, 1, tzinfo=UTC))


@pytest.fixture
def leases(store: SqliteStore, clock: ManualClock) -> SqliteLeaseStore:
    return SqliteLeaseStore(store, clock)


@pytest.fixture
def index(store: SqliteStore, clock: ManualClock) -> SqliteVectorIndex:
    return SqliteVectorIndex(store, clock, replaced_grace_seconds=10)


def segments_in(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM index_segments").fetchone()
        return int(count)


async def test_a_lease_lives_for_exactly_its_ttl(clock, leases):
    lease = await grant(leases, PARTITION, ttl=10)
    clock.advance(ALMOST)
    await leases.renew(lease)
    clock.advance(ALMOST)
    assert (await leases.inspect(PARTITION.name)).owner == lease.owner
    clock.advance(REST)
    assert (await leases.inspect(PARTITION.name)).owner is None
    with pytest.raises(DomainError) as fenced:
        await leases.renew(lease)
    assert fenced.value.reason is Reason.LEASE_FENCED


async def test_a_clock_that_is_set_back_ends_leases_instead_of_keeping_them(clock, leases, index):
    lease = await grant(leases, PARTITION, ttl=10)
    clock.advance(timedelta(hours=-1))
    with pytest.raises(DomainError) as fenced:
        await publish(index, PARTITION, lease)
    assert fenced.value.reason is Reason.LEASE_FENCED
    successor = await grant(leases, PARTITION, ttl=10)
    assert successor.fence == lease.fence + 1
    clock.advance(timedelta(hours=1))
    with pytest.raises(DomainError) as fenced:
        await leases.renew(lease)
    assert fenced.value.reason is Reason.LEASE_FENCED


async def test_what_has_expired_is_taken_off_the_disk_by_the_next_write(clock, leases, index, path):
    lease = await grant(leases, PARTITION, ttl=1000)
    first = await publish(index, PARTITION, lease)
    await stage(index, OTHER, ttl=10)
    second = await index.publish(publication(PARTITION, lease, after=first))
    assert segments_in(path) == 2
    clock.advance(timedelta(seconds=10))
    assert await index.segments(PARTITION, [first.segments[0].segment_id]) == {}
    await publish(index, PARTITION, lease, after=second)
    assert segments_in(path) == 1


async def test_a_segment_that_expired_can_be_staged_again(clock, index):
    entry = await stage(index, PARTITION, ("n1",), ttl=10)
    encoded = (await index.segments(PARTITION, [entry.segment_id]))[entry.segment_id]
    clock.advance(timedelta(seconds=10))
    await index.stage(PARTITION, entry.segment_id, encoded, ttl_seconds=10)
    assert list(await index.segments(PARTITION, [entry.segment_id])) == [entry.segment_id]


async def test_what_was_published_and_granted_is_there_after_another_start(clock, store, leases, index):
    lease = await grant(leases, PARTITION, ttl=1000)
    manifest = await publish(index, PARTITION, lease)
    segments = await index.segments(PARTITION, [manifest.segments[0].segment_id])
    await store.close()
    await store.open()
    assert await index.manifest(PARTITION) == manifest
    assert await index.segments(PARTITION, list(segments)) == segments
    await leases.renew(lease)
    assert (await publish(index, PARTITION, lease, after=manifest)).index_revision == 2


async def test_a_closed_store_serves_no_index(store, leases, index):
    await store.close()
    for call in (index.open(), index.check(), index.manifest(PARTITION), grant(leases, PARTITION)):
        with pytest.raises(DomainError) as refusal:
            await call
        assert refusal.value.reason is Reason.NOT_SERVING


async def test_a_manifest_that_cannot_be_read_is_damage_and_a_clearing_mends_it(store, leases, index, path):
    lease = await grant(leases, PARTITION, ttl=1000)
    await publish(index, PARTITION, lease)
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE index_manifests SET format = 2")
        connection.commit()
    await store.open()
    with pytest.raises(DomainError) as refusal:
        await index.manifest(PARTITION)
    assert (refusal.value.reason, refusal.value.metadata) == (Reason.DATA_CORRUPTED, {"what": "manifest"})
    await index.clear(PARTITION, lease)
    assert await index.manifest(PARTITION) is None


async def test_every_statement_uses_an_index(store, path):
    await store.check()
    names: dict[str, dict[str, str | int]] = {
        "find_lease": {"name": ""},
        "find_manifest": {"partition": ""},
        "read_segments": {"partition": "", "segment_ids": "[]", "now": 0},
        "find_segments": {"partition": "", "segment_ids": "[]", "now": 0},
        "keep_segments": {"partition": "", "segment_ids": "[]", "expires_at": 0},
        "publish_segments": {"partition": "", "segment_ids": "[]"},
        "retire_segments": {"partition": "", "segment_ids": "[]", "expires_at": 0},
        "drop_expired_segments": {"now": 0},
        "drop_manifest": {"partition": ""},
        "drop_published_segments": {"partition": ""},
    }
    with closing(sqlite3.connect(path)) as connection:
        for name, parameters in names.items():
            plan = connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", parameters).fetchall()
            scans = [row[3] for row in plan if row[3].startswith("SCAN") and "json_each" not in row[3]]
            assert scans == [], (name, plan)
