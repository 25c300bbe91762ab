"""The PostgreSQL processes that other tests build on: what was committed is there after a kill."""

from collections.abc import Iterator

import asyncpg
import pytest

from tests.processes.postgres import PostgresProcess


@pytest.fixture
def own_postgres() -> Iterator[PostgresProcess]:
    with PostgresProcess() as server:
        yield server


async def test_committed_rows_survive_kill9_and_open_transactions_do_not(own_postgres: PostgresProcess) -> None:
    dsn = await own_postgres.create_database("ledger")
    writer = await asyncpg.connect(dsn)
    await writer.execute("CREATE TABLE entry (id integer PRIMARY KEY)")
    await writer.execute("INSERT INTO entry VALUES (1)")
    await writer.execute("BEGIN")
    await writer.execute("INSERT INTO entry VALUES (2)")

    own_postgres.kill9()
    writer.terminate()
    assert not own_postgres.is_running
    own_postgres.restart()

    reader = await asyncpg.connect(dsn)
    try:
        assert [row["id"] for row in await reader.fetch("SELECT id FROM entry ORDER BY id")] == [1]
    finally:
        await reader.close()


async def test_a_new_database_is_a_copy_of_its_template(own_postgres: PostgresProcess) -> None:
    source = await asyncpg.connect(await own_postgres.create_database("source"))
    await source.execute("CREATE TABLE entry (id integer PRIMARY KEY)")
    await source.close()

    copy = await asyncpg.connect(await own_postgres.create_database("copy", template="source"))
    try:
        assert await copy.fetchval("SELECT count(*) FROM entry") == 0
        assert await copy.fetchval("SHOW server_encoding") == "UTF8"
        assert await copy.fetchval("SHOW fsync") == "on"
    finally:
        await copy.close()


def test_closing_the_server_leaves_no_process_and_no_folder() -> None:
    server = PostgresProcess(durable=False)
    server.start()
    folder = server.log.parent
    assert folder.exists()

    server.close()

    assert not server.is_running
    assert not folder.exists()
