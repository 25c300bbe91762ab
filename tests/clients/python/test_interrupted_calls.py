"""Calls that are cancelled, cannot be sent again, or whose client is closed: no error claims to know what it cannot."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from durable_memory_client import MemoryClient, MemoryServiceError, MemoryUnavailableError
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from tests.clients.python.fake_service import FakeService, Forever
from tests.clients.python.refusals import LOST
from tests.processes.polling import wait_until, wait_until_async

REMEMBER = "MemoryService.Remember"

pytestmark = pytest.mark.usefixtures("hasty_backoff")


async def test_a_cancelled_call_is_cancelled_at_the_service_and_not_repeated(
    service: FakeService, memory: MemoryClient
):
    running = Forever()
    service.will_answer(REMEMBER, running)
    call = asyncio.create_task(memory.remember("The user prefers tea.", timeout=600.0))
    await wait_until_async(lambda: service.calls(REMEMBER), what="the call arrived")

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await wait_until_async(running.left.is_set, what="the call ended at the service")
    assert len(service.calls(REMEMBER)) == 1


async def test_a_closed_client_says_so(service: FakeService):
    memory = MemoryClient(service.address)
    await memory.get_change_token()
    await memory.close()

    with pytest.raises(RuntimeError, match="closed"):
        await memory.get_change_token()


def assert_says_what_is_unknown(error: MemoryServiceError, service: FakeService, cause: type[Exception]) -> None:
    """The error is of the attempt that was sent; what kept it from being repeated is only its cause."""
    (asked,) = service.calls(REMEMBER)
    assert isinstance(error, MemoryUnavailableError)
    assert (error.definite, error.attempts, error.request_id) == (False, 1, asked.request.request_id)
    assert isinstance(error.__cause__, cause)


async def test_a_change_that_runs_when_its_client_is_closed_may_have_been_made(service: FakeService):
    service.will_answer(REMEMBER, Forever())
    memory = MemoryClient(service.address)
    call = asyncio.create_task(memory.remember("The user prefers tea."))
    await wait_until_async(lambda: service.calls(REMEMBER), what="the call arrived")

    await memory.close()

    with pytest.raises(MemoryUnavailableError) as caught:
        await call
    assert_says_what_is_unknown(caught.value, service, RuntimeError)


def test_a_change_of_the_blocking_twin_that_runs_when_its_client_is_closed_may_have_been_made(service: FakeService):
    service.will_answer(REMEMBER, Forever())
    memory = BlockingMemoryClient(service.address)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(memory.remember, "The user prefers tea.")
        wait_until(lambda: service.calls(REMEMBER), what="the call arrived")

        memory.close()

        with pytest.raises(MemoryUnavailableError) as caught:
            call.result(60.0)
    assert_says_what_is_unknown(caught.value, service, RuntimeError)


async def test_an_import_that_runs_when_its_client_is_closed_may_have_been_made(service: FakeService):
    service.will_answer("TransferService.ImportNamespace", Forever())
    memory = MemoryClient(service.address)
    call = asyncio.create_task(memory.import_namespace([], request_id="import-1"))
    await wait_until_async(lambda: service.asked, what="the call arrived")

    await memory.close()

    with pytest.raises(MemoryUnavailableError) as caught:
        await call
    assert (caught.value.definite, caught.value.request_id) == (False, "import-1")


async def test_a_stream_that_runs_when_its_client_is_closed_fails(service: FakeService):
    service.will_answer("RepositoryService.Snapshot", [Forever()])
    memory = MemoryClient(service.address)
    reader = asyncio.create_task(memory.snapshot().all())
    await wait_until_async(lambda: service.asked, what="the call arrived")

    await memory.close()

    with pytest.raises(MemoryUnavailableError):
        await reader


def test_a_call_of_the_blocking_twin_that_is_begun_while_its_client_is_closed_says_so(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
):
    memory = BlockingMemoryClient(service.address)
    opened = memory._transport._open

    def opened_and_closed() -> grpc.Channel:
        channel = opened()
        memory.close()
        return channel

    monkeypatch.setattr(memory._transport, "_open", opened_and_closed)
    with pytest.raises(RuntimeError, match="client is closed"):
        memory.get_change_token()


def without_a_second_token() -> Callable[[], str]:
    tokens = ["first"]

    def token() -> str:
        if not tokens:
            raise PermissionError("no token any more")
        return tokens.pop()

    return token


async def test_a_token_that_is_gone_does_not_hide_what_became_of_the_attempt_before(service: FakeService):
    service.will_answer(REMEMBER, LOST)
    async with MemoryClient(service.address, without_a_second_token()) as memory:
        with pytest.raises(MemoryUnavailableError) as caught:
            await memory.remember("The user prefers tea.")
    assert_says_what_is_unknown(caught.value, service, PermissionError)


async def test_what_keeps_a_call_from_being_sent_at_all_is_its_error(service: FakeService):
    token = without_a_second_token()
    token()
    async with MemoryClient(service.address, token) as memory:
        with pytest.raises(PermissionError):
            await memory.remember("The user prefers tea.")
    assert service.asked == []


def test_a_client_in_another_event_loop_says_so(service: FakeService):
    memory = MemoryClient(service.address)
    asyncio.run(memory.get_change_token())

    async def elsewhere() -> None:
        with pytest.raises(RuntimeError, match="another event loop"):
            await memory.get_change_token()
        await memory.close()

    asyncio.run(elsewhere())
