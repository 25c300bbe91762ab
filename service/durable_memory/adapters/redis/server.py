"""One server that keeps the data: a bounded pool of connections, and the circuit that leaves it alone.

The driver's own retries are off, because it cannot know what may be repeated.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import structlog
from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from durable_memory.adapters.redis import scripts
from durable_memory.adapters.redis.circuit import Circuit
from durable_memory.adapters.redis.errors import LOST, index_unavailable, is_answer
from durable_memory.adapters.redis.settings import RedisSettings
from durable_memory.adapters.redis.url import Address
from durable_memory.domain.errors import not_serving
from durable_memory.tasks import end

OLDEST_VERSION: Final = (6, 2)
PAUSE_GROWTH: Final = 4

_POLICY: Final = "noeviction"
_ROLE_LINE: Final = b"role:master"

_LOOKING: Final = 4
"""Connections for those who look at the server: whether it is fit, well, and back again, and at its map."""

Client = Redis


class AskingClient(Redis):
    """Says before each command that it was sent here for a slot that is just being moved. Not for pipelines."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        pipeline = self.pipeline(transaction=False)
        pipeline.execute_command("ASKING")
        pipeline.execute_command(*args, **options)
        _, answer = await pipeline.execute()
        return answer


class _SecuredConnection(SSLConnection):
    """Reads the files of TLS each time it connects, and trusts the authorities in the URL's file and no others.

    The driver reads them once for each of its connections, which outlive what is on the wire, and adds the file's
    authorities to the machine's.
    """

    def _connection_arguments(self) -> Mapping[str, Any]:
        wanted = self.ssl_context
        context = ssl.create_default_context(cafile=wanted.ca_certs)
        context.check_hostname = wanted.check_hostname
        context.verify_mode = wanted.cert_reqs
        if wanted.certfile:
            context.load_cert_chain(wanted.certfile, wanted.keyfile)
        wanted.context = context
        return super()._connection_arguments()


_log = structlog.stdlib.get_logger(__name__)


def new_client(
    url: str,
    settings: RedisSettings,
    *,
    max_connections: int | None = None,
    connected: Callable[[AbstractConnection], Any] | None = None,
) -> Client:
    """A client of one server over a bounded pool, without retries; `connected` has to greet each new connection."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=max_connections or settings.max_connections,
        timeout=settings.call_timeout_seconds,
        socket_connect_timeout=settings.connect_timeout_seconds,
        # Each attempt has a deadline of its own; this one is for a connection nobody waits for.
        socket_timeout=settings.transfer_timeout_seconds,
        retry=Retry(NoBackoff(), 0),
        redis_connect_func=connected,
        protocol=2,
        client_name="durable-memory",
    )
    if pool.connection_class is SSLConnection:
        pool.connection_class = _SecuredConnection
    return Redis.from_pool(pool)


class Server:
    """Belongs to the event loop that it is used on.

    Whoever looks at it finds a connection also while transfers have all of the pool, and so finds out whether it is
    they or the server that calls wait for.

    With `asks_role`, each new connection is refused unless its server is a primary: one that was demoted cuts all
    connections, and the driver makes new ones without a word to anybody. One that is not `in_cluster` with others has
    to have all keys.
    """

    def __init__(
        self,
        address: Address,
        url: str,
        settings: RedisSettings,
        *,
        made: Callable[[], None],
        asks_role: bool = False,
        in_cluster: bool = False,
    ) -> None:
        self.address: Final = address
        self.circuit: Final = Circuit()
        self.is_judged = False
        self._settings = settings
        self._made = made
        self._asks_role = asks_role
        self._in_cluster = in_cluster
        self._asking: asyncio.Task[None] | None = None
        self._places = asyncio.Semaphore(settings.max_connections)
        self._judging = asyncio.Lock()
        self.client: Final = new_client(url, settings, connected=self._connected)
        self.asking_client: Final = AskingClient(connection_pool=self.client.connection_pool)
        self.looking_client: Final = new_client(url, settings, max_connections=_LOOKING, connected=self._connected)

    @asynccontextmanager
    async def place(self, until: float) -> AsyncIterator[None]:
        """One of the connections, for one command at a time. Whoever came first has the first that is free.

        Raises: MaxConnectionsError if none is until then, by the loop's clock; TimeoutError as `Circuit.attempt`.
        """
        try:
            async with self.circuit.attempt(until - asyncio.get_running_loop().time()):
                await self._places.acquire()
        except TimeoutError:
            if self.circuit.is_open or self.circuit.is_retired:
                raise
            raise exceptions.MaxConnectionsError("all connections are in use") from None
        try:
            yield
        finally:
            self._places.release()

    async def judge(self) -> None:
        """Find out whether it may be used, and give it the scripts; once, for all who want to know.

        One round trip, or two to a server that is alone in cluster mode.

        Raises: NOT_SERVING (version, policy, shards), DEPENDENCY_UNAVAILABLE of a replica, what the driver raises.
        """
        async with self._judging:
            if self.is_judged:
                return
            pipeline = self.looking_client.pipeline(transaction=False)
            _ask_what_it_is(pipeline)
            for script in scripts.ALL:
                pipeline.script_load(script.text)
            await self._require_fit(await pipeline.execute())
            self.is_judged = True

    async def check(self) -> None:
        """The same without the scripts."""
        pipeline = self.looking_client.pipeline(transaction=False)
        _ask_what_it_is(pipeline)
        await self._require_fit(await pipeline.execute())

    async def close(self) -> None:
        """End what is under way, and every connection. Idempotent."""
        asking, self._asking = self._asking, None
        if asking is not None:
            await end([asking])
        await self.circuit.retire()
        for client in (self.client, self.looking_client):
            with suppress(*LOST):  # of a connection that cannot even be closed nothing is left to close
                await client.aclose()

    def answered(self) -> None:
        """It has answered, whatever it said."""
        if self.circuit.answered():
            _log.info("index_answers_again", server=str(self.address))

    def leave_alone(self) -> None:
        """The circuit has opened: ask whether it is back, so that nobody's call pays for finding out."""
        _log.warning("index_left_alone", server=str(self.address), problem="it has not answered several times in a row")
        if self._asking is None or self._asking.done():  # else it has opened again while that task paused
            self._asking = asyncio.create_task(self._ask_until_it_answers(), name="is the index server back")

    async def _ask_until_it_answers(self) -> None:
        """Any answer will do: what it is worth is for the calls that come."""
        pause = self._settings.retry_pause_seconds
        while self.circuit.is_open:
            try:
                async with asyncio.timeout(self._settings.call_timeout_seconds):
                    await self.looking_client.ping()
            except (exceptions.RedisError, *LOST) as error:
                if is_answer(error):
                    self.answered()
            else:
                self.answered()
            await asyncio.sleep(pause)
            pause = min(pause * PAUSE_GROWTH, self._settings.longest_pause_seconds)

    async def _require_fit(self, answers: list[Any]) -> None:
        server, memory, replication, cluster = answers[:4]
        _require_version(server)
        policy = str(memory.get("maxmemory_policy", ""))
        if policy != _POLICY:
            # Any other one takes published segments away when memory runs short, one by one and without a word.
            raise not_serving("index", f"the index server's maxmemory-policy is not {_POLICY}", policy=policy)
        if replication.get("role") != "master":
            raise index_unavailable("the index server is a replica")
        if not self._in_cluster and int(cluster.get("cluster_enabled", 0)):
            await _require_one_shard(self.looking_client)

    async def _connected(self, connection: AbstractConnection) -> None:
        self._made()
        await connection.on_connect()
        if self._asks_role:
            await connection.send_command("INFO", "replication")
            if _ROLE_LINE not in bytes(await connection.read_response()).splitlines():
                raise exceptions.ReadOnlyError("it is a replica")


async def _require_one_shard(client: Client) -> None:
    """All calls go to one server: one of several that share the keys would refuse those of the others."""
    answer: dict[str, str] = await client.execute_command("CLUSTER INFO")  # type: ignore[no-untyped-call]
    shards = int(answer.get("cluster_size", 1))
    if shards > 1:
        raise not_serving(
            "index",
            f"the index server is one of {shards} shards of a cluster: its URL begins with redis+cluster://",
            shards=str(shards),
        )


def _ask_what_it_is(pipeline: Any) -> None:
    for section in ("server", "memory", "replication", "cluster"):
        pipeline.info(section)


def _require_version(server: dict[str, Any]) -> None:
    text = str(server.get("redis_version", ""))
    version = tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())
    if version < OLDEST_VERSION:
        wanted = ".".join(map(str, OLDEST_VERSION))
        raise not_serving("index", f"the index server's version {text} is older than {wanted}", version=text)
