"""When memory is down: the caller's choice between an error and an empty, marked recall."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from durable_memory_client import MemoryClient, MemoryUnavailableError, errors, recall_all
from durable_memory_client.aio import calls
from durable_memory_client.aio.run import MemoryRun
from durable_memory_client.aio.transport import Gate
from durable_memory_client.call_policy import Limit, RetryPolicy
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durable_memory_client.sync import calls as blocking_calls
from durablememory.v1 import recall_service_pb2, session_service_pb2
from tests.clients.python.conftest import StandingClock
from tests.clients.python.fake_service import FakeService, Forever, Held, Refusal
from tests.clients.python.messages import admitted, begun, hit, hit_value, opened, recalled, recorded
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until, wait_until_async

OPEN, BEGIN, END = "SessionService.OpenSession", "SessionService.BeginRun", "SessionService.EndRun"
RECALL, ADMIT, USE = "RecallService.ActiveRecall", "RecallService.AdmitMemories", "RecallService.RecordUse"

DOWN = Refusal(grpc.StatusCode.UNAVAILABLE)


@pytest.fixture(autouse=True)
def a_working_service(service: FakeService) -> None:
    service.will_answer(OPEN, opened())
    service.will_answer(BEGIN, begun())
    service.will_answer(END, session_service_pb2.EndRunResponse(run=begun().run))
    service.will_answer(RECALL, recalled(hit()))
    service.will_answer(ADMIT, recall_service_pb2.AdmitMemoriesResponse(outcomes=[admitted()], next_context_id="next"))
    service.will_answer(USE, recall_service_pb2.RecordUseResponse(outcomes=[recorded()]))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test does while an outage lasts, and what must be answered, has the time that it takes."""
    for twin in (calls, blocking_calls):
        monkeypatch.setattr(twin, "PATIENCE_SECONDS", 60.0)
        monkeypatch.setattr(twin, "OUTAGE_PAUSE_SECONDS", 3_600.0)


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch, patience: None) -> None:
    monkeypatch.setattr(calls, "OUTAGE_PAUSE_SECONDS", 0.0)


async def test_by_default_an_outage_is_an_error(service: FakeService, memory: MemoryClient):
    service.will_answer(RECALL, Refusal(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"))
    session = await memory.open_session("assistant")
    async with session.run("turn-17") as run:
        with pytest.raises(MemoryUnavailableError):
            await run.recall("tea")


async def test_a_recall_may_come_back_empty_and_marked(service: FakeService, memory: MemoryClient):
    service.will_answer(RECALL, DOWN)
    session = await memory.open_session("assistant")
    async with session.run("turn-17") as run:
        recall = await run.recall("tea", on_unavailable="empty")

    assert (recall.hits, recall.unavailable, recall.mode_used) == ((), True, None)
    assert isinstance(recall.error, MemoryUnavailableError)


async def test_a_recall_that_finds_nothing_is_no_outage(service: FakeService, memory: MemoryClient):
    service.will_answer(RECALL, recalled())
    session = await memory.open_session("assistant", on_unavailable="empty")
    async with session.run("turn-17") as run:
        recall = await run.recall("tea")

    assert (recall.hits, recall.unavailable, recall.error) == ((), False, None)


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (Refusal(grpc.StatusCode.FAILED_PRECONDITION, "SESSION_CLOSED"), errors.SessionClosedError),
        (Refusal(grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED"), errors.PermissionDeniedError),
        (Refusal(grpc.StatusCode.UNAVAILABLE, "SEMANTIC_UNAVAILABLE"), errors.SemanticUnavailableError),
        (Refusal(grpc.StatusCode.INTERNAL, "INTERNAL"), errors.InternalError),
    ],
)
async def test_a_refusal_is_no_outage(
    refusal: Refusal, kind: type[Exception], service: FakeService, memory: MemoryClient
):
    service.will_answer(RECALL, refusal)
    session = await memory.open_session("assistant", on_unavailable="empty")
    async with session.run("turn-17") as run:
        with pytest.raises(kind):
            await run.recall("tea")


async def test_a_turn_works_while_nobody_listens():
    async with MemoryClient(f"127.0.0.1:{free_port()}", tenant="acme", on_unavailable="empty") as memory:
        session = await memory.open_session("assistant")
        async with session.run("turn-17") as run:
            recall = await run.recall("tea", admit=True)
            admission = await run.admit([hit_value()])
            assert await run.record_use([]) == []
            assert run.evidence("I prefer tea.").uri == "session:assistant/turn/turn-17"
            with pytest.raises(MemoryUnavailableError):
                await memory.remember("What is lost when nobody hears it is an error.", timeout=0.5)
    assert recall.unavailable
    assert (admission.unavailable, admission.hits) == (True, ())


def test_a_turn_of_the_blocking_twin_works_while_nobody_listens():
    with BlockingMemoryClient(f"127.0.0.1:{free_port()}", tenant="acme", on_unavailable="empty") as memory:
        session = memory.open_session("assistant")
        with session.run("turn-17") as run:
            assert run.recall("tea").unavailable


async def test_what_an_outage_kept_from_opening_is_opened_by_the_first_recall_that_gets_through(
    service: FakeService, memory: MemoryClient, no_pause: None
):
    service.will_answer(OPEN, DOWN, DOWN, DOWN, DOWN, opened())
    session = await memory.open_session("assistant", max_results=5, on_unavailable="empty")
    with pytest.raises(RuntimeError, match="not open"):
        _ = session.info

    async with session.run("turn-17") as run:
        recall = await run.recall("tea")

    assert [hit.content for hit in recall] == ["The user prefers tea."]
    assert session.info.session_id == "assistant"
    assert len({asked.request.SerializeToString() for asked in service.calls(OPEN)}) == 1
    assert len(service.calls(END)) == 1


async def test_while_an_outage_lasts_a_turn_does_not_wait_for_it_again(service: FakeService, memory: MemoryClient):
    service.will_answer(RECALL, DOWN)
    session = await memory.open_session("assistant", on_unavailable="empty")
    async with session.run("turn-17") as run:
        await run.recall("tea")
        attempts = len(service.calls(RECALL))
        recall = await run.recall("coffee", admit=True)

    assert recall.unavailable
    assert len(service.calls(RECALL)) == attempts == 2
    # The error speaks of this call, which was never sent, and not of the one that met the outage.
    assert recall.error is not None
    assert (recall.error.request_id, recall.error.attempts, recall.error.definite) == (None, 0, True)


async def test_an_outage_is_over_with_the_first_answer(service: FakeService, memory: MemoryClient):
    service.will_answer(RECALL, DOWN, DOWN, recalled(hit()))
    session = await memory.open_session("assistant", on_unavailable="empty")
    async with session.run("turn-17") as run:
        assert (await run.recall("tea")).unavailable
        await memory.get_change_token()
        assert not (await run.recall("tea")).unavailable


async def test_a_service_that_never_answers_costs_a_bounded_time(
    service: FakeService, memory: MemoryClient, monkeypatch: pytest.MonkeyPatch
):
    service.will_answer(RECALL, Forever())
    session = await memory.open_session("assistant", on_unavailable="empty")
    async with session.run("turn-17") as run:
        monkeypatch.setattr(calls, "PATIENCE_SECONDS", 0.5)
        assert (await run.recall("tea")).unavailable
    # It was the patience that ended, and not the deadline that a call has by default.
    assert all(asked.seconds_left is not None and asked.seconds_left < 1.0 for asked in service.calls(RECALL))


CALLS_OF_A_RUN: dict[str, Callable[[MemoryRun, float | None], Awaitable[Any]]] = {
    "begin": lambda run, timeout: run.begin(timeout=timeout),
    "recall": lambda run, timeout: run.recall("tea", timeout=timeout),
    "recall and admit": lambda run, timeout: run.recall("tea", admit=True, timeout=timeout),
    "admit": lambda run, timeout: run.admit([hit_value()], timeout=timeout),
    "record use": lambda run, timeout: run.record_use([hit_value()], timeout=timeout),
    "recall in the session": lambda run, timeout: run.session.recall("tea", timeout=timeout),
    "explain": lambda run, timeout: run.session.explain("prefers-tea", "tea", timeout=timeout),
    "rebind": lambda run, timeout: run.session.rebind(timeout=timeout),
    "close": lambda run, timeout: run.session.close(timeout=timeout),
}


@pytest.mark.parametrize(
    ("choice", "timeout", "seconds"), [("raise", None, 10), ("raise", 100, 100), ("empty", None, 60)]
)
@pytest.mark.parametrize("name", CALLS_OF_A_RUN)
async def test_opening_and_beginning_and_the_call_have_one_deadline(
    name: str,
    choice: calls.OnUnavailable,
    timeout: float | None,
    seconds: float,
    service: FakeService,
    memory: MemoryClient,
    clock: StandingClock,
    no_pause: None,
    monkeypatch: pytest.MonkeyPatch,
):
    service.will_answer(OPEN, DOWN)
    session = await memory.open_session("assistant", on_unavailable="empty")
    run = session.run("turn-17")
    session._on_unavailable = choice
    patient = choice == "empty" and ("recall" in name or name == "admit")
    limit = seconds if choice == "raise" or patient else 10
    monkeypatch.setattr(RetryPolicy, "backoff", lambda self, attempt: limit * 0.3)
    service.will_answer(OPEN, DOWN, opened())
    service.asked.clear()

    await CALLS_OF_A_RUN[name](run, timeout)

    first, *others = (asked.seconds_left or math.inf for asked in service.asked)
    # Of the client's time some passes between the attempts to open alone. The header that carries it is rounded up.
    assert first < limit * 1.1
    assert first > 11 or limit == 10
    assert len(others) >= 2
    assert max(others) < limit * 0.8


async def test_a_recall_does_not_wait_for_the_admission_of_somebody_else(service: FakeService, memory: MemoryClient):
    service.will_answer(ADMIT, Forever())
    session = await memory.open_session("assistant")
    async with session.run("turn-17") as run:
        admitting = asyncio.create_task(run.admit([hit_value()], timeout=600.0))
        await wait_until_async(lambda: service.calls(ADMIT), what="the admission arrived")

        assert len(await run.recall("tea", timeout=60.0)) == 1

        assert not admitting.done()
        admitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await admitting


def assert_was_never_sent(error: MemoryUnavailableError | None) -> None:
    assert isinstance(error, errors.DeadlineExceededError)
    assert (error.attempts, error.definite, error.request_id) == (0, True, None)


async def test_waiting_for_the_admission_of_somebody_else_ends_at_the_deadline_and_is_no_outage(
    service: FakeService, memory: MemoryClient, monkeypatch: pytest.MonkeyPatch
):
    service.will_answer(ADMIT, Forever())
    session = await memory.open_session("assistant")
    async with session.run("turn-17") as run:
        admitting = asyncio.create_task(run.admit([hit_value()], timeout=600.0))
        await wait_until_async(lambda: service.calls(ADMIT), what="the admission arrived")

        with pytest.raises(errors.DeadlineExceededError) as caught:
            await run.admit([hit_value()], timeout=0.1)
        assert_was_never_sent(caught.value)
        with monkeypatch.context() as patch:
            patch.setattr(calls, "PATIENCE_SECONDS", 0.1)
            assert_was_never_sent((await run.admit([hit_value()], on_unavailable="empty")).error)
        assert not (await run.recall("tea", on_unavailable="empty")).unavailable

        admitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await admitting
    assert len(service.calls(ADMIT)) == 1


def test_waiting_of_the_blocking_twin_ends_at_the_deadline_too(
    service: FakeService, blocking_memory: BlockingMemoryClient
):
    held = Held(recall_service_pb2.AdmitMemoriesResponse(outcomes=[admitted()], next_context_id="next"))
    service.will_answer(ADMIT, held)
    session = blocking_memory.open_session("assistant")
    with ThreadPoolExecutor(1) as pool, session.run("turn-17") as run:
        admitting = pool.submit(run.admit, [hit_value()], timeout=600.0)
        wait_until(lambda: service.calls(ADMIT), what="the admission arrived")

        try:
            with pytest.raises(errors.DeadlineExceededError) as caught:
                run.admit([hit_value()], timeout=0.1)
        finally:
            held.let_go.set()
        assert_was_never_sent(caught.value)
        assert len(admitting.result(60.0).hits) == 1
    assert len(service.calls(ADMIT)) == 1


async def test_those_who_wait_for_a_session_to_open_wait_no_longer_than_alone(
    service: FakeService, memory: MemoryClient, no_pause: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(calls, "PATIENCE_SECONDS", 1.0)
    service.will_answer(OPEN, Forever())
    session = await memory.open_session("assistant", on_unavailable="empty")

    # One after the other would take five minutes.
    async with asyncio.timeout(60.0):
        recalls = await asyncio.gather(*(session.recall("tea") for _ in range(300)))

    assert all(recall.unavailable for recall in recalls)


async def test_a_caller_in_a_hurry_makes_no_outage_for_the_others(service: FakeService, memory: MemoryClient):
    service.will_answer(RECALL, Forever())
    session = await memory.open_session("assistant", on_unavailable="empty")
    async with session.run("turn-17") as run:
        assert (await run.recall("tea", timeout=0.05)).unavailable
        service.will_answer(RECALL, recalled(hit()))
        assert not (await run.recall("tea")).unavailable


LATE = Refusal(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")


@pytest.mark.parametrize(("answer", "is_outage"), [(LATE, False), (DOWN, True)], ids=["late", "down"])
async def test_who_had_little_time_after_a_wait_for_another_call_makes_no_outage_for_the_others(
    answer: Refusal, is_outage: bool, service: FakeService, memory: MemoryClient, monkeypatch: pytest.MonkeyPatch
):
    held = Held(recall_service_pb2.AdmitMemoriesResponse(outcomes=[admitted()], next_context_id="next"))
    service.will_answer(ADMIT, held, answer)
    session = await memory.open_session("assistant")
    limit = calls.patient()
    async with session.run("turn-17") as run:
        admitting = asyncio.create_task(run.admit([hit_value()], timeout=600.0))
        try:
            await wait_until_async(lambda: service.calls(ADMIT), what="the admission arrived")
            monkeypatch.setattr(calls, "patient", lambda timeout=None: limit)
            waiting = asyncio.create_task(run.admit([hit_value()], on_unavailable="empty"))
            await wait_until_async(lambda: limit.waited, what="another admission waits for it")
        finally:
            held.let_go.set()
        error = (await waiting).error

        assert error is not None
        assert (error.code, error.attempts > 0) == (answer.code, True)
        assert (await session.recall("tea", on_unavailable="empty")).unavailable is is_outage
        assert len((await admitting).hits) == 1


def test_who_had_little_time_after_a_wait_in_the_blocking_twin_makes_no_outage_either(
    service: FakeService, blocking_memory: BlockingMemoryClient, monkeypatch: pytest.MonkeyPatch
):
    held = Held(recall_service_pb2.AdmitMemoriesResponse(outcomes=[admitted()], next_context_id="next"))
    service.will_answer(ADMIT, held, LATE)
    session = blocking_memory.open_session("assistant")
    limit = blocking_calls.patient()
    with ThreadPoolExecutor(2) as pool, session.run("turn-17") as run:
        admitting = pool.submit(run.admit, [hit_value()], timeout=600.0)
        try:
            wait_until(lambda: service.calls(ADMIT), what="the admission arrived")
            monkeypatch.setattr(blocking_calls, "patient", lambda timeout=None: limit)
            waiting = pool.submit(run.admit, [hit_value()], on_unavailable="empty")
            wait_until(lambda: limit.waited, what="another admission waits for it")
        finally:
            held.let_go.set()
        error = waiting.result(60.0).error

        assert error is not None
        assert (error.code, error.attempts) == (LATE.code, 1)
        assert not session.recall("tea", on_unavailable="empty").unavailable
        assert len(admitting.result(60.0).hits) == 1


async def test_who_comes_while_a_call_is_given_its_turn_waits_for_it():
    gate, limits = Gate(), [Limit(600.0) for _ in range(3)]

    async def entering(limit: Limit) -> None:
        async with gate.entered(limit):
            pass

    async with gate.entered(limits[0]):
        waiting = asyncio.create_task(entering(limits[1]))
        await wait_until_async(lambda: limits[1].waited, what="one waits")
    # It is its turn, and it has not run yet.
    await entering(limits[2])
    await waiting

    assert [limit.waited for limit in limits] == [False, True, True]


def test_an_outage_that_another_thread_ends_meanwhile_is_over(
    service: FakeService, blocking_memory: BlockingMemoryClient, monkeypatch: pytest.MonkeyPatch
):
    service.will_answer(RECALL, DOWN, DOWN, recalled(hit()))
    session = blocking_memory.open_session("assistant", on_unavailable="empty")

    def time_in_which_another_call_is_answered() -> float:
        blocking_memory._calls._outage = None
        return time.monotonic()

    with session.run("turn-17") as run:
        assert run.recall("tea").unavailable
        clock = SimpleNamespace(monotonic=time_in_which_another_call_is_answered)
        monkeypatch.setattr(blocking_calls, "time", clock)
        run.recall("tea")
        assert not run.recall("tea").unavailable


async def test_one_namespace_out_of_reach_leaves_the_hits_of_the_other(service: FakeService, memory: MemoryClient):
    service.will_answer(RECALL, recalled(hit()), DOWN)
    session = await memory.open_session("assistant", on_unavailable="empty")
    async with session.run("one") as one, session.run("two") as two:
        first = await recall_all([one], "tea")
        merged = await recall_all([one, two], "tea")

    assert (len(first), first.unavailable) == (1, False)
    assert merged.unavailable
    assert merged.errors


async def test_an_error_in_one_namespace_is_the_error_of_the_call(service: FakeService, memory: MemoryClient):
    service.will_answer(RECALL, recalled(hit()), Refusal(grpc.StatusCode.FAILED_PRECONDITION, "SESSION_CLOSED"))
    session = await memory.open_session("assistant")
    async with session.run("one") as one, session.run("two") as two:
        with pytest.raises(errors.SessionClosedError):
            await recall_all([one, two], "tea")
