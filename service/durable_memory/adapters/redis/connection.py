"""The connection to one server, shared by index and leases: bounded, with a deadline on every call.

A server that keeps failing to answer is left alone, and every call refused at once, until it has answered a question
that a task of this connection asks it again and again.

The driver's own retries are off, because it cannot know what may be repeated. Everything that goes through here may:
reads, whole values, and scripts that are harmless to repeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import structlog
from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from durable_memory.adapters.redis import scripts
from durable_memory.adapters.redis.circuit import Circuit
from durable_memory.adapters.redis.errors import (
    LOST,
    index_unavailable,
    is_passing,
    is_silence,
    is_unanswered,
    not_answering,
    outcome_unknown,
    translated,
)
from durable_memory.adapters.redis.scripts import Script
from durable_memory.adapters.redis.settings import RedisSettings
from durable_memory.adapters.redis.url import RedisUrl
from durable_memory.domain.errors import not_serving

OLDEST_VERSION: Final = (6, 2)

_POLICY: Final = "noeviction"
_PAUSE_GROWTH: Final = 4

T = TypeVar("T")
Client = Redis
Argument = str | bytes | int

_log = structlog.stdlib.get_logger(__name__)


class RedisConnection:
    """Belongs to the event loop that opened it, and may be opened again after `close`."""

    def __init__(self, url: RedisUrl, settings: RedisSettings | None = None) -> None:
        self._url = url
        self.settings: Final = settings or RedisSettings()
        self._client: Redis | None = None
        self._circuit = Circuit()
        self._asking: asyncio.Task[None] | None = None
        self.connections = 0
        """How many were made."""

    async def open(self) -> None:
        """Connect, judge the server and load the scripts. Idempotent.

        Raises: DEPENDENCY_UNAVAILABLE, NOT_SERVING (version, policy); then nothing is left open.
        """
        if self._client is not None:
            return
        self._client = self._new_client()
        try:
            _require_version(await self.call(lambda client: client.info("server")))
            await self.check()
            for script in scripts.ALL:
                await self._load(script)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Idempotent."""
        client, self._client = self._client, None
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()
            await asyncio.wait({asking})
        self._circuit = Circuit()
        if client is not None:
            await client.aclose()

    async def check(self) -> None:
        """One round trip, or two to a cluster; made also while the server is left alone.

        Raises: NOT_SERVING (policy, shards), DEPENDENCY_UNAVAILABLE, also of a replica.
        """

        async def ask(client: Client) -> list[dict[str, Any]]:
            pipeline = client.pipeline(transaction=False)
            pipeline.info("memory")
            pipeline.info("replication")
            pipeline.info("cluster")
            return await pipeline.execute()

        memory, replication, cluster = await self.call(ask, asks_whether_it_is_back=True)
        policy = str(memory.get("maxmemory_policy", ""))
        if policy != _POLICY:
            # Any other one takes published segments away when memory runs short, one by one and without a word.
            raise not_serving("index", f"the index server's maxmemory-policy is not {_POLICY}", policy=policy)
        if replication.get("role") != "master":
            raise index_unavailable("the index server is a replica")
        if int(cluster.get("cluster_enabled", 0)):
            await self._require_one_shard()

    async def _require_one_shard(self) -> None:
        """All calls go to one server: one of several that share the keys would refuse those of the others."""

        async def ask(client: Client) -> dict[str, str]:
            answer: dict[str, str] = await client.execute_command("CLUSTER INFO")  # type: ignore[no-untyped-call]
            return answer

        shards = int((await self.call(ask)).get("cluster_size", 1))
        if shards > 1:
            raise not_serving("index", f"the index server is one of {shards} shards of a cluster", shards=str(shards))

    async def call(
        self,
        work: Callable[[Client], Awaitable[T]],
        *,
        timeout_seconds: float | None = None,
        changes_state: bool = False,
        asks_whether_it_is_back: bool = False,
    ) -> T:
        """The result of `work`, which may run several times; of what `asks_whether_it_is_back` once, where it is not.

        Raises: DEPENDENCY_UNAVAILABLE, at once while the server is left alone; OUTCOME_UNKNOWN instead if it
        `changes_state` and an attempt got no answer.
        """
        client = self._require_open()
        circuit, loop = self._circuit, asyncio.get_running_loop()
        if circuit.is_open and not asks_whether_it_is_back:
            raise not_answering()
        limit = self.settings.call_timeout_seconds if timeout_seconds is None else timeout_seconds
        unanswered = False
        pause = self.settings.retry_pause_seconds
        for attempt in range(1, self.settings.attempts + 1):
            began = loop.time()
            try:
                async with circuit.attempt(limit):
                    result = await work(client)
            except (exceptions.RedisError, *LOST) as error:
                if is_unanswered(error):
                    unanswered = True
                    if circuit.unanswered(began, silence=is_silence(error)):
                        self._leave_alone(client)
                else:
                    self._answered()
                if circuit.is_open or not is_passing(error) or attempt == self.settings.attempts:
                    raise outcome_unknown() if changes_state and unanswered else translated(error) from error
            else:
                self._answered()
                return result
            await asyncio.sleep(pause)
            pause *= _PAUSE_GROWTH
            if circuit.is_open:
                raise outcome_unknown() if changes_state and unanswered else not_answering()
        raise AssertionError("the last attempt returns or raises")

    async def run(
        self, script: Script, keys: Sequence[str], arguments: Sequence[Argument], *, changes_state: bool = False
    ) -> list[Any]:
        """The answer of a script. A server that has been restarted is given its text again."""

        async def work(client: Client) -> Any:
            try:
                return await client.evalsha(script.sha1, len(keys), *keys, *arguments)
            except exceptions.NoScriptError:
                return await client.eval(script.text, len(keys), *keys, *arguments)

        answer: list[Any] = await self.call(work, changes_state=changes_state)
        return answer

    async def _load(self, script: Script) -> None:
        async def work(client: Client) -> Any:
            return await client.script_load(script.text)

        await self.call(work)

    def _answered(self) -> None:
        if self._circuit.answered():
            _log.info("index_answers_again")

    def _leave_alone(self, client: Redis) -> None:
        _log.warning("index_left_alone", problem="it has not answered several times in a row")
        self._asking = asyncio.create_task(self._ask_until_it_answers(client), name="is the index server back")

    async def _ask_until_it_answers(self, client: Redis) -> None:
        """Nobody's call pays for finding out. Any answer will do: what it is worth is for the calls that come."""
        pause = self.settings.retry_pause_seconds
        while self._circuit.is_open:
            try:
                async with asyncio.timeout(self.settings.call_timeout_seconds):
                    await client.ping()
            except (exceptions.RedisError, *LOST) as error:
                if not is_unanswered(error):
                    self._answered()
            else:
                self._answered()
            await asyncio.sleep(pause)
            pause = min(pause * _PAUSE_GROWTH, self.settings.longest_pause_seconds)

    def _new_client(self) -> Redis:
        settings = self.settings
        pool = BlockingConnectionPool.from_url(
            self._url.text,
            max_connections=settings.max_connections,
            timeout=settings.acquire_timeout_seconds,
            socket_connect_timeout=settings.connect_timeout_seconds,
            # Each attempt has a deadline of its own; this one is for a connection nobody waits for.
            socket_timeout=settings.transfer_timeout_seconds,
            retry=Retry(NoBackoff(), 0),
            redis_connect_func=self._connected,
            protocol=2,
            client_name="durable-memory",
        )
        return Redis.from_pool(pool)

    async def _connected(self, connection: AbstractConnection) -> None:
        self.connections += 1
        await connection.on_connect()

    def _require_open(self) -> Redis:
        if self._client is None:
            raise not_serving("closed", "the index is closed")
        return self._client


def _require_version(server: dict[str, Any]) -> None:
    text = str(server.get("redis_version", ""))
    version = tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())
    if version < OLDEST_VERSION:
        wanted = ".".join(map(str, OLDEST_VERSION))
        raise not_serving("index", f"the index server's version {text} is older than {wanted}", version=text)
