"""Keys of page tokens are replaced by whichever process finds that due, and none meets a key that it cannot know."""

import asyncio
from datetime import timedelta

import asyncpg

from durable_memory.adapters.postgres import PostgresStore
from durable_memory.rpc.paging import MAX_AGE
from tests.integration.postgres.conftest import OpenStore
from tests.processes.polling import wait_until_async

_WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'durable_memory.page_token_key'::regclass"


async def _age(dsn: str, by: timedelta) -> None:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "durable_memory"})
    try:
        await connection.execute("UPDATE page_token_key SET created_at = created_at - $1::interval", by)
    finally:
        await connection.close()


async def test_the_one_before_signs_until_all_processes_have_had_time_to_read_the_new_key(
    store: PostgresStore, postgres_database: str
):
    (first,) = await store.page_token_keys()
    await store.renew_page_token_keys()
    assert await store.page_token_keys() == [first]
    await _age(postgres_database, timedelta(days=6, seconds=1))
    await store.renew_page_token_keys()
    signs, verifies = await store.page_token_keys()
    assert signs == first != verifies
    await _age(postgres_database, timedelta(minutes=6))
    assert await store.page_token_keys() == [verifies, first]


async def test_a_key_verifies_for_longer_than_any_token_lives_after_it_signed_the_last(
    store: PostgresStore, postgres_database: str
):
    (first,) = await store.page_token_keys()
    await _age(postgres_database, timedelta(days=6, seconds=1))
    await store.renew_page_token_keys()
    await _age(postgres_database, timedelta(minutes=10) + MAX_AGE)
    await store.renew_page_token_keys()
    assert first in await store.page_token_keys()
    await _age(postgres_database, timedelta(days=6))
    await store.renew_page_token_keys()
    assert first not in await store.page_token_keys()


async def test_of_processes_that_find_a_key_due_together_one_mints_it(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database) for _ in range(4)]
    await stores[0].page_token_keys()
    await _age(postgres_database, timedelta(days=7))
    await asyncio.gather(*(store.renew_page_token_keys() for store in stores))
    answers = [await store.page_token_keys() for store in stores]
    assert len({tuple(answer) for answer in answers}) == 1
    assert len(answers[0]) == 2


async def test_keys_that_are_due_go_on_where_no_other_can_be_written(store: PostgresStore, postgres_database: str):
    keys = await store.page_token_keys()
    await _age(postgres_database, timedelta(days=7))
    connection = await asyncpg.connect(postgres_database)
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE durable_memory.page_token_key IN SHARE MODE")
            renewing = asyncio.ensure_future(store.renew_page_token_keys())
            await wait_until_async(lambda: connection.fetchval(_WAITS), what="the new key waits")
            assert await store.page_token_keys() == keys
            renewing.cancel()
            await asyncio.wait({renewing})
            assert await store.page_token_keys() == keys
    finally:
        await connection.close()
    await store.renew_page_token_keys()
    assert len(await store.page_token_keys()) == 2
