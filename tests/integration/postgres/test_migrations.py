"""Bringing databases forward, and refusing those that are not what this version made."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from durable_memory.adapters.postgres import PostgresStore
from durable_memory.adapters.postgres import migrations as module
from durable_memory.adapters.postgres.migrations import MIGRATIONS, Migration, MigrationRefusedError, migrate
from durable_memory.adapters.postgres.pool import SCHEMA
from durable_memory.adapters.postgres.semantic_records import PostgresSemanticRecords
from durable_memory.adapters.runtime import SystemIds
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.semantic_records import RUNS_KEPT
from tests.conformance.semantic_records.samples import generation, intent, maintenance_run, receipt, schedule
from tests.integration.postgres.plans import NAMESPACE, admit, create, session_with_run
from tests.integration.postgres.schema import describe
from tests.processes.postgres import PostgresProcess

_SNAPSHOT = Path(__file__).parent / "schema.txt"
_ROOT = Path(__file__).parents[3]
_NEWER = "INSERT INTO schema_migration SELECT max(version) + 1, 'newer', sha256('newer') FROM schema_migration"
_NAMES = [migration.name for migration in MIGRATIONS]


async def execute(dsn: str, *statements: str) -> None:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": SCHEMA})
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def open_error(dsn: str) -> DomainError:
    store = PostgresStore(dsn, ids=SystemIds())
    with pytest.raises(DomainError) as caught:
        await store.open()
    await store.close()
    return caught.value


async def test_the_schema_is_the_sum_of_the_migrations(postgres_database: str):
    """After a new migration: delete schema.txt, run this test, and look at what git says has changed."""
    actual = await describe(postgres_database)
    if not _SNAPSHOT.exists():
        _SNAPSHOT.write_text(actual)
    assert actual == _SNAPSHOT.read_text()


async def test_all_is_applied_once(postgres_empty_database: str):
    assert await migrate(postgres_empty_database) == _NAMES
    assert await migrate(postgres_empty_database) == []


async def test_two_processes_that_migrate_at_once_take_turns(postgres_empty_database: str):
    code = (
        "import asyncio, sys\n"
        "from durable_memory.adapters.postgres.migrations import migrate\n"
        "print(asyncio.run(migrate(sys.argv[1])))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "service")}
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, postgres_empty_database, env=environment, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    answers = sorted([(await process.communicate())[0].decode().strip() for process in processes])
    assert answers == sorted([str(_NAMES), "[]"])


async def test_a_migration_that_fails_leaves_nothing_of_it(
    postgres_empty_database: str, monkeypatch: pytest.MonkeyPatch
):
    broken = Migration(len(MIGRATIONS) + 1, "broken", "CREATE TABLE half (); SELECT 1 / 0")
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, broken))
    monkeypatch.setattr(module, "CURRENT_VERSION", broken.version)
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(postgres_empty_database)
    monkeypatch.undo()
    assert await migrate(postgres_empty_database) == []
    assert "table half" not in await describe(postgres_empty_database)


async def test_a_changed_migration_is_refused(postgres_database: str):
    await execute(postgres_database, "UPDATE schema_migration SET checksum = sha256('other')")
    with pytest.raises(MigrationRefusedError):
        await migrate(postgres_database)
    error = await open_error(postgres_database)
    assert error.reason is Reason.NOT_SERVING


async def test_a_database_of_a_newer_version_is_refused(postgres_database: str):
    await execute(postgres_database, _NEWER)
    with pytest.raises(MigrationRefusedError):
        await migrate(postgres_database)
    error = await open_error(postgres_database)
    assert error.reason is Reason.NOT_SERVING
    assert (error.metadata["have"], error.metadata["want"]) == (str(len(MIGRATIONS) + 1), str(len(MIGRATIONS)))


async def test_a_database_without_schema_is_not_served(postgres_empty_database: str):
    error = await open_error(postgres_empty_database)
    assert error.reason is Reason.NOT_SERVING
    assert (error.metadata["have"], error.metadata["want"]) == ("0", str(len(MIGRATIONS)))


async def test_a_store_that_runs_notices_that_the_schema_has_moved(store: PostgresStore, postgres_database: str):
    await store.check()
    await execute(postgres_database, _NEWER)
    with pytest.raises(DomainError) as caught:
        await store.check()
    assert caught.value.reason is Reason.NOT_SERVING


async def test_a_server_that_is_not_there_is_an_unavailable_dependency_without_its_address(refusing_port: int):
    dsn = f"postgresql://user:secret@127.0.0.1:{refusing_port}/database"
    with pytest.raises(DomainError) as caught:
        await migrate(dsn)
    for error in (caught.value, await open_error(dsn)):
        assert error.reason is Reason.DEPENDENCY_UNAVAILABLE
        assert not any(part in repr(error) for part in ("127.0.0.1", "secret", "user", str(refusing_port)))


async def refresh(records: PostgresSemanticRecords) -> None:
    """Write everything that a refresh does, and twice what replaces what is there."""
    partition = Partition(NAMESPACE, generation("grants").authority_digest)
    await records.cache_vectors(NAMESPACE, "0" * 64, {"0" * 64: b"vector"})
    for fence in (1, 2):
        assert await records.record_fence(partition, fence)
        await records.write_intent(partition, intent(fence))
        await records.write_receipt(partition, receipt(partition, fence))
        await records.set_schedule(NAMESPACE, schedule(generation("grants"), 60.0))
    for _ in range(RUNS_KEPT + 1):
        await records.add_run(partition, maintenance_run())


async def test_the_granted_role_is_enough_for_the_service_and_cannot_rewrite_history(
    postgres: PostgresProcess, postgres_database: str
):
    role = "service_of_this_test"
    grants = (Path(module.__file__).parents[1] / "grants.sql").read_text().replace(':"role"', role)
    await execute(postgres_database, f"CREATE ROLE {role} LOGIN", grants)
    dsn = postgres_database.replace("//postgres@", f"//{role}@")
    store = PostgresStore(dsn, ids=SystemIds())
    await store.open()
    try:
        await store.page_token_keys()
        await store.transact(NAMESPACE, create("a", key="k"))
        await store.transact(NAMESPACE, session_with_run())
        node = (await store.current_nodes(NAMESPACE, ["a"]))["a"]
        await store.transact(NAMESPACE, admit(node.ref, "event", key="k"))
        await refresh(PostgresSemanticRecords(store))
        for statement in (
            "UPDATE node_revision SET content = 'other'",
            "UPDATE change_set SET caller = 'other'",
            "DELETE FROM access_event",
            "UPDATE refresh_receipt SET source_revision = 9",
            "UPDATE embedding SET vector = 'other'",
            "DELETE FROM refresh_run",
            "DROP TABLE session",
            "CREATE TABLE other ()",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await execute(dsn, statement)
    finally:
        await store.close()
        await execute(postgres_database, f"DROP OWNED BY {role}", f"DROP ROLE {role}")
