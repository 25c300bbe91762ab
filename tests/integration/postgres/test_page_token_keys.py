"""Keys of page tokens are replaced by whichever process finds that due, and none meets a key that it cannot know."""

import asyncio
from datetime import timedelta

import asyncpg

from durable_memory.adapters.postgres import PostgresStore
from durable_memory.rpc.paging import MAX_AGE
from tests.integration.postgres.conftest import OpenStore


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
    await _age(postgres_database, timedelta(days=6, seconds=1))
    signs, verifies = await store.page_token_keys()
    assert signs == first != verifies
    await _age(postgres_database, timedelta(minutes=6))
    assert await store.page_token_keys() == [verifies, first]


async def test_a_key_verifies_for_longer_than_any_token_lives_after_it_signed_the_last(
    store: PostgresStore, postgres_database: str
):
    (first,) = await store.page_token_keys()
    await _age(postgres_database, timedelta(days=6, seconds=1))
    await store.page_token_keys()
    await _age(postgres_database, timedelta(minutes=10) + MAX_AGE)
    assert first in await store.page_token_keys()
    await _age(postgres_database, timedelta(days=6))
    assert first not in await store.page_token_keys()


async def test_of_processes_that_find_a_key_due_together_one_mints_it(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database) for _ in range(4)]
    await stores[0].page_token_keys()
    await _age(postgres_database, timedelta(days=7))
    answers = await asyncio.gather(*(store.page_token_keys() for store in stores))
    assert len({tuple(answer) for answer in answers}) == 1
    assert len(answers[0]) == 2
