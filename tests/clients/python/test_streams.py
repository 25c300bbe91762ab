"""Pages, snapshots, exports and watches: complete, or an error that says so."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest

from durable_memory_client import ChangeToken, IncompleteStreamError, MemoryClient, MemoryUnavailableError, errors
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durablememory.v1 import repository_service_pb2, transfer_pb2, transfer_service_pb2
from tests.clients.python.fake_service import FakeService, Forever, Refusal
from tests.clients.python.messages import HISTORY, change, heartbeat, node, token
from tests.clients.python.refusals import CUT, LOST
from tests.processes.polling import wait_until, wait_until_async

LIST_NODES, SNAPSHOT = "RepositoryService.ListNodes", "RepositoryService.Snapshot"
WATCH = "RepositoryService.WatchNamespace"
EXPORT, IMPORT = "TransferService.ExportNamespace", "TransferService.ImportNamespace"

RESET = Refusal(grpc.StatusCode.INTERNAL)
"""What a proxy makes of an answer whose server has died in the middle of it."""

HEADER = repository_service_pb2.SnapshotResponse(header={"change_token": token(7), "statuses": [2]})
NODE = repository_service_pb2.SnapshotResponse(node=node(content="茶"))

pytestmark = pytest.mark.usefixtures("hasty_backoff")


def footer(node_count: int = 1, content_bytes: int = 3) -> repository_service_pb2.SnapshotResponse:
    return repository_service_pb2.SnapshotResponse(
        footer={"node_count": node_count, "content_bytes": content_bytes, "digest": "d1"}
    )


def two_pages(service: FakeService) -> None:
    service.will_answer(
        LIST_NODES,
        repository_service_pb2.ListNodesResponse(
            nodes=[node("a"), node("b")], next_page_token="2", change_token=token(7)
        ),
        repository_service_pb2.ListNodesResponse(nodes=[node("c")], change_token=token(7)),
    )


async def test_a_listing_reads_on_to_its_last_page(service: FakeService, memory: MemoryClient):
    two_pages(service)

    assert [node.id async for node in memory.list_nodes(page_size=2)] == ["a", "b", "c"]

    assert [asked.request.page_token for asked in service.calls(LIST_NODES)] == ["", "2"]
    assert {asked.request.page_size for asked in service.calls(LIST_NODES)} == {2}


async def test_a_listing_reads_no_page_that_nobody_asked_for(service: FakeService, memory: MemoryClient):
    two_pages(service)

    listing = memory.list_nodes()
    assert service.calls(LIST_NODES) == []
    page = await listing.page()

    assert ([node.id for node in page.items], page.next_page_token) == (["a", "b"], "2")
    assert page.change_token == ChangeToken(HISTORY, 7)
    assert len(service.calls(LIST_NODES)) == 1
    assert [node.id for node in (await listing.page(page.next_page_token)).items] == ["c"]


def test_a_listing_of_the_blocking_twin_is_an_ordinary_iterable(
    service: FakeService, blocking_memory: BlockingMemoryClient
):
    two_pages(service)
    assert [node.id for node in blocking_memory.list_nodes()] == ["a", "b", "c"]


async def test_a_snapshot_says_what_it_is_of(service: FakeService, memory: MemoryClient):
    service.will_answer(SNAPSHOT, [HEADER, NODE, footer()])

    snapshot = memory.snapshot()
    assert [node.content async for node in snapshot] == ["茶"]

    assert snapshot.change_token == ChangeToken(HISTORY, 7)
    assert snapshot.statuses == ("ACTIVE",)
    assert (snapshot.node_count, snapshot.content_bytes, snapshot.digest) == (1, 3, "d1")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [HEADER],
        [HEADER, NODE],
        [HEADER, NODE, NODE, footer()],
        [HEADER, footer()],
        [HEADER, NODE, footer(content_bytes=4)],
        [NODE, footer()],
        [HEADER, NODE, footer(), NODE],
    ],
)
async def test_a_snapshot_that_is_not_what_its_footer_says_is_an_error(
    messages: list, service: FakeService, memory: MemoryClient
):
    service.will_answer(SNAPSHOT, messages)

    snapshot = memory.snapshot()
    with pytest.raises(IncompleteStreamError):
        await snapshot.all()

    assert snapshot.digest is None


async def test_a_snapshot_that_breaks_off_raises_what_broke_it(service: FakeService, memory: MemoryClient):
    service.will_answer(SNAPSHOT, [HEADER, NODE, LOST])
    with pytest.raises(MemoryUnavailableError):
        await memory.snapshot().all()


async def test_what_a_snapshot_found_is_forgotten_when_it_is_taken_again(service: FakeService, memory: MemoryClient):
    service.will_answer(SNAPSHOT, [HEADER, NODE, footer()], [NODE, footer()])
    snapshot = memory.snapshot()
    await snapshot.all()

    with pytest.raises(IncompleteStreamError):
        await snapshot.all()

    known = (snapshot.namespace, snapshot.change_token, snapshot.node_count, snapshot.content_bytes, snapshot.digest)
    assert {*known} == {None}
    assert snapshot.statuses == ()


async def test_an_export_without_a_footer_is_an_error(service: FakeService, memory: MemoryClient):
    part = transfer_service_pb2.ExportNamespaceResponse(records=[transfer_pb2.ExportRecord(node_revision=node())])
    service.will_answer(EXPORT, [part])
    with pytest.raises(IncompleteStreamError):
        _ = [line async for line in memory.export_namespace()]


async def test_an_import_states_namespace_and_request_id_first(service: FakeService, memory: MemoryClient):
    line = '{"node_revision":{"id":"prefers-tea"}}'

    async def lines():
        yield line
        yield line

    for source in ([line, line], lines()):
        await memory.import_namespace(source, request_id="import-1")

    for asked in service.calls(IMPORT):
        first, *others = asked.requests
        assert (first.namespace.tenant_id, first.request_id, len(first.records)) == ("acme", "import-1", 0)
        assert sum(len(request.records) for request in others) == 2


async def test_a_bad_line_ends_an_import_as_what_it_is(service: FakeService, memory: MemoryClient):
    with pytest.raises(ValueError, match="not a record"):
        await memory.import_namespace(["no record"])


async def cancelled() -> None:
    """What whoever awaits work that was cancelled gets, and is not cancelled itself."""
    work = asyncio.get_running_loop().create_future()
    work.cancel()
    await work


async def unready() -> None:
    asyncio.get_running_loop().create_future().result()


@pytest.mark.parametrize(
    ("reading", "kind"), [(cancelled, asyncio.CancelledError), (unready, asyncio.InvalidStateError)]
)
async def test_what_ends_the_reading_of_the_lines_of_an_import_is_raised_as_it_is(
    reading: Callable[[], Awaitable[None]], kind: type[BaseException], memory: MemoryClient
):
    async def lines() -> AsyncIterator[str]:
        yield '{"node_revision":{"id":"prefers-tea"}}'
        await reading()

    with pytest.raises(kind):
        await memory.import_namespace(lines())


def test_a_bad_line_ends_an_import_of_the_blocking_twin_as_what_it_is(
    service: FakeService, blocking_memory: BlockingMemoryClient
):
    with pytest.raises(ValueError, match="not a record"):
        blocking_memory.import_namespace(["no record"])


async def revisions(memory: MemoryClient, count: int, **options) -> list[int]:
    seen: list[int] = []
    async with memory.watch(**options) as changes:
        async for change in changes:
            seen.append(change.change_token.namespace_revision)
            if len(seen) == count:
                break
    return seen


@pytest.mark.parametrize("end", [[], [LOST], [RESET], [CUT]], ids=["ended", "lost", "reset", "cut"])
async def test_a_lost_watch_goes_on_after_the_last_change_without_gap_or_repetition(
    end: list, service: FakeService, memory: MemoryClient
):
    service.will_answer(
        WATCH,
        [heartbeat(3), change(4), change(5), *end],
        [LOST],
        [heartbeat(5), change(5), change(6), *end],
        [heartbeat(6), change(7)],
    )

    assert await revisions(memory, 4, after=3) == [4, 5, 6, 7]

    asked = [(asked.request.after_namespace_revision, asked.request.history_id) for asked in service.calls(WATCH)]
    assert asked == [(3, ""), (5, HISTORY), (5, HISTORY), (6, HISTORY)]


async def test_a_watch_that_begins_now_is_resumed_from_where_it_began(service: FakeService, memory: MemoryClient):
    service.will_answer(WATCH, [heartbeat(9), LOST], [heartbeat(10), change(10)])

    assert await revisions(memory, 1) == [10]

    first, second = (asked.request for asked in service.calls(WATCH))
    assert not first.HasField("after_namespace_revision")
    assert second.after_namespace_revision == 9


async def test_a_watch_from_a_token_insists_on_its_history(service: FakeService, memory: MemoryClient):
    service.will_answer(WATCH, [Refusal(grpc.StatusCode.FAILED_PRECONDITION, "HISTORY_CHANGED")])
    with pytest.raises(errors.HistoryChangedError):
        await revisions(memory, 1, after=ChangeToken("gone", 3))
    assert service.calls(WATCH)[0].request.history_id == "gone"


async def test_a_gap_in_a_watch_is_an_error(service: FakeService, memory: MemoryClient):
    service.will_answer(WATCH, [heartbeat(3), change(5)])
    with pytest.raises(IncompleteStreamError, match="3 to 5"):
        await revisions(memory, 1, after=3)


async def test_a_watch_gives_up_when_it_was_told_to(service: FakeService, memory: MemoryClient):
    service.will_answer(WATCH, [LOST])
    with pytest.raises(MemoryUnavailableError):
        await revisions(memory, 1, give_up_after=0.05)
    assert len(service.calls(WATCH)) > 1


async def test_a_watch_waits_as_long_as_the_service_asks(
    service: FakeService, memory: MemoryClient, monkeypatch: pytest.MonkeyPatch
):
    waits: list[float] = []

    async def waited(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("durable_memory_client.aio.watch.sleep", waited)
    draining = Refusal(grpc.StatusCode.UNAVAILABLE, "NOT_SERVING", retry_after_ms=700)
    service.will_answer(WATCH, [draining], [LOST], [heartbeat(3), change(4)])

    assert await revisions(memory, 1, after=3) == [4]

    assert waits == [0.7, 0.01]


async def test_a_read_of_a_watch_that_was_given_up_loses_nothing(service: FakeService, memory: MemoryClient):
    service.will_answer(WATCH, [heartbeat(3), Forever()], [heartbeat(3), change(4), Forever()])
    async with memory.watch() as changes:
        waiting = asyncio.ensure_future(anext(changes))
        await wait_until_async(lambda: changes.position, what="the watch has begun")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert (await anext(changes)).change_token.namespace_revision == 4
    assert service.calls(WATCH)[1].request.after_namespace_revision == 3


async def test_a_watch_that_was_given_up_before_its_first_message_begins_at_a_later_now(
    service: FakeService, memory: MemoryClient
):
    service.will_answer(WATCH, [Forever()], [heartbeat(3), change(4), Forever()])
    async with memory.watch() as changes:
        waiting = asyncio.ensure_future(anext(changes))
        await wait_until_async(lambda: service.calls(WATCH), what="the watch has arrived")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert changes.position is None
        assert (await anext(changes)).change_token.namespace_revision == 4
    assert not service.calls(WATCH)[1].request.HasField("after_namespace_revision")


async def test_a_watch_of_a_client_that_is_closed_says_so(service: FakeService, memory: MemoryClient):
    service.will_answer(WATCH, [heartbeat(3), Forever()])
    changes = memory.watch()
    reader = asyncio.create_task(_read(changes))
    await wait_until_async(lambda: changes.position, what="the watch has begun")

    await memory.close()

    with pytest.raises(RuntimeError, match="closed"):
        await reader


async def test_the_position_of_a_watch_is_what_has_been_read(service: FakeService, memory: MemoryClient):
    service.will_answer(WATCH, [heartbeat(3), change(4), Forever()])
    async with memory.watch() as changes:
        assert changes.position is None
        await anext(changes)
        assert changes.position == ChangeToken(HISTORY, 4)


async def test_closing_a_watch_ends_the_iteration_of_a_waiting_reader(service: FakeService, memory: MemoryClient):
    service.will_answer(WATCH, [heartbeat(3), Forever()])
    changes = memory.watch()
    reader = asyncio.create_task(_read(changes))
    await wait_until_async(lambda: changes.position, what="the watch has begun")

    await changes.close()

    assert await asyncio.wait_for(reader, 60.0) == []


async def _read(changes) -> list:
    return [change async for change in changes]


async def test_a_cancelled_reader_of_a_watch_is_cancelled(service: FakeService, memory: MemoryClient):
    service.will_answer(WATCH, [heartbeat(3), Forever()])
    async with memory.watch() as changes:
        reader = asyncio.create_task(_read(changes))
        await wait_until_async(lambda: changes.position, what="the watch has begun")
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader


def test_a_watch_of_the_blocking_twin_can_be_closed_from_another_thread(
    service: FakeService, blocking_memory: BlockingMemoryClient
):
    service.will_answer(WATCH, [heartbeat(3), change(4), Forever()])
    changes = blocking_memory.watch()
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.extend(c.change_token.namespace_revision for c in changes))
    reader.start()
    wait_until(lambda: seen, what="the watch has begun")

    changes.close()

    reader.join(60.0)
    assert not reader.is_alive()
    assert seen == [4]


def test_a_watch_of_the_blocking_twin_goes_on_when_a_server_that_stops_has_ended_it(
    service: FakeService, blocking_memory: BlockingMemoryClient
):
    service.will_answer(WATCH, [heartbeat(3), change(4), CUT], [heartbeat(4), change(5)])
    with blocking_memory.watch(after=3) as changes:
        assert [next(changes).change_token.namespace_revision for _ in range(2)] == [4, 5]


def test_a_watch_of_the_blocking_twin_that_is_closed_while_it_begins_ends(
    service: FakeService, blocking_memory: BlockingMemoryClient, monkeypatch: pytest.MonkeyPatch
):
    service.will_answer(WATCH, [Forever()])
    changes = blocking_memory.watch()
    begin = blocking_memory._calls.stream

    def begun_and_closed(*arguments: Any, **options: Any) -> Any:
        stream = begin(*arguments, **options)
        changes.close()
        return stream

    monkeypatch.setattr(blocking_memory._calls, "stream", begun_and_closed)
    seen: list[Any] = []
    reader = threading.Thread(target=lambda: seen.extend(changes), daemon=True)
    reader.start()

    reader.join(60.0)
    assert not reader.is_alive()
    assert seen == []
