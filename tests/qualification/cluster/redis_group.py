"""A Redis primary with two replicas behind proxies, and three sentinels that promote one when it is gone."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast

import redis
import redis.asyncio
from redis.exceptions import RedisError

from tests.processes.polling import wait_until_async
from tests.processes.proxy import TcpProxy
from tests.processes.redis import RedisProcess, RespProcess
from tests.processes.redis_binaries import system_redis
from tests.processes.sentinel import SentinelProcess, Watch
from tests.qualification.cluster.to_the_end import in_thread_to_the_end

MASTER = "durable-memory"

REPLICAS_WAIT_SECONDS = 1_000
"""For a primary that says nothing. A promotion that is to lose something takes as long as it takes to lose it, and a
replica that connects anew meanwhile would get it."""

_CALL_SECONDS = 5.0
_LOOK_SECONDS = 0.2


class RedisNode(RedisProcess):
    """One server of the group. It stays the same whatever its role is.

    The others, the sentinels and the service know it by the port of its `proxy`.
    """

    def __init__(self, name: str) -> None:
        super().__init__(system_redis(), durable=True, keeps_settings=True)
        self.name = name
        self.proxy = TcpProxy(self.port)

    def prepare(self, primary: RedisNode | None) -> None:
        """Before the first start: announce the proxy, which is open, and be the replica of another one."""
        self._settings |= {
            "replica-announce-ip": "127.0.0.1",
            "replica-announce-port": str(self.proxy.port),
            "repl-timeout": str(REPLICAS_WAIT_SECONDS),
        }
        if primary is not None:
            self.keep_setting("replicaof", f"127.0.0.1 {primary.proxy.port}")

    def changes(self) -> int:
        """How many changes of its data there were since it was started: it never saves, which would count anew."""
        with self.client() as client:
            return int(client.info("persistence")["rdb_changes_since_last_save"])


class RedisGroup:
    """Three servers that keep what they acknowledge on their own disks, three sentinels, and what may happen to them.

    Open it as an asynchronous context manager: its proxies live on the event loop. A write is acknowledged before the
    replicas have it, as is usual with Redis. Nothing here is for several tasks at a time.
    """

    def __init__(self) -> None:
        self.nodes = tuple(RedisNode(f"redis-{number}") for number in (1, 2, 3))
        self.sentinels: Sequence[SentinelProcess] = ()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for node in self.nodes:
                stack.push_async_callback(in_thread_to_the_end, node.close)
                await stack.enter_async_context(node.proxy)
            first, *others = self.nodes
            first.prepare(None)
            for node in others:
                node.prepare(first)
            watch = Watch(
                name=MASTER, primary_port=first.proxy.port, replica_ports=[node.proxy.port for node in others]
            )
            self.sentinels = [SentinelProcess(system_redis(), watch, secrets.token_hex(20)) for _ in range(3)]
            for sentinel in self.sentinels:
                stack.push_async_callback(in_thread_to_the_end, sentinel.close)
                sentinel.introduce(self.sentinels)
            await in_thread_to_the_end(_start, [*self.nodes, *self.sentinels])
            await self.wait_settled()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """Of the sentinels, for the service. It is the same for the life of the group."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{sentinel.port}' for sentinel in self.sentinels)}/{MASTER}"

    @property
    def primary(self) -> RedisNode:
        """What the sentinels say now: the newest configuration that any of them has. Raises: RuntimeError.

        They are asked, and may take their time: on an event loop, `find_primary`.
        """
        views = [view for sentinel in self.sentinels if (view := _view(sentinel)) is not None]
        if not views:
            raise RuntimeError("no sentinel answers")
        return self._node(max(views).port)

    async def find_primary(self) -> RedisNode:
        """The same beside the event loop, which carries the lines that the sentinels may be asking by."""
        return await asyncio.to_thread(lambda: self.primary)

    @property
    def replicas(self) -> Sequence[RedisNode]:
        """All but the primary, whether they run or not."""
        primary = self.primary
        return [node for node in self.nodes if node is not primary]

    def client(self) -> redis.asyncio.Redis:
        """A client of the primary at the time when it connects, past its proxy.

        Close it: `async with group.client() as client`.
        """
        pool = redis.asyncio.ConnectionPool(
            connection_class=_ToPrimary, find_primary=self.find_primary, socket_timeout=_CALL_SECONDS, protocol=2
        )
        return redis.asyncio.Redis.from_pool(pool)

    async def problems(self) -> list[str]:
        """What keeps the group from being whole: one primary, two replicas in step, sentinels that all agree."""
        return await asyncio.to_thread(self._problems)

    async def wait_settled(self, timeout: float = 180.0) -> None:
        """Wait until the group is whole; `timeout` is in seconds. All nodes run, or are started by somebody.

        The sentinels need about 20 s to make a replica of a killed primary that was started again.
        """
        seen: list[str] = []

        async def whole() -> bool:
            nonlocal seen
            seen = await self.problems()
            return not seen

        await wait_until_async(whole, timeout, what=lambda: f"the group is whole: {seen}", interval=_LOOK_SECONDS)

    async def wait_promoted(self, *, away_from: RedisNode, timeout: float = 180.0) -> RedisNode:
        """Wait until the sentinels name another node than this one, which takes writes; return that."""

        def promoted() -> RedisNode | None:
            primary = self.primary
            return primary if primary is not away_from and _role(primary).get("role") == "master" else None

        async def look() -> RedisNode | None:
            return await asyncio.to_thread(promoted)

        node = await wait_until_async(
            look, timeout, what=f"another primary than {away_from.name}", interval=_LOOK_SECONDS
        )
        assert node is not None
        return node

    async def rejoin(self, node: RedisNode) -> None:
        """Start a killed node as a replica of the present primary, as an operator's start script does.

        Plainly started, a former primary is one until the sentinels find it. Return when the group is whole.
        """
        primary = await self.find_primary()
        node.keep_setting("replicaof", f"127.0.0.1 {primary.proxy.port}")
        await in_thread_to_the_end(node.start)
        await self.wait_settled()

    async def promote_losing_writes(self, during: Callable[[], Awaitable[None]]) -> RedisNode:
        """A promotion that loses what the primary acknowledges while `during` runs.

        The replicas get nothing meanwhile, and nobody is told. Then the primary is killed. Return it, not running,
        when the sentinels have promoted a replica: start it, and it loses those writes too. Raises what `during` does;
        then nothing is lost.
        """
        primary = await self.find_primary()
        primary.proxy.swallow(await asyncio.to_thread(_ports_of_replicas, primary))
        try:
            await during()
        except BaseException:
            primary.proxy.mend()
            raise
        await in_thread_to_the_end(primary.kill9)
        await self.wait_promoted(away_from=primary)
        return primary

    async def restart_empty_everywhere(self) -> None:
        """All nodes lose all data at once, faster than the sentinels notice; return when the group is whole."""
        await in_thread_to_the_end(_restart_empty, await self._primary_first())
        await self.wait_settled()

    async def outage(self, *, killed: bool = False) -> None:
        """No node answers, not even to the sentinels, until `end_outage`: a black hole, or all of them killed."""
        if killed:
            await in_thread_to_the_end(_kill9, self.nodes)
        else:
            for node in self.nodes:
                node.proxy.go_silent()

    async def end_outage(self) -> None:
        """Let all nodes answer again, with what they have on their disks; return when the group is whole."""
        nodes = await self._primary_first()
        for node in self.nodes:
            node.proxy.mend()
        stopped = [node for node in nodes if not node.is_running]
        await in_thread_to_the_end(_start, stopped)
        await self.wait_settled()

    async def _primary_first(self) -> Sequence[RedisNode]:
        primary = await self.find_primary()
        return [primary, *(node for node in self.nodes if node is not primary)]

    def _node(self, proxy_port: int) -> RedisNode:
        return next(node for node in self.nodes if node.proxy.port == proxy_port)

    def _problems(self) -> list[str]:
        problems = [problem for sentinel in self.sentinels for problem in _disagreements(sentinel)]
        views = [_view(sentinel) for sentinel in self.sentinels]
        ports = {view.port for view in views if view is not None}
        if len(ports) != 1:
            return [*problems, f"the sentinels name {len(ports)} primaries"]
        primary = self._node(ports.pop())
        head = _role(primary)
        if head.get("role") != "master" or head.get("connected_slaves") != len(self.nodes) - 1:
            problems.append(f"{primary.name} is no primary with all replicas")
        for node in self.nodes:
            if node is not primary:
                problems += _lag(node, primary, head)
        return problems


class _ToPrimary(redis.asyncio.Connection):
    """Finds out where the primary is when it is to connect, and not on the event loop."""

    def __init__(self, *, find_primary: Callable[[], Awaitable[RedisNode]], **options: Any) -> None:
        super().__init__(**options)
        self._find_primary = find_primary

    async def connect(self) -> None:
        if not self.is_connected:
            self.port = (await self._find_primary()).port
        await super().connect()


@dataclass(frozen=True, slots=True, order=True)
class _View:
    """What a sentinel says of the primary; a later view is greater."""

    epoch: int
    port: int


def _view(sentinel: SentinelProcess) -> _View | None:
    """None if it does not answer."""
    if not sentinel.is_running:
        return None
    try:
        with sentinel.client() as client:
            # The driver's types are those of all its answers at once.
            epoch = int(cast("dict[str, Any]", client.sentinel_master(MASTER))["config-epoch"])
            # Not the port of that answer: who leads a failover has the new epoch there, and the old port to its end.
            _, port = cast("tuple[str, int]", client.sentinel_get_master_addr_by_name(MASTER))
    except RedisError:
        return None
    return _View(epoch, port)


def _disagreements(sentinel: SentinelProcess) -> list[str]:
    name = f"sentinel {sentinel.port}"
    if not sentinel.is_running:
        return [f"{name} does not run"]
    try:
        with sentinel.client() as client:
            replicas = client.sentinel_slaves(MASTER)
            sentinels = cast("list[dict[str, Any]]", client.sentinel_sentinels(MASTER))
            primary = cast("dict[str, Any]", client.sentinel_master(MASTER))
    except RedisError as error:
        return [f"{name} does not answer: {type(error).__name__}"]
    expected = (([primary], ["master"]), (replicas, ["slave"] * 2), (sentinels, ["sentinel"] * 2))
    return [
        f"{name} sees {flags} instead of {wanted}"
        for states, wanted in expected
        if (flags := [state["flags"] for state in states]) != wanted
    ]


def _role(node: RedisNode) -> dict[str, Any]:
    """What a node says of its replication, past its proxy; nothing if it does not answer."""
    if not node.is_running:
        return {}
    try:
        with node.client() as client:
            info: dict[str, Any] = client.info("replication")
            return info
    except RedisError:
        return {}


def _lag(node: RedisNode, primary: RedisNode, head: dict[str, Any]) -> list[str]:
    role = _role(node)
    if role.get("role") != "slave" or role.get("master_port") != primary.proxy.port:
        return [f"{node.name} is no replica of {primary.name}"]
    if role.get("master_link_status") != "up" or role["slave_repl_offset"] < head.get("master_repl_offset", 0):
        return [f"{node.name} is not in step with {primary.name}"]
    return []


def _ports_of_replicas(primary: RedisNode) -> set[int]:
    with primary.client() as client:
        return {int(replica["addr"].rpartition(":")[2]) for replica in client.client_list(_type="replica")}


def _start(processes: Sequence[RespProcess]) -> None:
    for process in processes:
        process.start()


def _kill9(processes: Sequence[RespProcess]) -> None:
    for process in processes:
        if process.is_running:
            process.kill9()


def _restart_empty(nodes: Sequence[RedisNode]) -> None:
    """Of all nodes, the primary first."""
    # The replicas end first: none of them may give its data back to a primary that comes back without any.
    _kill9(nodes[1:])
    for node in nodes:
        node.restart_empty()
