"""The circuit breaker on a clock that is moved by hand."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from durable_memory.adapters.embedding.breaker import CircuitBreaker
from durable_memory.adapters.runtime import ManualClock
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure

_ILL = EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=True, status=503)


class _Provider:
    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.breaker = CircuitBreaker(self.clock, failures=3)
        self.calls = 0

    def call(self, error: BaseException | None = None, *, telling: bool = True) -> None:
        with self.breaker.call(telling=telling):
            self.calls += 1
            if error is not None:
                raise error

    def fail(self, times: int, error: EmbeddingError = _ILL, *, telling: bool = True) -> None:
        for _ in range(times):
            with pytest.raises(EmbeddingError) as failed:
                self.call(error, telling=telling)
            assert failed.value is error

    def is_left_alone(self) -> bool:
        before = self.calls
        try:
            self.call()
        except EmbeddingError as error:
            return (error.failure, error.retryable, self.calls) == (EmbeddingFailure.CIRCUIT_OPEN, True, before)
        return False

    def wait(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))


@pytest.fixture
def provider() -> _Provider:
    return _Provider()


def test_it_opens_after_so_many_failures_in_a_row(provider):
    provider.fail(2)
    provider.call()
    provider.fail(2)
    assert not provider.is_left_alone()
    provider.fail(3)
    assert provider.is_left_alone()


def test_after_a_while_one_call_is_let_through_and_closes_it(provider):
    provider.fail(3)
    provider.wait(9.9)
    assert provider.is_left_alone()
    provider.wait(0.2)
    assert not provider.is_left_alone()
    provider.fail(2)
    assert not provider.is_left_alone()


def test_while_one_tries_nobody_else_does(provider):
    provider.fail(3)
    provider.wait(11)
    with provider.breaker.call():
        assert provider.is_left_alone()
    assert not provider.is_left_alone()


def test_a_failed_try_opens_it_for_twice_as_long_up_to_a_bound(provider):
    provider.fail(3)
    for seconds in (10, 20, 30, 30):
        provider.wait(seconds - 0.1)
        assert provider.is_left_alone()
        provider.wait(0.2)
        provider.fail(1)
    provider.wait(31)
    provider.call()
    provider.fail(3)
    provider.wait(10.1)
    assert not provider.is_left_alone()


def test_a_try_that_is_cancelled_lets_the_next_one_try(provider):
    provider.fail(3)
    provider.wait(11)
    with pytest.raises(asyncio.CancelledError):
        provider.call(asyncio.CancelledError())
    assert not provider.is_left_alone()


def test_a_cancelled_call_is_no_failure(provider):
    for _ in range(5):
        with pytest.raises(asyncio.CancelledError):
            provider.call(asyncio.CancelledError())
    assert not provider.is_left_alone()


def test_a_failure_of_a_call_from_before_it_opened_changes_nothing(provider):
    late = provider.breaker.call()
    late.__enter__()
    provider.fail(3)
    provider.wait(5)
    assert late.__exit__(EmbeddingError, _ILL, None) is False
    provider.wait(5.1)
    assert not provider.is_left_alone()


@pytest.mark.parametrize(
    "error",
    [
        EmbeddingError(EmbeddingFailure.RATE_LIMITED, retryable=True, status=429),
        EmbeddingError(EmbeddingFailure.REFUSED, retryable=False, status=400),
        EmbeddingError(EmbeddingFailure.REFUSED, retryable=False, status=413),
    ],
)
def test_a_provider_that_limits_the_rate_or_refuses_an_input_is_well(provider, error):
    provider.fail(5, error)
    assert not provider.is_left_alone()


@pytest.mark.parametrize(
    "error",
    [
        EmbeddingError(EmbeddingFailure.REFUSED, retryable=False, status=401),
        EmbeddingError(EmbeddingFailure.TIMEOUT, retryable=True),
        EmbeddingError(EmbeddingFailure.WRONG_COUNT, retryable=True),
        EmbeddingError(EmbeddingFailure.UNREADABLE, retryable=True),
    ],
)
def test_a_provider_without_a_usable_answer_is_not(provider, error):
    provider.fail(3, error)
    assert provider.is_left_alone()


@pytest.mark.parametrize(
    "error",
    [
        EmbeddingError(EmbeddingFailure.TIMEOUT, retryable=True),
        EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=True, status=504),
        EmbeddingError(EmbeddingFailure.UNREACHABLE, retryable=True, status=408),
    ],
)
def test_that_calls_which_need_long_take_too_long_tells_nothing(provider, error):
    provider.fail(2)
    provider.fail(5, error, telling=False)
    assert not provider.breaker.is_open
    provider.fail(1)
    assert provider.breaker.is_open, "nor that it is well"


def test_what_else_they_fail_with_counts(provider):
    provider.fail(3, telling=False)
    assert provider.is_left_alone()


def test_no_such_call_is_the_one_that_tries(provider):
    provider.fail(3)
    provider.wait(11)
    with pytest.raises(EmbeddingError) as refused:
        provider.call(telling=False)
    assert refused.value.failure is EmbeddingFailure.CIRCUIT_OPEN
    assert not provider.is_left_alone()
    provider.call(telling=False)


def test_it_says_what_it_was_opened_by_and_keeps_no_frame_of_it(provider):
    provider.fail(3, EmbeddingError(EmbeddingFailure.REFUSED, retryable=False, status=401))
    with pytest.raises(EmbeddingError) as refused:
        provider.call()
    assert refused.value.facts == {"failure": "CIRCUIT_OPEN", "after": "REFUSED", "status": "401"}
    assert refused.value.after is not None
    assert refused.value.after.__traceback__ is None, "its frames hold texts"


def test_it_says_how_long_it_stays_open(provider):
    provider.fail(3)
    provider.wait(4)
    with pytest.raises(EmbeddingError) as refused:
        provider.call()
    assert refused.value.retry_after_seconds == pytest.approx(6)
