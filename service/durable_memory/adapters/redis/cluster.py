"""A cluster: which shard has a key, also after a shard's replica was promoted or a slot has moved.

Each shard has a pool and a circuit of its own, so that one that is down is nothing to the partitions of the others.
Only a task of the route asks for the whole map; a call that is told of another shard goes there at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Final

import structlog
from redis import exceptions
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from durable_memory.adapters.redis.errors import (
    LOST,
    index_unavailable,
    is_answer,
    is_unanswered,
    tls_problem,
    translated,
)
from durable_memory.adapters.redis.route import Route
from durable_memory.adapters.redis.server import Client, Server, new_client
from durable_memory.adapters.redis.settings import RedisSettings
from durable_memory.adapters.redis.url import Address, RedisUrl
from durable_memory.adapters.redis.watch import Watch
from durable_memory.domain.errors import DomainError, Reason, not_serving

_QUIET_LOOKS: Final = 5
"""Calls are told of what has moved; the map is asked for so much less often than the primary of Sentinels."""

_IN_DOUBT: Final = (exceptions.ClusterDownError, exceptions.ReadOnlyError, DomainError)
"""What a server says when the map may be another one by now."""

_UNNAMED: Final = (b"", b"?")
"""What a server says that knows only how it was reached."""

_log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class View:
    """The cluster as one of its servers sees it."""

    epoch: int
    is_whole: bool
    ranges: tuple[tuple[int, int, Address], ...]
    """First and last slot, and the primary that has them."""
    replicas: frozenset[Address]

    @property
    def primaries(self) -> set[Address]:
        return {primary for _, _, primary in self.ranges}


async def view_from(client: Client, address: Address) -> View:
    """Raises: what the driver raises."""
    pipeline = client.pipeline(transaction=False)
    pipeline.execute_command("CLUSTER", "SLOTS")
    pipeline.execute_command("CLUSTER", "INFO")
    slots, info = await pipeline.execute()
    fields = dict(line.partition(b":")[::2] for line in info.splitlines())
    ranges, replicas = [], set()
    for first, last, primary, *others in slots:
        ranges.append((int(first), int(last), _address(primary, address)))
        replicas |= {_address(other, address) for other in others}
    return View(
        epoch=int(fields.get(b"cluster_current_epoch", 0)),
        is_whole=fields.get(b"cluster_state") == b"ok",
        ranges=tuple(sorted(ranges)),
        replicas=frozenset(replicas),
    )


def _address(node: Sequence[Any], asked: Address) -> Address:
    host, port = node[0], int(node[1])
    return Address(asked.host if host is None or host in _UNNAMED else host.decode(), port or asked.port)


class ClusterRoute(Route):
    """The shard of each key."""

    moves: ClassVar[tuple[type[Exception], ...]] = (exceptions.AskError,)
    in_cluster: ClassVar[bool] = True

    def __init__(self, url: RedisUrl, settings: RedisSettings, made: Callable[[], None]) -> None:
        super().__init__(url, settings, made)
        self._servers: dict[Address, Server] = {}
        self._owners: list[Server | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._view: View | None = None
        self._redirected = False
        self._turn = 0
        self._is_closed = False
        self._watch = Watch(
            self._look,
            quiet_seconds=settings.look_seconds * _QUIET_LOOKS,
            pause_seconds=settings.retry_pause_seconds,
            longest_seconds=settings.longest_pause_seconds,
        )

    async def open(self) -> None:
        await self._read_map()
        problems = await self._problems(self.judged)
        if len(problems) == len(self._servers):
            raise problems[0]
        _raise_unfit(problems)
        self._watch.start()

    async def close(self) -> None:
        self._is_closed = True
        await self._watch.stop()
        servers, self._servers = self._servers, {}
        await self.leave(*self._left, *servers.values())

    async def check(self) -> None:
        problems = await self._problems(lambda server: self.checked(lambda: server))
        _raise_unfit(problems)
        if problems:
            shards = f"{len(problems)} of {len(self._servers)} shards of the index"
            raise index_unavailable(f"{shards} cannot be used: {problems[0].message}") from problems[0]
        if None in self._owners:
            raise index_unavailable("no server of the cluster has some of the slots")

    def server_of(self, key: str) -> Server:
        server = self._owners[key_slot(key.encode())]
        if server is None:
            self._watch.hurry()
            raise index_unavailable("no server of the cluster has the slot of the partition")
        return server

    def failed(self, server: Server, error: Exception) -> Server | None:
        if isinstance(error, exceptions.AskError):
            there = self._server_at(Address(error.host or server.address.host, int(error.port)))
            if not isinstance(error, exceptions.MovedError):
                return there
            self._owners[int(error.slot_id)] = there
            self._redirected = True
            self._made()
            self._watch.hurry()
        elif is_unanswered(error) or isinstance(error, _IN_DOUBT):
            self._watch.hurry()
        return None

    def _server_at(self, address: Address) -> Server:
        if self._is_closed:  # a call that is told of another shard after that: nobody would close what it makes
            raise not_serving("closed", "the index is closed")
        if address not in self._servers:
            self._servers[address] = self.new_server(address)
        return self._servers[address]

    async def _problems(self, look: Callable[[Server], Awaitable[object]]) -> list[DomainError]:
        """Of all servers, each looked at beside the others."""

        async def problem(server: Server) -> DomainError | None:
            try:
                await look(server)
            except DomainError as error:
                return error
            return None

        found = await asyncio.gather(*map(problem, self._servers.values()))
        return [error for error in found if error is not None]

    async def _look(self) -> bool:
        try:
            await self._read_map()
        except DomainError as error:
            _log.warning("index_cluster_no_help", problem=error.message)
            return False
        return not any(server.circuit.is_open for server in self._servers.values())

    async def _read_map(self) -> None:
        """Ask one server after another until one has a view of the whole that is not older than the last.

        Raises: DEPENDENCY_UNAVAILABLE, NOT_SERVING of a server that is in no cluster.
        """
        known = 0 if self._view is None else self._view.epoch
        best: View | None = None
        problem = index_unavailable("no server of the cluster answers")
        for address in self._to_ask():
            try:
                view = await self._view_of(address)
            except (exceptions.RedisError, *LOST) as error:
                if is_answer(error) or tls_problem(error) is not None:
                    problem = translated(error)
                continue
            if not view.ranges:
                problem = index_unavailable("no server of the cluster has any slot")
                continue
            if best is None or (view.epoch, view.is_whole) > (best.epoch, best.is_whole):
                best = view
            if view.is_whole and view.epoch >= known:
                break
        if best is None:
            raise problem
        await self._use(best)

    def _to_ask(self) -> list[Address]:
        """Those first that answer, each time beginning with another one; then all others that were ever named."""
        answering = [address for address, server in self._servers.items() if not server.circuit.is_open]
        self._turn += 1
        start = self._turn % len(answering) if answering else 0
        replicas = () if self._view is None else self._view.replicas
        return list(
            dict.fromkeys(chain(answering[start:], answering[:start], replicas, self.url.addresses, self._servers))
        )

    async def _view_of(self, address: Address) -> View:
        server = self._servers.get(address)
        client = server.looking_client if server is not None else new_client(self.url.of_server(address), self.settings)
        try:
            async with asyncio.timeout(self.settings.look_timeout_seconds):
                return await view_from(client, address)
        except exceptions.ResponseError as error:
            if "cluster support disabled" not in str(error):
                raise
            raise not_serving("index", "the index server is no cluster: its URL begins with redis://") from error
        finally:
            if server is None:
                with suppress(*LOST):
                    await client.aclose()

    async def _use(self, view: View) -> None:
        if view == self._view and not self._redirected:
            return
        if self._view is not None and view.ranges != self._view.ranges:
            _log.info("index_cluster_changed", shards=len(view.primaries), epoch=view.epoch)
            self._made()
        self._view, self._redirected = view, False
        owners: list[Server | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for first, last, primary in view.ranges:
            owners[first : last + 1] = [self._server_at(primary)] * (last + 1 - first)
        self._owners = owners
        await self.leave(*[self._servers.pop(address) for address in self._servers.keys() - view.primaries])


def _raise_unfit(problems: Sequence[DomainError]) -> None:
    for problem in problems:
        if problem.reason is Reason.NOT_SERVING:
            raise problem
