"""Hosts that are no database: one that takes connections and says nothing, and one that ends them at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CountingHost:
    """Takes connections, and lets them wait or ends them at once. `attempts` counts them."""

    def __init__(self, *, ends_them: bool) -> None:
        self.attempts = 0
        self.port = 0
        self._ends_them = ends_them
        self._open: set[asyncio.StreamWriter] = set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.attempts += 1
        self._open.add(writer)
        try:
            while not self._ends_them and await reader.read(65_536):
                pass
        except OSError:
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    def end(self) -> None:
        for writer in list(self._open):
            writer.close()


@asynccontextmanager
async def silent_host(port: int = 0) -> AsyncIterator[CountingHost]:
    """A black hole: connections are made, and nothing ever comes back on them."""
    async with _listening(CountingHost(ends_them=False), port) as host:
        yield host


@asynccontextmanager
async def dying_host(port: int = 0) -> AsyncIterator[CountingHost]:
    """Ends every connection as soon as it is made."""
    async with _listening(CountingHost(ends_them=True), port) as host:
        yield host


@asynccontextmanager
async def _listening(host: CountingHost, port: int) -> AsyncIterator[CountingHost]:
    server = await asyncio.start_server(host.take, "127.0.0.1", port)
    host.port = server.sockets[0].getsockname()[1]
    try:
        yield host
    finally:
        server.close()
        host.end()
        await server.wait_closed()


def with_hosts(dsn: str, *ports: int) -> str:
    """The URL of a database with these ports of this machine as its hosts, in this order."""
    account, _, place = dsn.rpartition("@")
    database = place.partition("/")[2]
    return f"{account}@{','.join(f'127.0.0.1:{port}' for port in ports)}/{database}"
