"""What a proxy holds back arrives when it is let go, whatever has become of its sender."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from tests.processes.polling import wait_until_async
from tests.processes.proxy import Fate, TcpProxy, Way, when


class EchoServer:
    """Answers each message with itself, and remembers all of them."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1000):
            self.got.append(chunk)
            writer.write(b"echo " + chunk)
        writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[tuple[EchoServer, TcpProxy]]:
    server = EchoServer()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listening, TcpProxy(listening.sockets[0].getsockname()[1]) as proxy:
        yield server, proxy


async def held_by(proxy: TcpProxy, count: int = 1) -> None:
    await wait_until_async(lambda: len(proxy.held) == count, what=f"{count} chunks are held")


async def test_a_held_message_waits_while_others_pass(echo: tuple[EchoServer, TcpProxy]):
    server, proxy = echo
    proxy.rule = when(Way.TO_SERVER, b"slow", Fate.HOLD)
    slow_reader, slow = await asyncio.open_connection("127.0.0.1", proxy.port)
    fast_reader, fast = await asyncio.open_connection("127.0.0.1", proxy.port)
    slow.write(b"slow")
    await held_by(proxy)
    fast.write(b"fast")
    assert await fast_reader.read(100) == b"echo fast"
    assert server.got == [b"fast"]
    held = proxy.held[0]
    assert (held.chunk, held.client_port) == (b"slow", slow.get_extra_info("sockname")[1])
    held.let_go()
    assert await slow_reader.read(100) == b"echo slow"
    assert await held.answer == b"echo slow"
    assert proxy.held == []
    for writer in (slow, fast):
        writer.close()


@pytest.mark.parametrize("end", [lambda proxy: proxy.held[0].let_go(), lambda proxy: proxy.mend()], ids=["let", "mend"])
async def test_a_held_message_arrives_although_its_sender_has_left(
    echo: tuple[EchoServer, TcpProxy], end: Callable[[TcpProxy], None]
):
    server, proxy = echo
    proxy.rule = when(Way.TO_SERVER, b"late", Fate.HOLD)
    _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"late")
    await held_by(proxy)
    writer.close()
    await writer.wait_closed()
    held = proxy.held[0]
    end(proxy)
    assert await held.answer == b"echo late"
    assert server.got == [b"late"]


async def test_a_held_message_of_a_connection_that_was_cut_has_no_answer(echo: tuple[EchoServer, TcpProxy]):
    server, proxy = echo
    proxy.rule = when(Way.TO_SERVER, b"cut", Fate.HOLD)
    _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"cut")
    await held_by(proxy)
    held = proxy.held[0]
    proxy.cut()
    held.let_go()
    assert await held.answer == b""
    assert server.got == []
    writer.close()
