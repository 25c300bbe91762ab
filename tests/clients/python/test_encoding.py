"""What has no form on the wire, on its way there or back, is no outage."""

from typing import Any, cast

import grpc
import pytest
from google.protobuf.message import EncodeError

from durable_memory_client import MemoryClient, MemoryServiceError, MemoryUnavailableError
from durable_memory_client.methods import METHODS
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durablememory.v1 import memory_service_pb2
from tests.clients.python.fake_service import FakeService

REMEMBER = "MemoryService.Remember"
GET_NODE = "RepositoryService.GetNode"
WATCH = "RepositoryService.WatchNamespace"
EXPORT = "TransferService.ExportNamespace"
IMPORT = "TransferService.ImportNamespace"
GARBLED = b"\xff"


def assert_is_no_outage(error: MemoryServiceError, *, definite: bool) -> None:
    assert not isinstance(error, MemoryUnavailableError)
    assert (error.code, error.reason, error.attempts) == (grpc.StatusCode.INTERNAL, None, 1)
    assert error.definite is definite
    assert "cannot be decoded" in error.message


async def test_an_answer_that_cannot_be_decoded_is_no_outage_and_not_asked_for_again(
    service: FakeService, memory: MemoryClient, blocking_memory: BlockingMemoryClient
):
    service.will_answer(REMEMBER, GARBLED)
    service.will_answer(GET_NODE, GARBLED)

    with pytest.raises(MemoryServiceError) as change:
        await memory.remember("The user prefers tea.", request_id="r-1")
    with pytest.raises(MemoryServiceError) as read:
        await memory.get_node("a")
    with pytest.raises(MemoryServiceError) as blocking_change:
        blocking_memory.remember("The user prefers tea.")
    with pytest.raises(MemoryServiceError) as blocking_read:
        blocking_memory.get_node("a")

    assert change.value.request_id == "r-1"
    assert_is_no_outage(change.value, definite=False)
    assert_is_no_outage(blocking_change.value, definite=False)
    assert_is_no_outage(read.value, definite=True)
    assert_is_no_outage(blocking_read.value, definite=True)
    assert len(service.asked) == 4


async def test_a_message_of_a_stream_that_cannot_be_decoded_ends_it_with_an_error(
    service: FakeService, memory: MemoryClient, blocking_memory: BlockingMemoryClient
):
    for method in (WATCH, EXPORT):
        service.will_answer(method, (GARBLED,))

    with pytest.raises(MemoryServiceError) as exported:
        [record async for record in memory.export_namespace()]
    with pytest.raises(MemoryServiceError) as blocking_exported:
        list(blocking_memory.export_namespace())
    async with memory.watch() as changes:
        with pytest.raises(MemoryServiceError) as watched:
            await anext(changes)
    with blocking_memory.watch() as blocking_changes, pytest.raises(MemoryServiceError) as blocking_watched:
        next(blocking_changes)

    for caught in (exported, blocking_exported, watched, blocking_watched):
        assert_is_no_outage(caught.value, definite=True)
    assert len(service.asked) == 4


async def test_an_import_whose_answer_cannot_be_decoded_may_have_happened(
    service: FakeService, memory: MemoryClient, blocking_memory: BlockingMemoryClient
):
    service.will_answer(IMPORT, GARBLED)

    with pytest.raises(MemoryServiceError) as imported:
        await memory.import_namespace([])
    with pytest.raises(MemoryServiceError) as blocking_imported:
        blocking_memory.import_namespace([])

    assert_is_no_outage(imported.value, definite=False)
    assert_is_no_outage(blocking_imported.value, definite=False)


async def test_an_answer_that_cannot_be_decoded_does_not_make_the_next_recall_an_empty_one(service: FakeService):
    service.will_answer("RecallService.PreviewRecall", GARBLED)
    async with MemoryClient(service.address, on_unavailable="empty") as memory:
        for _ in range(2):
            with pytest.raises(MemoryServiceError):
                await memory.preview("tea")

    assert len(service.asked) == 2


def test_a_request_that_cannot_be_encoded_is_refused_before_it_is_sent():
    class Unencodable:
        def SerializeToString(self) -> bytes:
            raise EncodeError("too deep")

    method = METHODS[memory_service_pb2.RememberRequest]
    with pytest.raises(ValueError, match=r"MemoryService\.Remember: the request cannot be encoded: too deep"):
        method.encode(cast(Any, Unencodable()))
