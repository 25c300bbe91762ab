"""Which server a call goes to, and how often it is tried: one server, the present primary, or the shard of a key."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, TypeVar

from redis import exceptions

from durable_memory.adapters.redis.errors import (
    LOST,
    index_unavailable,
    is_answer,
    is_passing,
    is_silence,
    is_unanswered,
    not_answering,
    outcome_unknown,
    translated,
)
from durable_memory.adapters.redis.server import PAUSE_GROWTH, Client, Server
from durable_memory.adapters.redis.settings import RedisSettings
from durable_memory.adapters.redis.url import Address, RedisUrl
from durable_memory.domain.errors import DomainError

T = TypeVar("T")
Work = Callable[[Client], Awaitable[T]]


class Route(ABC):
    """The servers behind one URL, from `open` to `close`. Belongs to the event loop that opened it.

    `made` is told of each new connection, and whenever keys are looked for on another server than before.
    """

    moves: ClassVar[tuple[type[Exception], ...]] = ()
    """Answers after which another server may be the right one."""

    asks_role: ClassVar[bool] = False
    in_cluster: ClassVar[bool] = False

    def __init__(self, url: RedisUrl, settings: RedisSettings, made: Callable[[], None]) -> None:
        self.url: Final = url
        self.settings: Final = settings
        self._made = made
        self._left: set[Server] = set()

    @abstractmethod
    async def open(self) -> None:
        """Find the servers, judge them and load the scripts. After a failure only `close` may follow.

        Raises: DEPENDENCY_UNAVAILABLE, NOT_SERVING.
        """

    @abstractmethod
    async def close(self) -> None:
        """Idempotent."""

    @abstractmethod
    async def check(self) -> None:
        """Made also while servers are left alone. Raises: NOT_SERVING, DEPENDENCY_UNAVAILABLE."""

    @abstractmethod
    def server_of(self, key: str) -> Server:
        """Where the key is now. Raises: DEPENDENCY_UNAVAILABLE."""

    def failed(self, server: Server, error: Exception) -> Server | None:
        """An attempt at the server has ended so: with a word of the driver, or with a `DomainError` of a server that
        has said that it is unfit. Which one to ask in the next attempt, out of turn."""
        return None

    def call(self, key: str, work: Work[T], *, timeout_seconds: float, changes_state: bool) -> Awaitable[T]:
        """See `RedisConnection.call`. No coroutine of its own: recalls pay for each at every turn of the loop."""
        return self._attempts(
            lambda: self.server_of(key),
            lambda _, client: work(client),
            timeout_seconds=timeout_seconds,
            changes_state=changes_state,
        )

    async def judged(self, server: Server) -> Server:
        """The same one, fit to be used. Raises: NOT_SERVING, DEPENDENCY_UNAVAILABLE."""
        await self._attempts(lambda: server, lambda server, _: server.judge(), asks_whether_it_is_back=True)
        return server

    async def checked(self, server_now: Callable[[], Server]) -> None:
        """Raises: NOT_SERVING, DEPENDENCY_UNAVAILABLE."""
        await self._attempts(server_now, lambda server, _: server.check(), asks_whether_it_is_back=True)

    def new_server(self, address: Address) -> Server:
        url = self.url.of_server(address)
        return Server(
            address, url, self.settings, made=self._made, asks_role=self.asks_role, in_cluster=self.in_cluster
        )

    async def leave(self, *servers: Server) -> None:
        """Close servers that are used no more. One whose closing is cut off is closed with the route."""
        self._left.update(servers)
        for server in servers:
            await server.close()
            self._left.discard(server)

    async def _attempts(
        self,
        server_now: Callable[[], Server],
        work: Callable[[Server, Client], Awaitable[T]],
        *,
        timeout_seconds: float | None = None,
        changes_state: bool = False,
        asks_whether_it_is_back: bool = False,
    ) -> T:
        limit = self.settings.call_timeout_seconds if timeout_seconds is None else timeout_seconds
        loop, unanswered = asyncio.get_running_loop(), False
        pause, asked = self.settings.retry_pause_seconds, None
        patient_until = loop.time() + self.settings.acquire_timeout_seconds
        try:
            for attempt in range(1, self.settings.attempts + 1):
                server = server_now() if asked is None else asked
                client = server.client if asked is None else server.asking_client
                circuit = server.circuit
                if circuit.is_open and (attempt > 1 or not asks_whether_it_is_back):
                    raise not_answering()
                began, is_sent = loop.time(), asks_whether_it_is_back
                try:
                    if asks_whether_it_is_back:
                        async with circuit.attempt(limit):
                            result = await work(server, client)
                    else:
                        async with server.place(until=patient_until):
                            began, is_sent = loop.time(), True
                            async with circuit.attempt(limit):
                                if not server.is_judged:
                                    await _require_fit(server)
                                result = await work(server, client)
                except (exceptions.RedisError, *LOST) as error:
                    if is_sent and is_unanswered(error):
                        unanswered = True
                        if circuit.unanswered(began, silence=is_silence(error)):
                            server.leave_alone()
                    elif is_answer(error):
                        server.answered()
                    redirected = isinstance(error, exceptions.AskError)
                    asked = self.failed(server, error)
                    again = is_passing(error) or isinstance(error, self.moves)
                    if circuit.is_open or not again or attempt == self.settings.attempts:
                        raise translated(error) from error
                except DomainError as unfit:
                    server.answered()
                    self.failed(server, unfit)
                    raise
                else:
                    server.answered()
                    return result
                if redirected:
                    continue
                await asyncio.sleep(pause)
                pause *= PAUSE_GROWTH
        except DomainError as error:
            if changes_state and unanswered:
                # Whatever was met since: it says nothing about the attempt before it.
                raise outcome_unknown() from error
            raise
        raise AssertionError("the last attempt returns or raises")


async def _require_fit(server: Server) -> None:
    try:
        await server.judge()
    except DomainError as unfit:
        raise index_unavailable(unfit.message) from unfit


class OneServer(Route):
    """The server that the URL names, whatever becomes of it."""

    _server: Server | None = None

    async def open(self) -> None:
        (address,) = self.url.addresses
        self._server = self.new_server(address)
        await self.judged(self._server)

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()

    async def check(self) -> None:
        await self.checked(lambda: self.server_of(""))

    def server_of(self, key: str) -> Server:
        if self._server is None:
            raise AssertionError("an open route has a server")
        return self._server
