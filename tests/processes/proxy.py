"""A TCP proxy on loopback that loses, delays and swallows what passes through it, as networks do."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Self

_CHUNK_BYTES = 65_536


class Way(Enum):
    """Which way bytes go."""

    TO_SERVER = "to server"
    TO_CLIENT = "to client"


class Fate(Enum):
    """What becomes of a chunk, and of the connection with it."""

    PASS = "pass"
    CUT_BEFORE = "cut before"
    """Both ends lose the connection, and the chunk is lost."""
    CUT_AFTER = "cut after"
    """The chunk arrives; then both ends lose the connection, and no answer comes back."""
    SWALLOW = "swallow"
    """Nothing passes any more in either direction, and nobody is told."""
    HOLD = "hold"
    """The chunk, and what comes after it the same way, waits until it is let go; it arrives whatever becomes of its
    sender meanwhile."""


Rule = Callable[[Way, bytes], Fate]
Hearer = Callable[[Way, bytes], None]


def always(way: Way, chunk: bytes) -> Fate:
    """Let everything pass."""
    return Fate.PASS


def swallow_all(way: Way, chunk: bytes) -> Fate:
    """Let nothing pass, and tell nobody."""
    return Fate.SWALLOW


def cut_all(way: Way, chunk: bytes) -> Fate:
    """Let nothing pass, and end every connection that tries."""
    return Fate.CUT_BEFORE


def ignore(way: Way, chunk: bytes) -> None:
    """Take no notice."""


def when(way: Way, needle: bytes, fate: Fate) -> Rule:
    """`fate` for chunks that go this way and contain `needle`."""

    def rule(actual: Way, chunk: bytes) -> Fate:
        return fate if actual is way and needle in chunk else Fate.PASS

    return rule


def after_bytes(way: Way, count: int, fate: Fate) -> Rule:
    """`fate` for the chunk that brings all bytes that went this way to `count` or more, over all connections."""
    passed = 0

    def rule(actual: Way, chunk: bytes) -> Fate:
        nonlocal passed
        if actual is way:
            passed += len(chunk)
        return fate if actual is way and passed >= count else Fate.PASS

    return rule


class Held:
    """A chunk that waits. `client_port` is that of the connection which it came by, in the eyes of this proxy."""

    def __init__(self, way: Way, chunk: bytes, client_port: int) -> None:
        self.way = way
        self.chunk = chunk
        self.client_port = client_port
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """The first chunk that comes back after it was let go; nothing, if the connection ends before."""
        self._may_go = asyncio.Event()

    def let_go(self) -> None:
        self._may_go.set()

    async def wait(self) -> None:
        await self._may_go.wait()

    def answered(self, chunk: bytes) -> None:
        if not self.answer.done():
            self.answer.set_result(chunk)


class _Link:
    """One proxied connection."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.writers = {Way.TO_CLIENT: client, Way.TO_SERVER: server}
        self.swallowed = asyncio.Event()
        self.port: int = server.get_extra_info("sockname")[1]
        """By which the server knows this connection."""
        self.client_port: int = client.get_extra_info("peername")[1]
        self.unanswered: list[Held] = []
        """What was held and let go, and has had no answer."""
        self._ended = False

    def expect_answer(self, held: Held) -> None:
        if self._ended:
            held.answered(b"")
        else:
            self.unanswered.append(held)

    def cut(self) -> None:
        for writer in self.writers.values():
            writer.close()

    def end(self) -> None:
        """Nothing comes back any more."""
        self._ended = True
        for held in self.unanswered:
            held.answered(b"")
        self.cut()


class TcpProxy:
    """Forwards a port of its own to `upstream_port`. `rule`, `delay_seconds` and `chunk_bytes` may be set at any time.

    The rule is asked once per chunk as it was read; a short message that was written at once is one chunk.
    """

    def __init__(self, upstream_port: int) -> None:
        self.rule: Rule = always
        self.delay_seconds = 0.0
        self.chunk_bytes = _CHUNK_BYTES
        """How much is read at once at most: with little, a rule cuts in the middle of messages."""
        self.struck = 0
        """How many chunks had another fate than PASS."""
        self.late = 0
        """How many chunks waited for `delay_seconds`."""
        self.lost = 0
        """How many chunks came on a connection that had been swallowed."""
        self.on_lost: Hearer = ignore
        """Is told each of them."""
        self.held: list[Held] = []
        """What waits to be let go, in the order in which it came."""
        self._upstream_port = upstream_port
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def connections(self) -> int:
        return len(self._links)

    @property
    def disturbed(self) -> int:
        """How many chunks did not pass as they came: struck, late, or lost."""
        return self.struck + self.late + self.lost

    def cut(self) -> int:
        """End every connection now; return how many there were."""
        links = list(self._links)
        for link in links:
            link.cut()
        return len(links)

    def swallow(self, ports: Collection[int] | None = None) -> None:
        """Let nothing pass on the connections that exist, and tell nobody.

        With `ports`, on those alone whose peer has one of these ports in the eyes of the server: its own list of
        clients tells them apart.
        """
        for link in self._links:
            if ports is None or link.port in ports:
                link.swallowed.set()

    def go_silent(self) -> None:
        """A black hole, for the connections that exist and for new ones, until `mend`."""
        self.rule = swallow_all
        self.swallow()

    def refuse(self) -> None:
        """End every connection, and new ones as soon as they send anything, until `mend`."""
        self.rule = cut_all
        self.cut()

    def mend(self) -> None:
        """Let everything pass at once, what is held as well. Connections that were swallowed lost bytes, and end."""
        self.rule = always
        self.delay_seconds = 0.0
        self.chunk_bytes = _CHUNK_BYTES
        for held in self.held:
            held.let_go()
        for link in list(self._links):
            if link.swallowed.is_set():
                link.cut()

    def dsn(self, dsn: str) -> str:
        """The same URL by way of this proxy."""
        return dsn.replace(f":{self._upstream_port}/", f":{self.port}/")

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._upstream_port)
        except OSError:
            writer.close()
            return
        link = _Link(writer, server_writer)
        self._links.add(link)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(link, Way.TO_SERVER, reader))
                group.create_task(self._pump(link, Way.TO_CLIENT, server_reader))
        except asyncio.CancelledError:
            # By this proxy's end alone; asyncio would report the cancelled handler of a connection as an error.
            return
        finally:
            self._links.discard(link)
            link.cut()

    async def _pump(self, link: _Link, way: Way, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while chunk := await reader.read(self.chunk_bytes):
                if self.delay_seconds:
                    self.late += 1
                    await asyncio.sleep(self.delay_seconds)
                if link.swallowed.is_set():
                    self.lost += 1
                    self.on_lost(way, chunk)
                    continue
                fate = self.rule(way, chunk)
                if fate is not Fate.PASS:
                    self.struck += 1
                if fate is Fate.SWALLOW:
                    link.swallowed.set()
                    continue
                if fate is Fate.HOLD:
                    await self._hold(link, way, chunk)
                elif way is Way.TO_CLIENT and link.unanswered:
                    link.unanswered.pop(0).answered(chunk)
                if fate is not Fate.CUT_BEFORE:
                    link.writers[way].write(chunk)
                    await link.writers[way].drain()
                if fate not in (Fate.PASS, Fate.HOLD):
                    break
        if way is Way.TO_SERVER and link.unanswered:
            # The sender may have left; what it sent so late is answered all the same.
            await asyncio.wait([held.answer for held in link.unanswered])
        link.end()

    async def _hold(self, link: _Link, way: Way, chunk: bytes) -> None:
        held = Held(way, chunk, link.client_port)
        self.held.append(held)
        try:
            await held.wait()
        finally:
            self.held.remove(held)
        if way is Way.TO_SERVER:
            link.expect_answer(held)
