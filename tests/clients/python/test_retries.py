"""What the client repeats by itself, how often, after which wait, and with which request id."""

from uuid import UUID

import grpc
import pytest

from durable_memory_client import MemoryClient, MemoryServiceError, MemoryUnavailableError, errors
from durable_memory_client import call_policy as call_policies
from durable_memory_client.call_policy import call_policy
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durablememory.v1 import repository_service_pb2
from tests.clients.python.conftest import StandingClock
from tests.clients.python.fake_service import FakeService, Refusal
from tests.clients.python.messages import remembered
from tests.clients.python.refusals import CONFLICT, CUT, LOST, NOT_SERVING

REMEMBER = "MemoryService.Remember"
GET_CHANGE_TOKEN = "RepositoryService.GetChangeToken"

OUTCOME_UNKNOWN = Refusal(grpc.StatusCode.UNAVAILABLE, "OUTCOME_UNKNOWN")
IN_PROGRESS = Refusal(grpc.StatusCode.ABORTED, "REQUEST_IN_PROGRESS", retry_after_ms=10)
OVERLOADED = Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", retry_after_ms=10)

pytestmark = pytest.mark.usefixtures("hasty_backoff")


@pytest.mark.parametrize("obstacle", [LOST, CUT, OUTCOME_UNKNOWN, NOT_SERVING, IN_PROGRESS, OVERLOADED])
async def test_what_may_pass_is_repeated_with_the_same_request_id(
    obstacle: Refusal, service: FakeService, memory: MemoryClient
):
    service.will_answer(REMEMBER, obstacle, obstacle, remembered())

    await memory.remember("The user prefers tea.")

    attempts = [asked.request for asked in service.calls(REMEMBER)]
    assert len(attempts) == 3
    assert attempts[0] == attempts[1] == attempts[2]
    assert UUID(attempts[0].request_id).version == 7


def test_the_blocking_twin_repeats_alike(service: FakeService, blocking_memory: BlockingMemoryClient):
    service.will_answer(REMEMBER, CUT, IN_PROGRESS, remembered())

    blocking_memory.remember("The user prefers tea.")

    assert len({asked.request.request_id for asked in service.calls(REMEMBER)}) == 1
    assert len(service.calls(REMEMBER)) == 3


async def test_a_caller_may_state_the_request_id(service: FakeService, memory: MemoryClient):
    service.will_answer(REMEMBER, remembered())

    await memory.remember("The user prefers tea.", request_id="turn-17/1")

    assert service.calls(REMEMBER)[0].request.request_id == "turn-17/1"


async def test_the_token_is_asked_for_at_every_attempt(service: FakeService):
    tokens = iter(["first", "second", "third"])
    service.will_answer(GET_CHANGE_TOKEN, LOST, repository_service_pb2.GetChangeTokenResponse())
    async with MemoryClient(service.address, lambda: next(tokens)) as memory:
        await memory.get_change_token()

    sent = [asked.headers["authorization"] for asked in service.calls(GET_CHANGE_TOKEN)]
    assert sent == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    "refusal",
    [
        CONFLICT,
        Refusal(grpc.StatusCode.FAILED_PRECONDITION, "NODE_FROZEN"),
        Refusal(grpc.StatusCode.ABORTED, "RUN_IDENTITY_CONFLICT", retry_after_ms=1),
        Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED"),
        Refusal(grpc.StatusCode.INTERNAL, "INTERNAL"),
        Refusal(grpc.StatusCode.ABORTED),
        Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED),
        Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", retry_after_ms=0),
    ],
)
async def test_nothing_else_is_ever_repeated(refusal: Refusal, service: FakeService, memory: MemoryClient):
    service.will_answer(REMEMBER, refusal)

    with pytest.raises(MemoryServiceError) as caught:
        await memory.remember("The user prefers tea.")

    assert len(service.calls(REMEMBER)) == 1
    assert caught.value.code is refusal.code


async def test_an_outage_is_given_up_after_the_attempts_of_the_policy(service: FakeService, memory: MemoryClient):
    service.will_answer(REMEMBER, LOST)

    with pytest.raises(MemoryUnavailableError) as caught:
        await memory.remember("The user prefers tea.")

    policy = call_policy("durablememory.v1.MemoryService", "Remember").retry
    assert policy is not None
    assert len(service.calls(REMEMBER)) == policy.max_attempts == caught.value.attempts


async def test_a_load_limit_is_respected_until_the_deadline(
    service: FakeService, memory: MemoryClient, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(call_policies, "_spread", lambda seconds: seconds)
    monkeypatch.setattr(call_policies, "_RETRY_INFO_MAX_SECONDS", 100.0)
    service.will_answer(REMEMBER, Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", retry_after_ms=64_000))

    with pytest.raises(errors.OverloadedError) as caught:
        await memory.remember("The user prefers tea.", timeout=700.0)

    assert caught.value.retry_after == 64.0
    # Growing by half each time up to the bound, for as long as one more has its place before the deadline: oftener than
    # a policy for outages would.
    assert clock.waits == [64.0, 96.0, 100.0, 100.0, 100.0, 100.0, 100.0]
    assert len(service.calls(REMEMBER)) == len(clock.waits) + 1


def test_a_wait_is_bounded_however_often_a_call_was_tried():
    policy = call_policy("durablememory.v1.MemoryService", "Remember")
    error = errors.OverloadedError("", code=grpc.StatusCode.RESOURCE_EXHAUSTED, retry_after=0.01)
    delay = policy.delay(error, 100_000)
    assert delay is not None
    assert 1.0 < delay < 10.0
