"""Readers that stop reading in the middle: they hold up neither writers nor other readers, and miss nothing."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import cast

import psutil
import pytest

from durable_memory_client import Create, Draft, Evidence, MemoryClient, Node, WatchedChange
from tests.processes.server import ServerProcess
from tests.processes.sessions import nothing_is_held

# More readers than a server has connections for reading, and far more text than the wire holds.
_READERS = 20
_CHANGE_SETS = 4
_NODES_EACH = 100
_CONTENT_BYTES = 60_000
_SOON_SECONDS = 60.0
"""Readers that stand still would hold up others for ever."""


@pytest.fixture
async def filled(clients: Sequence[MemoryClient]) -> list[str]:
    """The ids of the nodes of a large namespace, in order."""
    for number in range(_CHANGE_SETS):
        nodes = [_large(f"node-{number}-{index:03}") for index in range(_NODES_EACH)]
        await clients[0].apply_change_set(nodes, timeout=_SOON_SECONDS)
    return [f"node-{number}-{index:03}" for number in range(_CHANGE_SETS) for index in range(_NODES_EACH)]


async def test_slow_readers_of_snapshots_hold_up_nobody_and_get_one_state(
    servers: Sequence[ServerProcess],
    clients: Sequence[MemoryClient],
    filled: list[str],
    request: pytest.FixtureRequest,
):
    before = sum(map(_resident_bytes, servers))
    snapshots = [clients[number % len(clients)].snapshot() for number in range(_READERS)]
    readers = [cast("AsyncGenerator[Node, None]", aiter(snapshot)) for snapshot in snapshots]
    first = await asyncio.gather(*map(anext, readers))
    assert {node.id for node in first} == {filled[0]}
    await _others_go_on(clients, request)
    # Each holds a part of the namespace in the servers' memory, and not all of it.
    assert sum(map(_resident_bytes, servers)) - before < _READERS * len(filled) * _CONTENT_BYTES / 3
    # Some never read on, others read all of it.
    for reader in readers[2:]:
        await reader.aclose()
    for snapshot, reader in list(zip(snapshots, readers, strict=True))[:2]:
        rest = [node async for node in reader]
        assert [first[0].id, *(node.id for node in rest)] == filled
        assert snapshot.node_count == len(filled)
        assert snapshot.change_token is not None
        assert snapshot.change_token.namespace_revision == _CHANGE_SETS
    await _others_go_on(clients, request, number=1)


async def test_watchers_that_do_not_read_hold_up_nobody_and_miss_nothing(
    clients: Sequence[MemoryClient], request: pytest.FixtureRequest
):
    watches = [clients[number % len(clients)].watch(after=0, include_nodes=True) for number in range(_READERS)]
    await clients[0].remember("the first")
    assert {(await anext(watch)).change_token.namespace_revision for watch in watches} == {1}
    for number in range(60):
        await clients[number % len(clients)].apply_change_set([_large(f"node-{number}-{index}") for index in range(5)])
    await _others_go_on(clients, request)
    head = (await clients[0].get_change_token()).namespace_revision
    for watch in watches[2:]:
        await watch.close()
    for watch in watches[:2]:
        seen = [await _next(watch) for _ in range(head - 1)]
        assert [change.change_token.namespace_revision for change in seen] == list(range(2, head + 1))
        assert all(len(change.nodes) == len(change.change_set.changes) for change in seen)
        await watch.close()


async def _others_go_on(clients: Sequence[MemoryClient], request: pytest.FixtureRequest, number: int = 0) -> None:
    """Everybody else gets answers, and the readers hold no transaction."""
    async with asyncio.timeout(_SOON_SECONDS):
        for index, client in enumerate(clients):
            word = f"brief{number}{index}"
            remembered = await client.remember(f"{word} and to the point")
            assert [hit.citation for hit in await client.preview(word)] == [remembered.citation]
            assert (await client.get_node(remembered.citation.node_id)).content.startswith(word)
            assert len([node async for node in client.list_nodes(page_size=500, omit_content=True)]) > 0
    if "two_servers" in request.fixturenames:
        # A statement may be running at the moment of looking; what a reader held would stay.
        await nothing_is_held(request.getfixturevalue("postgres_database"))


def _resident_bytes(server: ServerProcess) -> int:
    return int(psutil.Process(server.pid).memory_info().rss)


async def _next(watch: AsyncIterator[WatchedChange]) -> WatchedChange:
    async with asyncio.timeout(_SOON_SECONDS):
        return await anext(watch)


def _large(node_id: str) -> Create:
    said = Evidence.tool_result(f"tool:{node_id}", node_id)
    content = f"{node_id} " + "x" * _CONTENT_BYTES
    return Create(node_id=node_id, memory=Draft(content=content, evidence=[said]))
