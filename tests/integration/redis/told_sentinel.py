"""A sentinel that says what it is told to say, because real ones cannot be made to disagree on purpose."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

NAME = "memory"


class ToldSentinel:
    """Knows one primary by the port of its loopback address, and the epoch of its promotion; or none at port 0."""

    def __init__(self, primary_port: int, epoch: int, *, host: str = "127.0.0.1") -> None:
        self._host = host.encode()
        self.primary_port = primary_port
        self.epoch = epoch
        self.answers = True
        self.asked = 0
        self.connections = 0
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[ToldSentinel]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while (words := await _command(reader)) is not None:
                if self.answers:
                    writer.write(self._answer(words))
        finally:
            writer.close()
            self._writers.discard(writer)

    def _answer(self, words: list[bytes]) -> bytes:
        match [word.upper() for word in words[:2]]:
            case [b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME"]:
                self.asked += 1
                known = self.primary_port and words[2] == NAME.encode()
                return _array(self._host, b"%d" % self.primary_port) if known else b"*-1\r\n"
            case [b"SENTINEL", b"MASTER"]:
                if not self.primary_port:
                    return b"-ERR No such master with that name\r\n"
                return _array(b"name", words[2], b"config-epoch", b"%d" % self.epoch)
        return b"+OK\r\n"


async def _command(reader: asyncio.StreamReader) -> list[bytes] | None:
    try:
        count = int((await reader.readuntil(b"\r\n"))[1:])
        words = []
        for _ in range(count):
            size = int((await reader.readuntil(b"\r\n"))[1:])
            words.append((await reader.readexactly(size + 2))[:-2])
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return words


def _array(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
