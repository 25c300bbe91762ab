"""A host that is no database: it takes connections and says nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CountingHost:
    """Takes connections, and lets them wait. `attempts` counts them."""

    def __init__(self) -> None:
        self.attempts = 0
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.attempts += 1
        self._open.add(writer)
        try:
            while await reader.read(65_536):
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
async def silent_host() -> AsyncIterator[CountingHost]:
    """A black hole: connections are made, and nothing ever comes back on them."""
    host = CountingHost()
    server = await asyncio.start_server(host.take, "127.0.0.1", 0)
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
