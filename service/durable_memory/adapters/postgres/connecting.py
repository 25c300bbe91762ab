"""Connecting to the primary, whichever host that is: in bounded time, and without a storm when there is none.

All of a process's connections come from here. The host that was the primary last is asked first; when it fails, all
hosts are asked at once, so that one which is dead, or takes connections and says nothing, costs no more than a moment.
Once the database is known to be away nobody tries, and nobody waits, but one task that asks whether it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

import asyncpg
import structlog
from asyncpg.connect_utils import SessionAttribute

from durable_memory.adapters.postgres.errors import LOST, is_away, problem_of
from durable_memory.adapters.postgres.hosts import Host, parse_target
from durable_memory.adapters.postgres.primary import Primary
from durable_memory.adapters.postgres.settings import PostgresSettings
from durable_memory.adapters.postgres.sql import statement
from durable_memory.adapters.postgres.tls import tls_problem
from durable_memory.domain.errors import DomainError, dependency_unavailable, not_serving
from durable_memory.tasks import end

_log = structlog.stdlib.get_logger(__name__)

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_ROLE: Final = statement("server_role")
_OPENS_AT: Final = 2
_WEIGHT_OF_LOSS: Final = 1
_WEIGHT_OF_SILENCE: Final = 2
"""Silence has cost all of the time there was; a connection that is refused or cut has cost next to nothing."""
_FIRST_PAUSE_SECONDS: Final = 0.1
_LAST_PAUSE_SECONDS: Final = 0.5
_FAREWELL_SECONDS: Final = 1.0
_OPTION_REFUSED: Final = (
    asyncpg.UndefinedObjectError,
    asyncpg.InvalidParameterValueError,
    asyncpg.CantChangeRuntimeParamError,
)
_DEFAULT: Final = Host("", None)
"""The one that the driver connects to by default."""


class Connector:
    """One per process and database. It belongs to one event loop.

    `close` ends its tasks. Who is still connecting then starts none, and may be told NOT_SERVING, as is whoever
    connects later; `open` has it start over.
    """

    def __init__(self, dsn: str, settings: PostgresSettings, primary: Primary, jitter: Callable[[], float]) -> None:
        """`jitter` is a factor from 0.5 to 1 for each pause: it keeps processes from coming all at once.

        Raises: ValueError for a URL that cannot be used.
        """
        target = parse_target(dsn)
        self._dsn = target.dsn
        self._hosts = target.hosts or (_DEFAULT,)
        self._settings = settings
        self._primary = primary
        self._jitter = jitter
        self._known: Host | None = None
        self._weight = 0
        self._failed_at = 0.0
        self._finding: asyncio.Task[Host] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._surveying: asyncio.Task[None] | None = None
        self._reachable = asyncio.Event()
        self._reachable.set()
        self._closed = False

    @property
    def is_away(self) -> bool:
        """Whether the database is known to be away, and connecting is refused at once."""
        return not self._reachable.is_set()

    def require_reachable(self) -> None:
        """Raises: DEPENDENCY_UNAVAILABLE if the database is known to be away."""
        if self.is_away:
            raise dependency_unavailable("the database is away")

    def _require_open(self) -> None:
        if self._closed:
            raise _is_closed()

    async def wait_reachable(self) -> None:
        """Return when it is not known to be away."""
        await self._reachable.wait()

    def open(self) -> None:
        """It is used from now on, whether it was closed before or not."""
        self._closed = False

    def start(self) -> None:
        """Look now and then whether another host has been promoted while the one in use still answers."""
        if len(self._hosts) > 1 and self._surveying is None:
            self._surveying = asyncio.ensure_future(self._survey())

    async def close(self) -> None:
        self._closed = True
        tasks = [task for task in (self._watching, self._finding, self._surveying) if task is not None]
        self._watching = self._finding = self._surveying = None
        await end(tasks)
        self._weight = 0
        self._reachable.set()

    def doubt(self) -> None:
        """A connection met silence: ask all hosts before the next is made."""
        self._known = None

    async def connect(self, *, look: str = _ROLE, **options: Any) -> Session:
        """A new connection to the primary, on which `look` has been executed: its row says what server that is.

        `options` are the driver's. Takes `connect_timeout_seconds` at most.

        Raises: what the driver does; DEPENDENCY_UNAVAILABLE if no host is the primary, all are known to be away, or an
        option of the URL is refused; NOT_SERVING after `close`.
        """
        self._require_open()
        self.require_reachable()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._settings.connect_timeout_seconds):
                connection = await self._connect(look, options)
        except (DomainError, asyncpg.PostgresError, *LOST) as error:
            if is_away(error):
                self._unanswered(began, error)
            raise
        self._weight = 0
        return connection

    async def _connect(self, look: str, options: Mapping[str, Any]) -> Session:
        if len(self._hosts) == 1:
            return await self._open(self._hosts[0], look, options)
        known = self._known
        if known is not None:
            try:
                async with asyncio.timeout(self._settings.host_patience_seconds):
                    return await self._open(known, look, options)
            except (DomainError, asyncpg.PostgresError, *LOST) as error:
                if not is_away(error):
                    raise
                if self._known == known:
                    self._known = None
        return await self._open(self._known or await self._find(), look, options)

    async def _open(self, host: Host, look: str, options: Mapping[str, Any]) -> Session:
        async def check(connection: Session) -> None:
            server = await connection.fetchrow(look)
            assert server is not None
            self._primary.check(server)
            if "history_id" in server:
                self._primary.history_id = server["history_id"]

        return await self._talk(host, check, options)

    async def _talk(
        self, host: Host, talk: Callable[[Session], Awaitable[None]], options: Mapping[str, Any]
    ) -> Session:
        try:
            connection: Session = await asyncpg.connect(
                self._dsn,
                host=host.name or None,
                port=host.port,
                timeout=self._settings.connect_timeout_seconds,
                # Whatever the URL says: what the server is, it is asked. The environment may name several, though.
                target_session_attrs=SessionAttribute.any if host.name else SessionAttribute.primary,
                **options,
            )
        except UnicodeError as error:  # of a name from the environment: those of a URL have been looked at
            raise OSError("a host's name cannot be looked up") from error
        except _OPTION_REFUSED as error:  # what the driver does not know it sends to the server as a setting
            raise dependency_unavailable(
                "the database refuses an option of the store's URL: it has no such setting, or not with that value"
            ) from error
        try:
            await talk(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    # Which host is the primary

    async def _find(self) -> Host:
        """The primary, by asking all hosts. Those who come while they are being asked wait for the same answer."""
        self._require_open()
        finding = self._finding
        if finding is None:
            finding = self._finding = asyncio.ensure_future(self._ask_all())
            finding.add_done_callback(self._found)
        await asyncio.wait({finding})
        if finding.cancelled():  # by `close`, and not by this caller
            raise _is_closed()
        return finding.result()

    def _found(self, finding: asyncio.Task[Host]) -> None:
        if self._finding is finding:
            self._finding = None
        if not finding.cancelled():
            finding.exception()  # seen, though all who waited may have gone

    async def _ask_all(self) -> Host:
        """The host that is the primary: of several that take writes the one of the latest promotion.

        Once one has answered, the others have `other_hosts_seconds` to claim a later one.

        Raises: DEPENDENCY_UNAVAILABLE or what the driver does, if there is none.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.connect_timeout_seconds
        asked = {asyncio.ensure_future(self._ask(host)): host for host in self._hosts}
        claims: dict[Host, int] = {}
        errors: dict[Host, BaseException] = {}
        pending: set[asyncio.Task[int | None]] = set(asked)
        try:
            while pending and (left := until - loop.time()) > 0:
                done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if (error := task.exception()) is not None:
                        errors[asked[task]] = error
                    elif (timeline := task.result()) is not None:
                        claims[asked[task]] = timeline
                        until = min(until, loop.time() + self._settings.other_hosts_seconds)
        finally:
            await end(pending)
        errors.update((asked[task], TimeoutError()) for task in pending)
        best = max((host for host in self._hosts if host in claims), key=lambda host: claims[host], default=None)
        if best is None:
            raise _worst(errors) or dependency_unavailable("no host is the primary")
        self._primary.saw(claims[best])
        self._known = best
        return best

    async def _ask(self, host: Host) -> int | None:
        """The timeline of a host that takes writes; None of a standby."""
        timeline: int | None = None

        async def ask(connection: Session) -> None:
            nonlocal timeline
            server = await connection.fetchrow(_ROLE)
            if server is not None and server["timeline"] is not None:
                timeline = int(server["timeline"], 16)

        connection = await self._talk(host, ask, {"command_timeout": self._settings.connect_timeout_seconds})
        with suppress(asyncpg.PostgresError, *LOST):
            await connection.close(timeout=_FAREWELL_SECONDS)
        return timeline

    async def _survey(self) -> None:
        while True:
            await asyncio.sleep(self._settings.survey_seconds * self._jitter())
            await self.wait_reachable()
            try:
                await self._ask_all()
            except (DomainError, asyncpg.PostgresError, *LOST):
                pass  # a later timeline is told to `Primary`; that there is none, to those who connect
            except Exception as error:  # noqa: BLE001 - on record, whatever it is: nobody else would look again
                _log.error("survey_failed", error=type(error).__name__)

    # When there is none

    def _unanswered(self, began: float, error: BaseException) -> None:
        """An attempt that began then has failed. Those that ran side by side count as one, for they met the same."""
        if self._closed or self.is_away or began < self._failed_at:
            return
        self._failed_at = asyncio.get_running_loop().time()
        several = len(self._hosts) > 1
        # With several hosts it was two attempts: the one that was known, and then all of them.
        self._weight += _WEIGHT_OF_SILENCE if several or isinstance(error, TimeoutError) else _WEIGHT_OF_LOSS
        if self._weight >= _OPENS_AT:
            self._reachable.clear()
            reasons: set[str] = set()
            _record(error, reasons)
            self._watching = asyncio.ensure_future(self._watch(reasons))

    async def _watch(self, reasons: set[str]) -> None:
        """Ask until a host is the primary again. A question without an answer does not keep the next from being asked.

        So what comes back is found within `_LAST_PAUSE_SECONDS` and the time of a connect, and no host sees more than
        five attempts of this process in the first second, and four in each after it, however many callers there are.
        `reasons` are those on record for its being away; another one that is met meanwhile is put there too.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        pause = _FIRST_PAUSE_SECONDS
        asking: set[asyncio.Task[Host]] = set()
        back = asyncio.Event()

        def answered(task: asyncio.Task[Host]) -> None:
            asking.discard(task)
            if task.cancelled():
                return
            if (error := task.exception()) is None:
                back.set()
            else:
                _record(error, reasons)

        try:
            while not back.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause * self._jitter()):
                        await back.wait()
                        break
                pause = min(pause * 2, _LAST_PAUSE_SECONDS)
                task = asyncio.ensure_future(self._ask_all())
                asking.add(task)
                task.add_done_callback(answered)
        finally:
            await end(asking)
        self._watching = None
        self._weight = 0
        self._reachable.set()
        _log.info("database_back", seconds=round(loop.time() - began, 3))


def _record(error: BaseException, reasons: set[str]) -> None:
    problem = problem_of(error)
    if problem not in reasons:
        reasons.add(problem)
        _log.warning("database_away", cause=type(error).__name__, problem=problem)


def _is_closed() -> DomainError:
    return not_serving("closed", "the store is closed")


def _worst(errors: Mapping[Host, BaseException]) -> BaseException | None:
    """What is raised if no host will do: a fault that waiting does not mend, else what tells most."""

    def rank(error: BaseException) -> tuple[bool, bool, bool]:
        return is_away(error), tls_problem(error) is None, isinstance(error, OSError)

    return min(errors.values(), key=rank, default=None)
