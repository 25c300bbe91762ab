"""Every statement finds its rows by the index that it was designed for."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from durable_memory.adapters.postgres.migrations import migrate
from durable_memory.adapters.postgres.pool import connection_settings
from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.sql import INDEXES, STATEMENTS
from tests.processes.postgres import PostgresProcess

_DATABASE = "filled"
_KEY = hashlib.sha256(b"0").digest()
_BOUND = "a" * 64
_NODES = ["node-000001", "node-000010", "node-004000"]
_NOW = datetime(2026, 1, 1, tzinfo=UTC)

# Tables of a few pages are read whole, with every reason. These are so everywhere, and some partitions are here.
_FEW_PAGES = 4
_SMALL = {"schema_migration", "page_token_key", "store", "served_generation"}

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "schema_version": (),
    "page_token_keys": (),
    "forget_page_token_keys": (),
    "heads": ([_KEY, hashlib.sha256(b"1").digest()],),
    "find_head": (_KEY,),
    "lock_namespace": (_KEY,),
    "namespace_has_rows": (_KEY,),
    "replace_head": (_KEY, "history", 1, "0" * 64, 0, 0, 0),
    "list_change_sets": (_KEY, 4_000, 50),
    "current_nodes": (_KEY, _NODES),
    "lock_nodes_to_change": (_KEY, _NODES),
    "lock_nodes_to_name": (_KEY, _NODES),
    "existing_nodes": (_KEY, _NODES),
    "nodes_by_content": (_KEY, ["0" * 64, "1" * 64]),
    "nodes_at": (_KEY, _NODES, 500),
    "exact_revisions": (_KEY, _NODES, [1, 1, 1]),
    "list_nodes": (_KEY, "node-003000", 5_000, [], [], "{}", 50),
    "list_revisions": (_KEY, "node-000010", 0, 50),
    "changed_nodes": (_KEY, 4_990, 5_000, "", 500),
    "revisions_committed_at": (_KEY, [100, 200]),
    "get_session": (_KEY, "session-1"),
    "list_sessions": (_KEY, "session-2", 10),
    "lock_sessions_to_change": (_KEY, ["session-1"]),
    "lock_sessions_to_name": (_KEY, ["session-1"]),
    "export_bindings": (_KEY, "session-2", 1, 10),
    "lock_latest_runs": (_KEY, ["session-1"], ["run-1"]),
    "lock_contexts": (_KEY, ["session-1run-1"]),
    "get_context": (_KEY, "session-1run-1"),
    "export_runs": (_KEY, "session-2", "", _NOW, "", 10),
    "contexts_of_runs": (_KEY, ["session-1"], ["run-1"], ["a"]),
    "events_by_id": (_KEY, ["event-1", "event-2"]),
    "list_events": (_KEY, "event-node-01", None, 50),
    "usage": (_KEY, [], "node-003000", 0, 50),
    "find_request": (_KEY, "Test", "key-1"),
    "find_request_and_evidence": (_KEY, "Test", "key-1", _NODES, [b"\0" * 32] * 3),
    "head_and_events": (_KEY, ["event-1", "event-2"]),
    "export_requests": (_KEY, "Test", "key-2", 50),
    "served_generation": (_BOUND,),
    "cached_vectors": (_KEY, b"\xaa" * 32, [hashlib.sha256(str(node).encode()).digest() for node in range(64)]),
    "recorded_fence": (_KEY, _BOUND),
    "lock_partition": (_KEY, _BOUND),
    "pending_intent": (_KEY, _BOUND),
    "settle_receipt": (_KEY, _BOUND, 70, 1, 0),
    "forget_receipts": (_KEY, _BOUND),
    "list_receipts": (_KEY, _BOUND, 50, 1, 0, 10),
    "find_schedule": (_KEY, _BOUND),
    "add_run": (_KEY, _BOUND, _NOW, _NOW, 1, "", 1, 1),
    "list_refresh_runs": (_KEY, _BOUND),
    "due_refreshes": (_BOUND, _NOW, 2.0, 16),
}


@pytest.fixture(scope="module")
def filled(postgres: PostgresProcess) -> Iterator[str]:
    """The DSN of the filled database."""

    async def fill() -> str:
        dsn = await postgres.create_database(_DATABASE)
        await migrate(dsn)
        connection = await _connect(dsn)
        try:
            await connection.execute("SET session_replication_role = replica")  # foreign keys need no proof here
            await connection.execute((Path(__file__).parent / "filled.sql").read_text())
        finally:
            await connection.close()
        return dsn

    yield asyncio.run(fill())
    asyncio.run(postgres.drop_database(_DATABASE))


def test_every_statement_with_an_index_is_checked():
    assert {name for name, indexes in INDEXES.items() if indexes} == set(ARGUMENTS)


@pytest.mark.parametrize("name", ARGUMENTS)
async def test_the_plan_uses_the_index(filled: str, name: str):
    connection = await _connect(filled)
    try:
        plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {STATEMENTS[name]}", *ARGUMENTS[name])
        await _check(connection, name, plan)
    finally:
        await connection.close()


async def _connect(dsn: str) -> asyncpg.Connection:
    return await asyncpg.connect(dsn, server_settings=connection_settings(PostgresSettings()))


async def _check(connection: asyncpg.Connection, name: str, plan: str) -> None:
    nodes = list(_nodes(json.loads(plan)[0]["Plan"]))
    # An index of a partition has a name of its own.
    parents = {
        row["child"]: row["parent"]
        for row in await connection.fetch(
            "SELECT inhrelid::regclass::text AS child, inhparent::regclass::text AS parent FROM pg_inherits"
        )
    }
    used = {parents.get(node["Index Name"], node["Index Name"]) for node in nodes if "Index Name" in node}
    scanned = {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"}
    pages = {
        row["relname"]: row["relpages"]
        for row in await connection.fetch("SELECT relname, relpages FROM pg_class WHERE relname = ANY ($1)", scanned)
    }
    assert all(pages[relation] <= _FEW_PAGES for relation in scanned), plan
    if not scanned & _SMALL:
        assert all(indexes & used for indexes in INDEXES[name]), plan


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)
