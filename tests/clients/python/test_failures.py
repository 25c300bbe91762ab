"""What the error of a failed call says: its class and reason, and whether the call certainly changed nothing."""

import grpc
import pytest

from durable_memory_client import MemoryClient, MemoryServiceError, MemoryUnavailableError, errors
from tests.clients.python.fake_service import FakeService, Refusal
from tests.clients.python.refusals import CONFLICT, LOST
from tests.processes.free_port import free_port

REMEMBER = "MemoryService.Remember"
GET_CHANGE_TOKEN = "RepositoryService.GetChangeToken"

pytestmark = pytest.mark.usefixtures("hasty_backoff")


async def test_a_refusal_of_the_only_attempt_is_as_definite_as_the_table_says(
    service: FakeService, memory: MemoryClient
):
    service.will_answer(REMEMBER, CONFLICT)

    with pytest.raises(errors.RevisionConflictError) as caught:
        await memory.remember("The user prefers tea.")

    error = caught.value
    assert (error.definite, error.attempts) == (True, 1)
    assert error.metadata == {"expected": "3", "actual": "4"}
    assert error.request_id == service.calls(REMEMBER)[0].request.request_id
    assert error.method == REMEMBER


async def test_a_refusal_after_a_lost_attempt_is_not_definite(service: FakeService, memory: MemoryClient):
    service.will_answer(REMEMBER, LOST, CONFLICT)

    with pytest.raises(errors.RevisionConflictError) as caught:
        await memory.remember("The user prefers tea.")

    assert (caught.value.definite, caught.value.attempts) == (False, 2)


async def test_attempts_that_a_proxy_made_count_too(service: FakeService, memory: MemoryClient):
    headers = (("x-envoy-attempt-count", "2"),)
    service.will_answer(REMEMBER, Refusal(grpc.StatusCode.ABORTED, "REVISION_CONFLICT", headers=headers))

    with pytest.raises(errors.RevisionConflictError) as caught:
        await memory.remember("The user prefers tea.")

    assert (caught.value.definite, caught.value.attempts) == (False, 2)


async def test_a_failed_read_has_changed_nothing_however_often_it_was_tried(service: FakeService, memory: MemoryClient):
    service.will_answer(GET_CHANGE_TOKEN, LOST)

    with pytest.raises(MemoryUnavailableError) as caught:
        await memory.get_change_token()

    assert caught.value.attempts > 1
    assert (caught.value.definite, caught.value.request_id) == (True, None)


async def test_a_reason_of_a_newer_server_is_kept(service: FakeService, memory: MemoryClient):
    service.will_answer(REMEMBER, Refusal(grpc.StatusCode.ABORTED, "SOMETHING_NEW", {"detail": "7"}))

    with pytest.raises(MemoryServiceError) as caught:
        await memory.remember("The user prefers tea.")

    assert type(caught.value) is MemoryServiceError
    assert caught.value.reason == "SOMETHING_NEW"
    assert caught.value.metadata == {"detail": "7"}
    assert caught.value.definite is False


async def test_an_unknown_reason_for_an_outage_is_an_outage(service: FakeService, memory: MemoryClient):
    service.will_answer(GET_CHANGE_TOKEN, Refusal(grpc.StatusCode.UNAVAILABLE, "SOMETHING_NEW"))

    with pytest.raises(MemoryUnavailableError):
        await memory.get_change_token()


async def test_a_reason_of_another_domain_is_not_taken_for_ours(service: FakeService, memory: MemoryClient):
    service.will_answer(REMEMBER, Refusal(grpc.StatusCode.ABORTED, "REVISION_CONFLICT", domain="proxy.example"))

    with pytest.raises(MemoryServiceError) as caught:
        await memory.remember("The user prefers tea.")

    assert (caught.value.reason, caught.value.definite) == (None, False)


async def test_nobody_listening_is_an_outage(monkeypatch: pytest.MonkeyPatch):
    async with MemoryClient(f"127.0.0.1:{free_port()}", tenant="acme") as memory:
        with pytest.raises(MemoryUnavailableError) as caught:
            await memory.get_change_token()
    assert caught.value.reason is None
