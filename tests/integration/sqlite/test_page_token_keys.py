"""Keys of page tokens are replaced, and outlive the tokens that they signed."""

import sqlite3
from contextlib import closing
from pathlib import Path

from durable_memory.adapters.sqlite import SqliteStore

_DAY = 86_400 * 1_000_000


def _age(path: Path, days: float) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE page_token_keys SET created_at = created_at - ?", (int(days * _DAY),))


async def test_a_key_of_a_week_is_replaced_and_goes_on_verifying_until_the_next(store: SqliteStore, path: Path):
    (first,) = await store.page_token_keys()
    _age(path, 5.9)
    await store.renew_page_token_keys()
    assert await store.page_token_keys() == [first]
    _age(path, 0.2)
    assert await store.page_token_keys() == [first]
    await store.renew_page_token_keys()
    second, held = await store.page_token_keys()
    assert held == first != second
    await store.renew_page_token_keys()
    assert await store.page_token_keys() == [second, first]
    _age(path, 6.1)
    await store.renew_page_token_keys()
    third, held = await store.page_token_keys()
    assert held == second
    assert third not in (first, second)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM page_token_keys").fetchone() == (2,)
    await store.close()
