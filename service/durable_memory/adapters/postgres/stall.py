"""Commits that are not answered: nobody makes more of them until one is.

When its synchronous standby is gone, the primary takes every statement and finishes no commit. Each that is given up
leaves a session there which holds its locks and its place until the standby is back; a server that went on would fill
the primary with them, and then nobody could read either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, TypeAlias

import asyncpg
import structlog

from durable_memory.adapters.postgres.connecting import Connector, Session
from durable_memory.adapters.postgres.errors import LOST
from durable_memory.adapters.postgres.pool import connection_settings
from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.sql import statement
from durable_memory.domain.errors import DomainError, dependency_unavailable
from durable_memory.tasks import end

_log = structlog.stdlib.get_logger(__name__)

_Identity: TypeAlias = tuple[int, datetime]
"""Of a session: the server's number for its process, which another may have later, and when it began."""

_VOUCH: Final = statement("vouch")
_OWN_SESSION: Final = statement("own_session")
_DOUBT_SECONDS: Final = 1.0
"""How long it may take to tell a primary that does not commit from a connection that was lost without a word."""
_PATIENCE_SECONDS: Final = 0.25
_LOOK_SECONDS: Final = 1.0
_FIRST_PAUSE_SECONDS: Final = 0.1
_LAST_PAUSE_SECONDS: Final = 2.0


class Stall:
    """Begins when a commit is given up, and is over when another is answered: one of its own, which waits.

    There is one of its own at a time: as long as the server is at one, even on a connection that was lost, or may be
    and cannot be asked, there is no other.
    """

    def __init__(
        self,
        connector: Connector,
        settings: PostgresSettings,
        is_executing: Callable[[int, datetime], Awaitable[bool]],
        jitter: Callable[[], float],
    ) -> None:
        """`is_executing` says whether the session of a process number, begun then, is there and at a statement."""
        self._connector = connector
        self._settings = settings
        self._is_executing = is_executing
        self._jitter = jitter
        self._session: _Identity | None = None
        self._task: asyncio.Task[None] | None = None
        self._began = 0.0
        self._closed = False

    def open(self) -> None:
        """It may begin from now on, whether it was closed before or not."""
        self._closed = False

    def begin(self) -> None:
        """A commit was not answered in time. After `close` that changes nothing: nobody makes more."""
        if not self._closed and (self._task is None or self._task.done()):
            self._connector.doubt()  # a primary that finishes no commit may be one that another has overtaken
            self._began = asyncio.get_running_loop().time()
            self._task = asyncio.ensure_future(self._run())

    async def require_commits(self) -> None:
        """Return when commits are answered. Raises: DEPENDENCY_UNAVAILABLE if they are not, after a moment at most."""
        if (task := self._task) is None:
            return
        doubt_ends = self._began + _DOUBT_SECONDS - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait({task}, timeout=max(_PATIENCE_SECONDS, doubt_ends))
        if not done:
            raise dependency_unavailable("the database does not finish commits")

    async def close(self) -> None:
        self._closed = True
        task, self._task = self._task, None
        if task is not None:
            await end([task])

    async def _run(self) -> None:
        _log.warning("commits_stalled")
        pause = _FIRST_PAUSE_SECONDS
        while not await self._commits():
            await self._connector.wait_reachable()
            await asyncio.sleep(pause * self._jitter())
            pause = min(pause * 2, _LAST_PAUSE_SECONDS)
        self._task = None
        _log.info("commits_back", seconds=round(asyncio.get_running_loop().time() - self._began, 3))

    async def _commits(self) -> bool:
        """Whether a commit is answered, however long that takes; False if its session is over, or it was warned."""
        if self._session is not None and not await self._is_over(self._session):
            return False
        self._session = None
        with suppress(DomainError, asyncpg.PostgresError, *LOST):
            connection = await self._connector.connect(server_settings=connection_settings(self._settings))
            try:
                return await self._commits_on(connection)
            finally:
                connection.terminate()
        return False

    async def _commits_on(self, connection: Session) -> bool:
        warned = False

        def on_message(connection: Any, message: asyncpg.PostgresLogMessage) -> None:
            nonlocal warned
            warned = True

        connection.add_log_listener(on_message)
        own = await connection.fetchrow(_OWN_SESSION, timeout=_LOOK_SECONDS)
        assert own is not None
        session = self._session = own["pid"], own["backend_start"]
        committing = asyncio.ensure_future(connection.execute(_VOUCH))
        ending = asyncio.ensure_future(self._ending(session))
        try:
            await asyncio.wait({committing, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not committing.done():
                ending.result()
                return False
            committing.result()
            self._session = None
            return not warned
        finally:
            connection.terminate()  # and with it the commit
            await end([committing, ending])

    async def _ending(self, session: _Identity) -> None:
        """Return when the session is over without an answer: what it had to say was lost, or it never heard of it."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if await self._is_over(session):
                return

    async def _is_over(self, session: _Identity) -> bool:
        """Whether that is certain. When nobody can be asked, it is not known, and waiting goes on.

        What the session waits for does not matter: a commit waits for the disk as well as for the standby.
        """
        with suppress(DomainError):
            return not await self._is_executing(*session)
        return False
