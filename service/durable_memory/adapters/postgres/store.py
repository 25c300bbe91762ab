"""`PostgresStore`: the store of record for any number of processes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from durable_memory.adapters.change_signal import ChangeSignal
from durable_memory.adapters.postgres.connecting import Connector
from durable_memory.adapters.postgres.errors import domain_errors
from durable_memory.adapters.postgres.feed import ChangeFeed
from durable_memory.adapters.postgres.heads import Heads
from durable_memory.adapters.postgres.migrations import check_schema, require_version
from durable_memory.adapters.postgres.pool import ConnectionPool
from durable_memory.adapters.postgres.primary import Primary
from durable_memory.adapters.postgres.reading import Reading
from durable_memory.adapters.postgres.rows import head_of
from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.stall import Stall
from durable_memory.adapters.postgres.transacting import Transactions
from durable_memory.adapters.postgres.transaction import WriteTransaction, write_transaction
from durable_memory.domain.errors import not_serving
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.state import Head, derived_history_id
from durable_memory.ports.runtime import Ids
from durable_memory.ports.store import Lock, NamespaceCopy, Outcome, Plan

T = TypeVar("T")

_SILENCES_APART_SECONDS: Final = 1.0


class PostgresStore(Reading):
    """`Store` over a database that `migrate` has brought to the current schema.

    Writes, reads and heads have connections of their own, so that none of them waits for another kind.
    """

    def __init__(self, dsn: str, *, ids: Ids, settings: PostgresSettings | None = None) -> None:
        """`dsn` is a postgresql:// URL as libpq takes it; it may name several hosts, of which the primary is used.

        Raises: ValueError for a URL that cannot be used.
        """
        self._settings = settings or PostgresSettings()
        self._ids = ids
        self._primary = Primary(self._on_promotion)
        self._connector = Connector(dsn, self._settings, self._primary, self._jitter)
        self._silent_at = 0.0
        self._writers = self._connections(self._settings.write_connections)
        self._readers = self._connections(self._settings.read_connections)
        self._head_readers = self._connections(1, self._settings.head_timeout_seconds)
        super().__init__(self._readers)
        self._head_reading = Reading(self._head_readers)
        self._heads = Heads(self._read_heads)
        self._stall = Stall(self._connector, self._settings, self._is_executing, self._jitter)
        self._transactions = Transactions(self._writers, self._stall, self._settings, self._empty_head)
        self._signal = ChangeSignal(self._settings.change_poll_seconds)
        self._feed = ChangeFeed(self._connector, self._settings, self._signal, self._jitter)
        self._serving = False

    # Life

    async def open(self) -> None:
        self._connector.open()
        self._stall.open()
        await check_schema(self._connector)
        for pool in self._pools:
            await pool.open()
        self._serving = True
        try:
            await self.check()
            await self._feed.start()
            self._connector.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._serving = False
        self._signal.notify_all()
        await self._feed.close()
        await self._heads.close()
        await self._stall.close()
        for pool in self._pools:
            await pool.close()
        await self._connector.close()

    async def check(self) -> None:
        self._require_serving()
        ((version,),) = await self._head_reading.fetch("schema_version")
        require_version(version or 0)

    async def page_token_keys(self) -> Sequence[bytes]:
        keys = await self.fetch("page_token_keys")
        if not keys:
            await self.renew_page_token_keys()
            keys = await self.fetch("page_token_keys")
        return [row["secret"] for row in keys]

    async def renew_page_token_keys(self) -> None:
        if all(row["due"] for row in await self.fetch("page_token_keys")):
            with domain_errors():
                async with write_transaction(self._writers, self._stall, self._settings) as transaction:
                    await transaction.execute("lock_page_token_keys")
                    await transaction.execute("mint_page_token_key", bytes.fromhex(self._ids.random_hex(32)))
                    await transaction.execute("forget_page_token_keys")
                    await transaction.commit()

    # Writing

    async def transact(self, namespace: Namespace, plan: Plan) -> Outcome:
        self._require_serving()
        outcome = await self._transactions.transact(namespace, plan)
        if plan.lock is Lock.NAMESPACE and not outcome.replayed:
            self._feed.changed(namespace.key)
        return outcome

    async def import_namespace(self, namespace: Namespace, copy: NamespaceCopy, history_id: str) -> Head:
        self._require_serving()
        head = await self._transactions.import_namespace(namespace, copy, history_id)
        self._feed.changed(namespace.key)
        return head

    async def write_beside(self, work: Callable[[WriteTransaction], Awaitable[T]]) -> T:
        """Commit what `work` writes, for what lives in this database beside the namespaces' state; it may run again.

        Raises: what `work` does, and then nothing of it is written; otherwise as `transact`.
        """
        self._require_serving()
        return await self._transactions.write(work)

    # Reading; the rest is in Reading

    async def head(self, namespace: Namespace) -> Head:
        self._require_serving()
        return await self._heads.of(namespace.key) or self._empty_head(namespace)

    async def wait_for_change(self, namespace: Namespace, revision: int) -> None:
        self._require_serving()
        # Waiting begins before the look, so that what is committed in between is noticed.
        waiting = asyncio.ensure_future(self._signal.wait(namespace.key))
        try:
            if (await self.head(namespace)).revision <= revision:
                await waiting
        finally:
            waiting.cancel()
            await asyncio.wait({waiting})

    async def _read_heads(self, keys: Collection[bytes]) -> Mapping[bytes, Head]:
        rows = await self._head_reading.fetch("heads", list(keys))
        self._primary.check(rows[0])
        return {row["namespace_key"]: head_of(row) for row in rows if row["namespace_key"] is not None}

    def _empty_head(self, namespace: Namespace) -> Head:
        return Head(history_id=derived_history_id(self._primary.history_id, namespace))

    def _connections(self, size: int, silence_timeout_seconds: float | None = None) -> ConnectionPool:
        return ConnectionPool(
            self._connector,
            self._settings,
            size=size,
            silence_timeout_seconds=silence_timeout_seconds,
            on_silence=self._on_silence,
        )

    def _jitter(self) -> float:
        return 0.5 + int(self._ids.random_hex(2), 16) / 0x1FFFE

    @property
    def _pools(self) -> tuple[ConnectionPool, ...]:
        return (self._writers, self._readers, self._head_readers)

    def _on_promotion(self) -> None:
        self._feed.renew()
        for pool in self._pools:
            pool.expire()

    async def _is_executing(self, process: int, began: datetime) -> bool:
        ((executing,),) = await self.fetch("session_is_executing", process, began)
        return bool(executing)

    def _on_silence(self) -> None:
        """Where one connection has gone silent all may have: none that is idle is tried out on a caller."""
        now = asyncio.get_running_loop().time()
        if now - self._silent_at >= _SILENCES_APART_SECONDS:  # those that were made together are found out together
            self._silent_at = now
            self._connector.doubt()
            for pool in self._pools:
                pool.expire()

    def _require_serving(self) -> None:
        if not self._serving:
            raise not_serving("closed", "the store is closed")
