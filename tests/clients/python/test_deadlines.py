"""One deadline for all attempts of a call: the default's, or the caller's."""

import math
from collections.abc import Awaitable, Callable

import pytest

from durable_memory_client import MemoryClient, MemoryUnavailableError, Reason, errors
from durable_memory_client.aio import calls
from durable_memory_client.aio import refresh as refreshes
from durable_memory_client.call_policy import RetryPolicy, call_policy
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from tests.clients.python.conftest import StandingClock
from tests.clients.python.fake_service import FakeService, Forever
from tests.clients.python.messages import remembered
from tests.clients.python.refusals import LOST, NOT_SERVING

REMEMBER = "MemoryService.Remember"
REFRESH = "SemanticService.RefreshSemanticRecall"

pytestmark = pytest.mark.usefixtures("hasty_backoff")


async def test_the_deadline_is_of_all_attempts_together(
    service: FakeService, memory: MemoryClient, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(RetryPolicy, "backoff", lambda self, attempt: 20.0)
    service.will_answer(REMEMBER, LOST, LOST, remembered())

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
