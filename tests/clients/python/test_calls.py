"""What the client does by itself: request ids, deadlines, repetitions, and what an error then says."""

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import grpc
import pytest

from durable_memory_client import MemoryClient, MemoryServiceError, MemoryUnavailableError, Reason, errors
from durable_memory_client import call_policy as call_policies
from durable_memory_client import identity as identities
from durable_memory_client.aio import calls
from durable_memory_client.aio import refresh as refreshes
from durable_memory_client.call_policy import RetryPolicy, call_policy
from durable_memory_client.identity import host_instance, new_request_id
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durablememory.v1 import memory_service_pb2, repository_service_pb2
from tests.clients.python.conftest import StandingClock
from tests.clients.python.fake_service import FakeService, Forever, Refusal
from tests.clients.python.messages import citation, token
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until, wait_until_async

REMEMBER = "MemoryService.Remember"
REFRESH = "SemanticService.RefreshSemanticRecall"
GET_CHANGE_TOKEN = "RepositoryService.GetChangeToken"

REMEMBERED = memory_service_pb2.RememberResponse(citation=citation(), change_token=token(1))
LOST = Refusal(grpc.StatusCode.UNAVAILABLE)
CUT = Refusal(grpc.StatusCode.CANCELLED)
"""How a server that stops ends a call that has reached it, and that it has not begun."""

OUTCOME_UNKNOWN = Refusal(grpc.StatusCode.UNAVAILABLE, "OUTCOME_UNKNOWN")
NOT_SERVING = Refusal(grpc.StatusCode.UNAVAILABLE, "NOT_SERVING", {"state": "draining"})
IN_PROGRESS = Refusal(grpc.StatusCode.ABORTED, "REQUEST_IN_PROGRESS", retry_after_ms=10)
OVERLOADED = Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", retry_after_ms=10)
CONFLICT = Refusal(grpc.StatusCode.ABORTED, "REVISION_CONFLICT", {"expected": "3", "actual": "4"})


@pytest.fixture(autouse=True)
def hasty_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "backoff", lambda self, attempt: 0.001)


@pytest.mark.parametrize("obstacle", [LOST, CUT, OUTCOME_UNKNOWN, NOT_SERVING, IN_PROGRESS, OVERLOADED])
async def test_what_may_pass_is_repeated_with_the_same_request_id(
    obstacle: Refusal, service: FakeService, memory: MemoryClient
):
    service.will_answer(REMEMBER, obstacle, obstacle, REMEMBERED)

    await memory.remember("The user prefers tea.")

    attempts = [asked.request for asked in service.calls(REMEMBER)]
    assert len(attempts) == 3
    assert attempts[0] == attempts[1] == attempts[2]
    assert UUID(attempts[0].request_id).version == 7


def test_the_blocking_twin_repeats_alike(service: FakeService, blocking_memory: BlockingMemoryClient):
    service.will_answer(REMEMBER, CUT, IN_PROGRESS, REMEMBERED)

    blocking_memory.remember("The user prefers tea.")

    assert len({asked.request.request_id for asked in service.calls(REMEMBER)}) == 1
    assert len(service.calls(REMEMBER)) == 3


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


async def test_the_deadline_is_of_all_attempts_together(
    service: FakeService, memory: MemoryClient, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(RetryPolicy, "backoff", lambda self, attempt: 20.0)
    service.will_answer(REMEMBER, LOST, LOST, REMEMBERED)

    await memory.remember("The user prefers tea.", timeout=100.0)

    first, second, third = (asked.seconds_left or math.inf for asked in service.calls(REMEMBER))
    # What is left when an attempt is sent; the header that carries it is rounded up.
    assert first < 110.0
    assert second < 90.0
    assert third < 70.0


async def test_a_wait_that_would_outlast_the_deadline_is_not_begun(
    service: FakeService, memory: MemoryClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(RetryPolicy, "backoff", lambda self, attempt: 600.0)
    service.will_answer(REMEMBER, NOT_SERVING)

    with pytest.raises(errors.NotServingError):
        await memory.remember("The user prefers tea.", timeout=60.0)

    assert len(service.calls(REMEMBER)) == 1


async def test_a_caller_s_deadline_replaces_the_default(service: FakeService, memory: MemoryClient):
    default = call_policy("durablememory.v1.MemoryService", "Remember").timeout
    assert default == 10.0

    await memory.remember("The user prefers tea.", timeout=600.0)
    (longer,) = service.calls(REMEMBER)
    service.will_answer(REMEMBER, Forever())
    with pytest.raises(errors.DeadlineExceededError) as caught:
        await memory.remember("The user prefers tea.", timeout=0.2)

    assert longer.seconds_left is not None
    assert longer.seconds_left > default + 1
    shorter = service.calls(REMEMBER)[1:]
    assert all(asked.seconds_left is not None and asked.seconds_left < 1.0 for asked in shorter)
    assert caught.value.reason == Reason.DEADLINE_EXCEEDED
    assert isinstance(caught.value, MemoryUnavailableError)
    assert caught.value.definite is False


KINDS_OF_CALLS: dict[str, Callable[[MemoryClient, float], Awaitable[object]]] = {
    "unary": lambda memory, timeout: memory.remember("The user prefers tea.", timeout=timeout),
    "stream": lambda memory, timeout: memory.snapshot(timeout=timeout).all(),
    "upload": lambda memory, timeout: memory.import_namespace([], timeout=timeout),
}


@pytest.mark.parametrize("timeout", [0, -1.0])
@pytest.mark.parametrize("kind", KINDS_OF_CALLS)
async def test_a_call_whose_time_is_over_is_not_sent_and_has_changed_nothing(
    kind: str, timeout: float, service: FakeService, memory: MemoryClient
):
    with pytest.raises(errors.DeadlineExceededError) as caught:
        await KINDS_OF_CALLS[kind](memory, timeout)

    error = caught.value
    assert (error.attempts, error.definite, error.request_id, error.method) == (0, True, None, "")
    assert service.asked == []


def test_a_call_of_the_blocking_twin_whose_time_is_over_is_not_sent_either(
    service: FakeService, blocking_memory: BlockingMemoryClient
):
    with pytest.raises(errors.DeadlineExceededError) as caught:
        blocking_memory.remember("The user prefers tea.", timeout=0)

    assert (caught.value.attempts, caught.value.definite) == (0, True)
    assert service.asked == []


async def test_a_wait_that_lasted_too_long_does_not_hide_what_became_of_the_attempt_before(
    service: FakeService, memory: MemoryClient, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
):
    async def oversleep(seconds: float) -> None:
        clock.now += seconds + 600.0

    for module in (calls, refreshes):
        monkeypatch.setattr(module, "sleep", oversleep)
    service.will_answer(REMEMBER, LOST)
    service.will_answer(REFRESH, [LOST])

    for changing in (
        memory.remember("The user prefers tea.", timeout=60.0),
        memory.refresh_semantic_recall("assistant", timeout=60.0).wait(),
    ):
        with pytest.raises(MemoryUnavailableError) as caught:
            await changing
        assert (caught.value.code, caught.value.attempts, caught.value.definite) == (LOST.code, 1, False)

    assert [asked.method for asked in service.asked] == [REMEMBER, REFRESH]


async def test_a_caller_may_state_the_request_id(service: FakeService, memory: MemoryClient):
    service.will_answer(REMEMBER, REMEMBERED)

    await memory.remember("The user prefers tea.", request_id="turn-17/1")

    assert service.calls(REMEMBER)[0].request.request_id == "turn-17/1"


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


async def test_the_token_is_asked_for_at_every_attempt(service: FakeService):
    tokens = iter(["first", "second", "third"])
    service.will_answer(GET_CHANGE_TOKEN, LOST, repository_service_pb2.GetChangeTokenResponse())
    async with MemoryClient(service.address, lambda: next(tokens)) as memory:
        await memory.get_change_token()

    sent = [asked.headers["authorization"] for asked in service.calls(GET_CHANGE_TOKEN)]
    assert sent == ["Bearer first", "Bearer second"]


async def test_the_trace_of_the_caller_is_passed_on(service: FakeService, memory: MemoryClient):
    from opentelemetry import trace

    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=trace.TraceFlags(1))
    with trace.use_span(trace.NonRecordingSpan(context)):
        await memory.get_change_token()

    traceparent = service.calls(GET_CHANGE_TOKEN)[0].headers["traceparent"]
    assert traceparent == f"00-{0xABC:032x}-{0xDEF:016x}-01"


def test_request_ids_are_unique_and_in_the_order_of_their_making(monkeypatch: pytest.MonkeyPatch):
    ids = [new_request_id() for _ in range(1_000)]
    assert len(set(ids)) == 1_000
    assert [request_id[:13] for request_id in ids] == sorted(request_id[:13] for request_id in ids)

    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert new_request_id()[:13] >= ids[-1][:13]


def test_the_host_instance_is_one_per_process(monkeypatch: pytest.MonkeyPatch):
    here = host_instance()
    assert host_instance() == here

    monkeypatch.setattr("os.getpid", lambda: -1)
    assert host_instance() != here


def test_threads_that_ask_first_at_the_same_time_are_of_one_host_instance(monkeypatch: pytest.MonkeyPatch):
    both_mint = threading.Barrier(2)

    def minted() -> str:
        both_mint.wait(60.0)
        return new_request_id()

    monkeypatch.setattr(identities, "_host", None)
    monkeypatch.setattr(identities, "new_request_id", minted)
    with ThreadPoolExecutor(2) as pool:
        here, there = pool.map(lambda _: host_instance(), range(2))
    assert here == there
