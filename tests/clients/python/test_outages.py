"""When memory is down: the caller's choice between an error and an empty, marked recall."""

import time

import grpc
import pytest

from durable_memory_client import MemoryClient, MemoryUnavailableError, errors, recall_all
from durable_memory_client.aio import calls
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durablememory.v1 import session_service_pb2
from tests.clients.python.fake_service import FakeService, Forever, Refusal
from tests.clients.python.messages import begun, hit, hit_value, opened, recalled
from tests.processes.free_port import free_port

OPEN, BEGIN, END = "SessionService.OpenSession", "SessionService.BeginRun", "SessionService.EndRun"
RECALL, ADMIT = "RecallService.ActiveRecall", "RecallService.AdmitMemories"

DOWN = Refusal(grpc.StatusCode.UNAVAILABLE)


@pytest.fixture(autouse=True)
def a_working_service(service: FakeService) -> None:
    service.will_answer(OPEN, opened())
    service.will_answer(BEGIN, begun())
    service.will_answer(END, session_service_pb2.EndRunResponse(run=begun().run))
    service.will_answer(RECALL, recalled(hit()))


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(calls, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(calls.Patience.__init__, "__defaults__", (0.2, 2))
    service.will_answer(RECALL, Forever())
    session = await memory.open_session("assistant", on_unavailable="empty")
    started = time.monotonic()
    async with session.run("turn-17") as run:
        assert (await run.recall("tea")).unavailable
    assert time.monotonic() - started < 2.0


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
