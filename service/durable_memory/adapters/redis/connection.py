"""The connection to the servers behind one URL, shared by index and leases: bounded, with a deadline on every call.

A server that keeps failing to answer is left alone, and every call of it refused at once, until it has answered a
question that a task of this connection asks it again and again.

Everything that goes through here may be repeated: reads, whole values, and scripts that are harmless to repeat.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, TypeVar

from redis import exceptions

from durable_memory.adapters.redis.cluster import ClusterRoute
from durable_memory.adapters.redis.route import OneServer, Route, Work
from durable_memory.adapters.redis.scripts import Script
from durable_memory.adapters.redis.sentinels import SentinelRoute
from durable_memory.adapters.redis.server import Client
from durable_memory.adapters.redis.settings import RedisSettings
from durable_memory.adapters.redis.url import RedisKind, RedisUrl
from durable_memory.domain.errors import not_serving

T = TypeVar("T")
Argument = str | bytes | int
Command = tuple[str, str, *tuple[Argument, ...]]
"""Its name, its key, and the rest."""

_ROUTES: Final[Mapping[RedisKind, type[Route]]] = {
    RedisKind.SERVER: OneServer,
    RedisKind.SENTINEL: SentinelRoute,
    RedisKind.CLUSTER: ClusterRoute,
}


class RedisConnection:
    """Belongs to the event loop that opened it, and may be opened again after `close`."""

    def __init__(self, url: RedisUrl, settings: RedisSettings | None = None) -> None:
        self._url = url
        self.settings: Final = settings or RedisSettings()
        self._route: Route | None = None
        self.connections = 0
        """How many were made to servers that keep the data; and one more whenever another server took over keys."""

    async def open(self) -> None:
        """Find the servers, judge them and load the scripts. Idempotent.

        Raises: DEPENDENCY_UNAVAILABLE, NOT_SERVING (version, policy, shards); then nothing is left open.
        """
        if self._route is not None:
            return
        self._route = self._new_route()
        try:
            await self._route.open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Idempotent."""
        route, self._route = self._route, None
        if route is not None:
            await route.close()

    async def check(self) -> None:
        """One round trip, or two to a server in cluster mode; made also while servers are left alone.

        Raises: NOT_SERVING (policy, version, shards), DEPENDENCY_UNAVAILABLE, also of a replica.
        """
        await self._require_open().check()

    def call(
        self, key: str, work: Work[T], *, timeout_seconds: float | None = None, changes_state: bool = False
    ) -> Awaitable[T]:
        """The result of `work` on the server of `key`, and of keys that share its hash tag. It may run several times.

        Raises: DEPENDENCY_UNAVAILABLE, at once while the server is left alone; OUTCOME_UNKNOWN instead if it
        `changes_state` and an attempt got no answer.
        """
        limit = self.settings.call_timeout_seconds if timeout_seconds is None else timeout_seconds
        return self._require_open().call(key, work, timeout_seconds=limit, changes_state=changes_state)

    async def run(
        self, script: Script, keys: Sequence[str], arguments: Sequence[Argument], *, changes_state: bool = False
    ) -> list[Any]:
        """The answer of a script. A server that has been restarted is given its text again."""

        async def work(client: Client) -> Any:
            try:
                return await client.evalsha(script.sha1, len(keys), *keys, *arguments)
            except exceptions.NoScriptError:
                return await client.eval(script.text, len(keys), *keys, *arguments)

        answer: list[Any] = await self.call(keys[0], work, changes_state=changes_state)
        return answer

    async def each(self, commands: Sequence[Command], *, timeout_seconds: float | None = None) -> list[Any]:
        """The answers of commands that only read, in their order and one round trip. Their keys share a hash tag.

        While its slot is being moved, one key may be here and the next one there: those are asked for one by one.
        """

        async def ask(client: Client) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            return _without_failures(await pipeline.execute(raise_on_error=False))

        answers = await self.call(commands[0][1], ask, timeout_seconds=timeout_seconds)
        for position, answer in enumerate(answers):
            if isinstance(answer, exceptions.AskError):
                answers[position] = await self._one(commands[position], timeout_seconds)
        return answers

    async def _one(self, command: Command, timeout_seconds: float | None) -> Any:
        async def ask(client: Client) -> Any:
            return await client.execute_command(*command)  # type: ignore[no-untyped-call]

        return await self.call(command[1], ask, timeout_seconds=timeout_seconds)

    def _new_route(self) -> Route:
        return _ROUTES[self._url.kind](self._url, self.settings, self._made)

    def _made(self) -> None:
        self.connections += 1

    def _require_open(self) -> Route:
        if self._route is None:
            raise not_serving("closed", "the index is closed")
        return self._route


def _without_failures(answers: list[Any]) -> list[Any]:
    """Raises: the first failure that is no word of another server."""
    for answer in answers:
        if isinstance(answer, Exception) and not isinstance(answer, exceptions.AskError):
            raise answer
    return answers
