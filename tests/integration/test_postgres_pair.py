"""The pair of PostgreSQL servers that the qualification breaks: it does what its methods say."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from asyncpg.connect_utils import SessionAttribute

from tests.processes.polling import wait_until_async
from tests.qualification.cluster.postgres_pair import PostgresPair

_WAITS_FOR_STANDBY = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture
async def pair() -> AsyncIterator[PostgresPair]:
    async with PostgresPair() as pair:
        await _execute(pair.dsn, "CREATE TABLE entry (id integer PRIMARY KEY)")
        yield pair


async def _execute(dsn: str, statement: str, *arguments: object) -> list:
    connection = await asyncpg.connect(dsn, target_session_attrs=SessionAttribute.primary, timeout=20)
    try:
        return await connection.fetch(statement, *arguments)
    finally:
        connection.terminate()


async def _add(pair: PostgresPair, number: int) -> None:
    await _execute(pair.dsn, "INSERT INTO entry VALUES ($1)", number)


async def _entries(dsn: str) -> list[int]:
    return [row["id"] for row in await _execute(dsn, "SELECT id FROM entry ORDER BY id")]


async def test_what_was_acknowledged_outlives_promotions_and_an_old_primary_has_its_own_history(pair: PostgresPair):
    old = pair.primary
    await _add(pair, 1)
    await pair.promote()
    assert pair.standby is old
    assert not old.is_running
    assert await _entries(pair.dsn) == [1]
    await _add(pair, 2)  # without any standby
    with pytest.raises(RuntimeError, match="no standby that has everything"):
        await pair.promote()

    await pair.revive_old_primary()
    revived = old.proxy.dsn(old.dsn("memory"))
    await _execute(revived, "INSERT INTO entry VALUES (100)")
    assert await _entries(revived) == [1, 100]
    assert await _entries(pair.direct_dsn()) == [1, 2]

    await pair.rejoin()
    assert pair.waits_for_standby
    await _add(pair, 3)
    await pair.promote()
    assert pair.primary is old
    assert await _entries(pair.dsn) == [1, 2, 3]
    assert (await _execute(pair.dsn, "SHOW fsync"))[0][0] == "on"


async def test_commits_wait_for_a_standby_that_is_away_until_it_is_given_up(pair: PostgresPair):
    await pair.kill9_standby()
    waiting = asyncio.create_task(_add(pair, 1))
    await _until_a_commit_waits(pair)
    assert not waiting.done()
    await pair.without_standby()
    await waiting

    await _add(pair, 2)
    await pair.restart_standby()
    await pair.with_standby()
    pair.cut_replication()
    waiting = asyncio.create_task(_add(pair, 3))
    await _until_a_commit_waits(pair)
    pair.mend_replication()
    await waiting
    await pair.kill9_primary()
    await pair.recover_primary()
    await pair.wait_in_sync()
    assert await _entries(pair.dsn) == [1, 2, 3]


async def _until_a_commit_waits(pair: PostgresPair) -> None:
    async def one_waits() -> bool:
        return bool((await _execute(pair.direct_dsn(), _WAITS_FOR_STANDBY))[0][0])

    await wait_until_async(one_waits, what="a commit waits for the standby")
