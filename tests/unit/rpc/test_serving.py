"""What a server that stops does to the calls that it has let in."""

import asyncio
from typing import Any, cast

import pytest

from durable_memory.rpc.interceptors import serving
from durable_memory.rpc.interceptors.call import IncomingCall
from durable_memory.rpc.interceptors.serving import ServingLayer

_EVER = 3_600.0


def _call(method: str, *, streaming: bool = False, uploading: bool = False) -> IncomingCall:
    return IncomingCall(
        method=f"/durablememory.v1.{method}", streaming=streaming, uploading=uploading, context=cast(Any, None)
    )


SNAPSHOT = _call("RepositoryService/Snapshot", streaming=True)
IMPORT = _call("TransferService/ImportNamespace", streaming=True, uploading=True)
UNARY = _call("RepositoryService/GetNode")


async def _served(layer: ServingLayer, call: IncomingCall, finish: asyncio.Event) -> asyncio.Task[Any]:
    async def proceed() -> str:
        await finish.wait()
        return "answer"

    task = asyncio.create_task(layer.around(call, proceed))
    await asyncio.sleep(0)
    return task


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def layer(monkeypatch: pytest.MonkeyPatch) -> ServingLayer:
    monkeypatch.setattr(serving, "_LINGER_SECONDS", _EVER)
    layer = ServingLayer()
    layer.ready()
    return layer


async def test_the_end_of_a_stream_is_kept_back_in_a_drain_until_its_reader_has_what_came_before(
    layer: ServingLayer, monkeypatch: pytest.MonkeyPatch
):
    finish = asyncio.Event()
    stream = await _served(layer, SNAPSHOT, finish)
    layer.drain()
    finish.set()
    await _turns()
    assert not stream.done()
    stream.cancel()
    await asyncio.wait({stream})
    assert stream.cancelled()

    layer.ready()
    monkeypatch.setattr(serving, "_LINGER_SECONDS", 0.01)
    assert await (await _served(layer, SNAPSHOT, finish)) == "answer"


@pytest.mark.parametrize("call", [UNARY, IMPORT], ids=["unary", "upload"])
async def test_one_answer_is_given_at_once_in_a_drain(layer: ServingLayer, call: IncomingCall):
    finish = asyncio.Event()
    answered = await _served(layer, call, finish)
    layer.drain()
    finish.set()
    await _turns()
    assert answered.result() == "answer"


async def test_a_stream_ends_at_once_where_nothing_stops(layer: ServingLayer):
    finish = asyncio.Event()
    finish.set()
    stream = await _served(layer, SNAPSHOT, finish)
    await _turns()
    assert stream.result() == "answer"
