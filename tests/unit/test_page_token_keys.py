"""Keys of page tokens are read and replaced for ever, and nothing else depends on whether that works."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from structlog.testing import capture_logs

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.runtime import ManualClock, SystemIds
from durable_memory.domain.errors import dependency_unavailable
from durable_memory.page_token_keys import PageTokenKeys
from durable_memory.rpc.paging import PageTokens
from tests.processes.polling import wait_until_async


class _Store(MemoryStore):
    """Renews, or reads, only as long as it works; `keys` are what others have minted."""

    def __init__(self) -> None:
        super().__init__(SystemIds())
        self.keys: Sequence[bytes] = [b"1" * 32]
        self.reads = True
        self.renews = True
        self.asked = 0

    async def page_token_keys(self) -> Sequence[bytes]:
        if not self.reads:
            raise dependency_unavailable("gone")
        return self.keys

    async def renew_page_token_keys(self) -> None:
        self.asked += 1
        if not self.renews:
            raise dependency_unavailable("the database does not finish commits")


class _Tokens(PageTokens):
    def __init__(self) -> None:
        super().__init__(ManualClock(datetime(2026, 1, 1, tzinfo=UTC)))
        self.keys: Sequence[bytes] = ()

    def use_keys(self, keys: Sequence[bytes]) -> None:
        self.keys = keys


async def _looked_again(store: _Store) -> None:
    until = store.asked + 3
    await wait_until_async(lambda: store.asked >= until, what="it has looked again")


async def test_what_another_process_has_minted_is_read_though_this_one_can_mint_none():
    store, tokens = _Store(), _Tokens()
    keys = PageTokenKeys(store, tokens, look_seconds=0.001)
    await keys.load()
    assert tokens.keys == store.keys
    with capture_logs() as logs:
        keeping = asyncio.create_task(keys.keep())
        for works in (False, True):
            store.renews = works
            store.keys = [bytes([store.asked % 256]) * 32, *store.keys[:1]]
            await _looked_again(store)
            assert tokens.keys == store.keys
        store.reads = False
        await wait_until_async(lambda: len(logs) > 1, what="it cannot read them")
        store.reads = True
        await _looked_again(store)
        keeping.cancel()
        await asyncio.wait({keeping})
    assert keeping.cancelled()
    assert [log["event"] for log in logs] == ["page_token_keys_not_kept"] * 2  # once for each time that it began
    assert {log["cause"] for log in logs} == {"DEPENDENCY_UNAVAILABLE"}
