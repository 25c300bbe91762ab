"""Change notifications between processes, outside every write transaction.

Sending is batched: the keys that changed while one message was under way go into the next. Nothing relies on them;
whoever waits asks again after a while. One connection per process listens and sends, and is made again when lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import asyncpg
import structlog

from durable_memory.adapters.change_signal import ChangeSignal
from durable_memory.adapters.postgres.connecting import Connector, Session
from durable_memory.adapters.postgres.errors import LOST, domain_errors
from durable_memory.adapters.postgres.pool import connection_settings
from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.sql import statement
from durable_memory.domain.errors import DomainError
from durable_memory.tasks import end

_log = structlog.stdlib.get_logger(__name__)

CHANNEL: Final = "durable_memory_change"

_NOTIFY: Final = statement("notify")
_KEYS_PER_MESSAGE: Final = 120
"""Of 64 digits and a comma each: below the 8,000 bytes that a notification may have."""
_PAUSE_SECONDS: Final = 0.01
_SILENCE_SECONDS: Final = 15.0
_FIRST_BACKOFF_SECONDS: Final = 0.1
_LAST_BACKOFF_SECONDS: Final = 2.0


class ChangeFeed:
    """Tells this process's `signal` what others committed, and others what this one did."""

    def __init__(
        self, connector: Connector, settings: PostgresSettings, signal: ChangeSignal, jitter: Callable[[], float]
    ) -> None:
        self._connector = connector
        self._settings = settings
        self._signal = signal
        self._jitter = jitter
        self._connection: Session | None = None
        self._changed: dict[bytes, None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen; return when notifications can arrive."""
        with domain_errors():
            connection = await self._connect()
        self._task = asyncio.ensure_future(self._run(connection))
        # A task that is cancelled before it has begun runs nothing of itself, not even what ends the connection.
        self._task.add_done_callback(lambda _: connection.terminate())

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await end([task])

    def renew(self) -> None:
        """Listen on another connection: this one's server may not be the one where changes are committed."""
        if self._connection is not None:
            self._connection.terminate()

    def changed(self, key: bytes) -> None:
        """Tell everybody, here at once and elsewhere soon."""
        self._signal.notify(key)
        self._changed[key] = None
        self._wake.set()

    async def _run(self, connection: Session) -> None:
        while True:
            try:
                await self._serve(connection)
            except (asyncpg.PostgresError, *LOST):
                pass  # lost: those who wait go on by asking
            finally:
                connection.terminate()
            _log.warning("change_feed_lost")
            connection = await self._connect_again()
            _log.info("change_feed_back")
            # What was missed meanwhile is not known.
            self._signal.notify_all()

    async def _connect_again(self) -> Session:
        backoff = _FIRST_BACKOFF_SECONDS
        while True:
            await self._connector.wait_reachable()
            await asyncio.sleep(backoff * self._jitter())
            try:
                return await self._connect()
            except (DomainError, asyncpg.PostgresError, *LOST):
                backoff = min(backoff * 2, _LAST_BACKOFF_SECONDS)

    async def _connect(self) -> Session:
        connection = await self._connector.connect(
            command_timeout=self._settings.connect_timeout_seconds,
            # A notification is worth no wait for the disk.
            server_settings={**connection_settings(self._settings), "synchronous_commit": "off"},
        )
        self._connection = connection  # before it listens: a promotion may be seen while it is asked to
        try:
            await connection.add_listener(CHANNEL, self._on_message)
            connection.add_termination_listener(lambda _: self._wake.set())
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _serve(self, connection: Session) -> None:
        while not connection.is_closed():
            self._wake.clear()
            keys = list(self._changed)[:_KEYS_PER_MESSAGE]
            if keys:
                for key in keys:
                    del self._changed[key]
                # Lost with the connection, they only delay.
                await connection.execute(_NOTIFY, CHANNEL, ",".join(key.hex() for key in keys))
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_SILENCE_SECONDS):
                        await self._wake.wait()
                        continue
                await connection.execute("SELECT")  # a silent connection may be a dead one

    def _on_message(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        if pid == connection.get_server_pid():
            return  # said by this process, which knew before it said it
        for digits in str(payload).split(","):
            with suppress(ValueError):  # somebody else's message on this channel
                self._signal.notify(bytes.fromhex(digits))
