"""Watches the leases and manifests of all partitions at whichever server is the primary, across failovers.

Everything that a script does to them is told by the server's MONITOR, in order and with the server's time. What the
server holds is read as well, again and again and atomically, and compared with what should have come of all that: so
that a gap is known as a gap, and nothing is concluded from it.

Every server of the group is watched, because after a partition two of them may take themselves for the primary.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import redis.asyncio
import redis.exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from tests.qualification.observers.commands import SCRIPT_MARK, Agreement, Command, Replay, compared, parse
from tests.qualification.observers.partition_seen import SLACK_SECONDS, PartitionSeen, grant_of, published_of
from tests.qualification.report.timeline import Event, Lane, Series, Timeline

_SCRIPT: Final = Path(__file__).with_name("partition.lua").read_text("utf-8")
_KEYS: Final = "dm:{*}:*"
_ANSWER_SECONDS: Final = 3.0
_AGAIN_SECONDS: Final = 0.02
_COMPARE_SECONDS: Final = 0.1
_END_AGAIN_SECONDS: Final = 0.2
_LINE_BYTES: Final = 1 << 28
_MILLIS: Final = 1e3
_MICROS: Final = 1e6
_SHORT: Final = 8
_GONE: Final = (redis.exceptions.RedisError, OSError, TimeoutError, EOFError)


class _ReignOverError(Exception):
    """The server is no longer the primary that it was."""


class LeaseObserver:
    """Watches while the block lasts.

    Args:
        nodes: the servers' own loopback ports, not those of proxies, by the name that reports call them.
        timeline: gets leadership, fences and index revisions, by partition.
    """

    def __init__(self, nodes: Mapping[str, int], timeline: Timeline) -> None:
        self.seen: list[PartitionSeen] = []
        """Every moment at which something was another than before, in the order in which it was seen."""
        self.compared = 0
        """How often what a server held was compared with what should have come of what it had told."""
        self.missed = 0
        """How often it was another; then something had been missed."""
        self.latest: dict[str, PartitionSeen] = {}
        """The last moment of each partition, wherever it was seen."""
        self.reigns: list[tuple[str, str]] = []
        """Node and name of each history of the store, in the order in which they began."""
        self._nodes = dict(nodes)
        self._timeline = timeline
        self._tasks: list[asyncio.Task[None]] = []
        self._holding: dict[str, tuple[str, Event]] = {}
        self._drawn: dict[tuple[Series, str], int] = {}

    async def __aenter__(self) -> Self:
        self._tasks = [
            asyncio.create_task(self._watch(name, port), name=f"watch leases at {name}")
            for name, port in self._nodes.items()
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pending = set(self._tasks)
        while pending:
            # Again and again: the driver takes one for a lost connection now and then, and the watch goes on.
            for task in pending:
                task.cancel()
            _, pending = await asyncio.wait(pending, timeout=_END_AGAIN_SECONDS)
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for _, event in self._holding.values():
            event.ended = event.ended or time.monotonic()
        for error_of_task in ended:
            if isinstance(error_of_task, Exception):
                raise error_of_task

    def latest_at(self, node: str) -> Mapping[str, PartitionSeen]:
        """The last moment of each partition in the last history that this node was the primary of.

        Others may have been seen after it: a primary that slept wakes as the one that it was, for a moment.
        """
        reigns = [reign for name, reign in self.reigns if name == node]
        return {one.partition: one for one in self.seen if reigns and one.reign == reigns[-1]}

    def of(self, partition: str) -> Sequence[PartitionSeen]:
        return [one for one in self.seen if one.partition == partition]

    async def _watch(self, name: str, port: int) -> None:
        while True:
            with suppress(_ReignOverError, *_GONE):
                await self._connected(name, port)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _connected(self, name: str, port: int) -> None:
        client = redis.asyncio.Redis(
            port=port,
            protocol=2,
            socket_timeout=_ANSWER_SECONDS,
            socket_connect_timeout=_ANSWER_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        async with client:
            run_id = (await client.info("server"))["run_id"]
            info = await client.info("replication")
            if info["role"] != "master":
                return
            reign = f"{run_id[:_SHORT]}.{info['master_replid'][:_SHORT]}"
            if (name, reign) not in self.reigns:
                self.reigns.append((name, reign))
            await _Watch(self, client, name, port, reign, info["master_replid"]).run()

    def keep(self, one: PartitionSeen) -> None:
        self.seen.append(one)
        self.latest[one.partition] = one
        self._draw(one)

    def _draw(self, one: PartitionSeen) -> None:
        key = one.partition[:_SHORT]
        nonce, event = self._holding.get(one.partition, ("", None))
        if event is not None and (one.lease is None or one.lease.nonce != nonce):
            event.ended = one.seen
            del self._holding[one.partition]
        if one.lease is not None and one.partition not in self._holding:
            label = f"{one.lease.owner[:_SHORT]} fence {one.lease.fence}"
            self._holding[one.partition] = (one.lease.nonce, self._timeline.mark(Lane.LEADERSHIP, label, key=key))
        revision = 0 if one.published is None else one.published.index_revision
        for series, value in ((Series.FENCE, one.highest_fence), (Series.INDEX_REVISION, revision)):
            if self._drawn.get((series, key)) != value:
                self._drawn[series, key] = value
                self._timeline.sample(series, value, key=key, at=one.seen)


@dataclass(slots=True)
class _Look:
    """One reading of a partition. `mark` stands in what MONITOR tells where the reading was."""

    mark: bytes
    partition: str
    met: asyncio.Event = field(default_factory=asyncio.Event)
    expected: Replay | None = None
    """What the partition should be there; None if nothing was known of it."""
    since: list[Command] = field(default_factory=list)


class _Watch:
    """One stretch of one reign: from a connection to its end."""

    def __init__(
        self, observer: LeaseObserver, client: redis.asyncio.Redis, name: str, port: int, reign: str, replid: str
    ) -> None:
        self._observer = observer
        self._client = client
        self._name = name
        self._port = port
        self._reign = reign
        self._replid = replid
        self._replays: dict[str, Replay] = {}
        self._emitted: dict[str, PartitionSeen] = {}
        self._touched: set[str] = set()
        self._numbers = itertools.count()
        self._look_under_way: _Look | None = None
        self._all_known = False
        self._script = ""

    async def run(self) -> None:
        self._script = await self._client.script_load(_SCRIPT)
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection("127.0.0.1", self._port, limit=_LINE_BYTES), _ANSWER_SECONDS
        )
        try:
            writer.write(b"MONITOR\r\n")
            await asyncio.wait_for(reader.readuntil(b"\r\n"), _ANSWER_SECONDS)
            tasks = [asyncio.create_task(self._read(reader)), asyncio.create_task(self._compare())]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
            for error in ended:
                if isinstance(error, Exception):
                    raise error
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            line = await reader.readuntil(b"\r\n")
            look = self._look_under_way
            if SCRIPT_MARK in line[:64]:
                command = parse(line)
                if command is not None:
                    self._take(command, look)
            elif look is not None and line.endswith(look.mark + b'"\r\n'):
                known = self._replays.get(look.partition)
                look.expected = None if known is None else _copy(known)
                look.met.set()

    def _take(self, command: Command, look: _Look | None) -> None:
        partition = command.partition
        if look is not None and look.partition == partition and look.met.is_set():
            look.since.append(command)
        if partition not in self._replays:
            if not self._all_known or partition in self._touched:
                self._touched.add(partition)  # it will be looked at
                return
            self._replays[partition] = Replay()
        self._touched.add(partition)
        self._apply(command, follows=True)

    def _apply(self, command: Command, *, follows: bool) -> None:
        replay = self._replays[command.partition]
        if replay.apply(command):
            self._emit(command.partition, replay, command.at, follows=follows)

    async def _compare(self) -> None:
        names = {key.decode().split("}")[0].removeprefix("dm:{") async for key in self._client.scan_iter(_KEYS)}
        for partition in sorted(names):
            await self._look(partition)
        self._all_known = True
        while True:
            info = await self._client.info("replication")
            if (info["role"], info["master_replid"]) != ("master", self._replid):
                raise _ReignOverError
            held = {partition for partition, replay in self._replays.items() if replay.lease}
            for partition in sorted(self._touched | held):
                if await self._look(partition):
                    self._touched.discard(partition)
            await asyncio.sleep(_COMPARE_SECONDS)

    async def _look(self, partition: str) -> bool:
        """Read a partition, and compare with what was replayed up to exactly then; whether it could be compared."""
        look = self._look_under_way = _Look(f"observer-{next(self._numbers)}".encode(), partition)
        keys = (f"dm:{{{partition}}}:lease", f"dm:{{{partition}}}:manifest")
        answer = await self._client.evalsha(self._script, 2, *keys, look.mark)
        async with asyncio.timeout(_ANSWER_SECONDS):
            await look.met.wait()
        self._look_under_way = None
        held, at = _held(answer), int(answer[0]) + int(answer[1]) / _MICROS
        if look.expected is None:
            self._begin(partition, held, at, look.since)
            return True
        agreement = compared(look.expected, held, at, slack=SLACK_SECONDS)
        if agreement is Agreement.NOT_YET:
            return False
        self._observer.compared += 1
        if agreement is Agreement.ANOTHER:
            self._observer.missed += 1
            self._begin(partition, held, at, look.since)
            return True
        replay, last = self._replays[partition], self._emitted.get(partition)
        replay.expire(at)
        published = published_of(replay.manifest)
        if last is None or (last.lease is None) != (not replay.lease) or last.published != published:
            self._emit(partition, replay, at, follows=True)
        return True

    def _begin(self, partition: str, held: Replay, at: float, since: Sequence[Command]) -> None:
        """From here on it is what the server holds, and what has come since."""
        self._replays[partition] = held
        self._emit(partition, held, at, follows=False)
        for command in since:
            self._apply(command, follows=True)

    def _emit(self, partition: str, replay: Replay, at: float, *, follows: bool) -> None:
        one = PartitionSeen(
            partition=partition,
            node=self._name,
            reign=self._reign,
            at=at,
            seen=time.monotonic(),
            lease=grant_of(replay.lease, replay.expires_at),
            highest_fence=int(replay.manifest.get("highest_fence", 0)),
            published=published_of(replay.manifest),
            follows=follows and partition in self._emitted,
        )
        self._emitted[partition] = one
        self._observer.keep(one)


def _held(answer: Sequence[Any]) -> Replay:
    seconds, micros, lease, left, manifest = answer
    expires_at = int(seconds) + int(micros) / _MICROS + left / _MILLIS if left >= 0 else None
    return Replay(lease=_fields(lease), expires_at=expires_at, manifest=_fields(manifest))


def _fields(flat: Sequence[bytes]) -> dict[str, str]:
    words = [word.decode("latin-1") for word in flat]
    return dict(zip(words[::2], words[1::2], strict=True))


def _copy(replay: Replay) -> Replay:
    return Replay(lease=dict(replay.lease), expires_at=replay.expires_at, manifest=dict(replay.manifest))
