"""The keys of page tokens, kept fresh beside everything else that is done with the store."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from durable_memory.domain.errors import DomainError
from durable_memory.ports.store import Store
from durable_memory.rpc.paging import PageTokens

LOOK_SECONDS: Final = 60.0
"""A new key signs after five minutes (`Store.page_token_keys`): until then every process has read it several times."""

_log = structlog.stdlib.get_logger(__name__)


class PageTokenKeys:
    """Reads what all processes share, and replaces a key that is due.

    Nothing waits for that, and nothing depends on it: as long as it does not work the old keys go on, and the store
    may serve very well, only without writing.
    """

    def __init__(self, store: Store, tokens: PageTokens, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._store = store
        self._tokens = tokens
        self._look_seconds = look_seconds

    async def load(self) -> None:
        """Raises: what the store does."""
        self._tokens.use_keys(await self._store.page_token_keys())

    async def keep(self) -> None:
        """Look again and again, for ever."""
        failing = False
        while True:
            await asyncio.sleep(self._look_seconds)
            try:
                await self.load()
                await self._store.renew_page_token_keys()
            except Exception as error:  # noqa: BLE001 - on record, whatever it is: nobody else would look again
                cause = error.reason.value if isinstance(error, DomainError) else type(error).__qualname__
                if not failing:  # once, and not every minute
                    _log.warning("page_token_keys_not_kept", cause=cause)
                failing = True
            else:
                failing = False
