"""A chat turn: sessions, runs, admissions and uses, as the service is asked for them."""

import asyncio

import grpc
import pytest

from durable_memory_client import (
    Citation,
    IncompleteStreamError,
    MemoryClient,
    Namespace,
    RecallMode,
    admit_all,
    errors,
    recall_all,
    record_use_all,
)
from durable_memory_client.identity import host_instance
from durablememory.v1 import access_pb2, item_error_pb2, recall_service_pb2, session_service_pb2
from tests.clients.python.fake_service import FakeService, Refusal
from tests.clients.python.messages import (
    DIGEST,
    NAMESPACE,
    NOW,
    admitted,
    begun,
    hit,
    hit_value,
    opened,
    recalled,
    recorded,
)

OPEN, BEGIN, END = "SessionService.OpenSession", "SessionService.BeginRun", "SessionService.EndRun"
RECALL, ADMIT, USE = "RecallService.ActiveRecall", "RecallService.AdmitMemories", "RecallService.RecordUse"


@pytest.fixture(autouse=True)
def an_open_session(service: FakeService) -> None:
    service.will_answer(OPEN, opened())
    service.will_answer(BEGIN, begun(), begun(context_id="context-of-another-run"))
    service.will_answer(END, session_service_pb2.EndRunResponse(run=begun().run))
    service.will_answer(RECALL, recalled(hit()))


def admits(*outcomes: access_pb2.AdmissionOutcome, following: str) -> recall_service_pb2.AdmitMemoriesResponse:
    return recall_service_pb2.AdmitMemoriesResponse(outcomes=outcomes, next_context_id=following)


async def test_a_run_begins_and_ends_with_its_block(service: FakeService, memory: MemoryClient):
    session = await memory.open_session("assistant", max_results=5)
    async with session.run("turn-17") as run:
        assert (run.run_id, run.context_id, run.outcome) == ("turn-17", "context-0", "BEGUN")

    begin, end = service.calls(BEGIN)[0].request, service.calls(END)[0].request
    assert (begin.run_id, begin.host_instance) == ("turn-17", host_instance())
    assert (end.run_id, end.incarnation) == ("turn-17", "incarnation-1")
    assert session.outcome == "OPENED"


async def test_a_run_ends_when_its_block_fails_and_the_failure_is_what_is_raised(
    service: FakeService, memory: MemoryClient
):
    service.will_answer(END, Refusal(grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND"))
    session = await memory.open_session("assistant")

    with pytest.raises(KeyError):
        async with session.run("turn-17"):
            raise KeyError("the agent failed")

    assert len(service.calls(END)) == 1


async def test_a_run_that_was_ended_is_not_ended_again(service: FakeService, memory: MemoryClient):
    ended = begun().run
    ended.ended_at.CopyFrom(NOW)
    service.will_answer(END, session_service_pb2.EndRunResponse(run=ended))
    session = await memory.open_session("assistant")

    async with session.run("turn-17") as run:
        await run.end()

    assert len(service.calls(END)) == 1


async def test_a_beginning_whose_answer_was_lost_can_be_repeated_by_its_request_id(
    service: FakeService, memory: MemoryClient
):
    service.will_answer(BEGIN, Refusal(grpc.StatusCode.DEADLINE_EXCEEDED), begun())
    session = await memory.open_session("assistant")
    with pytest.raises(errors.DeadlineExceededError) as caught:
        await session.run("turn-17").begin()

    async with session.run("turn-17", request_id=caught.value.request_id):
        pass

    first, second = (asked.request for asked in service.calls(BEGIN))
    assert first == second


async def test_a_run_that_cannot_be_ended_is_only_logged(
    service: FakeService, memory: MemoryClient, caplog: pytest.LogCaptureFixture
):
    service.will_answer(END, Refusal(grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND"))
    session = await memory.open_session("assistant")

    async with session.run("turn-17"):
        pass

    assert "turn-17 was not ended: RUN_NOT_FOUND" in caplog.text


async def test_a_run_that_ends_after_its_client_was_closed_keeps_the_result_of_its_work(
    memory: MemoryClient, caplog: pytest.LogCaptureFixture
):
    session = await memory.open_session("assistant")

    async with session.run("turn-17"):
        await memory.close()

    assert "turn-17 was not ended" in caplog.text


async def test_the_policy_is_stated_as_far_as_the_caller_stated_it(service: FakeService, memory: MemoryClient):
    await memory.open_session("assistant", max_results=8, min_score=0.0, mode=RecallMode.LEXICAL)

    policy = service.calls(OPEN)[0].request.policy
    assert (policy.max_results, policy.min_score, policy.mode) == (8, 0.0, RecallMode.LEXICAL.number)
    assert policy.HasField("min_score")
    assert not policy.HasField("related_lookups")
    assert not policy.HasField("semantic")


async def test_a_recall_alone_records_nothing(service: FakeService, memory: MemoryClient):
    session = await memory.open_session("assistant")
    async with session.run("turn-17") as run:
        recall = await run.recall("what does the user drink?")

    request = service.calls(RECALL)[0].request
    assert (request.admit, request.request_id, request.context_id) == (False, "", "context-0")
    assert [hit.content for hit in recall] == ["The user prefers tea."]
    assert (len(recall), bool(recall), recall.unavailable, recall.context_id) == (1, True, False, None)
    assert recall.hits[0].namespace == NAMESPACE


async def test_a_recall_that_admits_moves_the_run_to_its_next_context(service: FakeService, memory: MemoryClient):
    answer = recalled(hit())
    answer.admissions.append(admitted())
    answer.next_context_id = "context-1"
    service.will_answer(RECALL, answer)
    session = await memory.open_session("assistant")

    async with session.run("turn-17") as run:
        recall = await run.recall("tea", admit=True)
        assert (recall.context_id, run.context_id) == ("context-0", "context-1")

    request = service.calls(RECALL)[0].request
    assert request.admit is True
    assert request.request_id


async def test_every_admission_has_the_context_that_the_one_before_returned(service: FakeService, memory: MemoryClient):
    service.will_answer(ADMIT, *(admits(admitted(), following=f"context-{n}") for n in (1, 2, 3)))
    session = await memory.open_session("assistant")

    async with session.run("turn-17") as run:
        await asyncio.gather(*(run.admit([hit_value()]) for _ in range(3)))

    assert [asked.request.context_id for asked in service.calls(ADMIT)] == ["context-0", "context-1", "context-2"]


async def test_only_what_was_admitted_may_stay(service: FakeService, memory: MemoryClient):
    moved = access_pb2.AdmissionOutcome(
        verdict=access_pb2.ADMISSION_VERDICT_REFUSED,
        error=item_error_pb2.ItemError(
            reason="ERROR_REASON_REVISION_CONFLICT", message="moved", metadata={"actual": "2"}
        ),
    )
    moved.node_revision.node_id, moved.node_revision.revision = "old", 1
    service.will_answer(ADMIT, admits(admitted("new"), moved, following="context-1"))
    session = await memory.open_session("assistant")
    new, old = hit_value(node_id="new"), hit_value(node_id="old")

    async with session.run("turn-17") as run:
        admission = await run.admit([new, old])

    assert admission.hits == (new,)
    (refused,) = admission.refused
    assert refused.node_revision.node_id == "old"
    assert isinstance(refused.error, errors.RevisionConflictError)
    assert (refused.error.definite, refused.error.metadata) == (True, {"actual": "2"})


async def test_a_use_is_recorded_under_the_context_of_its_admission(service: FakeService, memory: MemoryClient):
    service.will_answer(
        ADMIT,
        admits(admitted("first"), following="context-1"),
        admits(admitted("second"), following="context-2"),
    )
    service.will_answer(
        USE,
        recall_service_pb2.RecordUseResponse(outcomes=[recorded("second")]),
        recall_service_pb2.RecordUseResponse(outcomes=[recorded("first")]),
        recall_service_pb2.RecordUseResponse(outcomes=[recorded("unadmitted")]),
    )
    session = await memory.open_session("assistant")
    first, second = hit_value(node_id="first"), hit_value(node_id="second")

    async with session.run("turn-17") as run:
        await run.admit([first])
        await run.admit([second])
        outcomes = await run.record_use([second, first, str(Citation(1, "unadmitted", 1, DIGEST))])

    asked = {asked.request.context_id: asked.request.items[0].citation.node_id for asked in service.calls(USE)}
    assert asked == {"context-0": "first", "context-1": "second", "context-2": "unadmitted"}
    assert [outcome.event_id for outcome in outcomes] == ["use-of-second", "use-of-first", "use-of-unadmitted"]


@pytest.mark.parametrize("recorded_before", [True, False])
async def test_a_use_of_several_assemblies_that_is_recorded_in_part_is_not_definite(
    recorded_before: bool, service: FakeService, memory: MemoryClient
):
    closed = Refusal(grpc.StatusCode.FAILED_PRECONDITION, "SESSION_CLOSED")
    recording = recall_service_pb2.RecordUseResponse(outcomes=[recorded("first")])
    service.will_answer(ADMIT, admits(admitted("first"), following="context-1"))
    service.will_answer(USE, *([recording, closed] if recorded_before else [closed]))
    session = await memory.open_session("assistant")

    async with session.run("turn-17") as run:
        await run.admit([hit_value(node_id="first")])
        with pytest.raises(errors.SessionClosedError) as caught:
            await run.record_use([hit_value(node_id="first"), hit_value(node_id="other")])

    assert caught.value.definite is not recorded_before


async def test_an_answer_that_is_not_about_every_item_is_an_error(service: FakeService, memory: MemoryClient):
    service.will_answer(ADMIT, admits(admitted("first"), following="context-1"))
    service.will_answer(USE, recall_service_pb2.RecordUseResponse(outcomes=[recorded("first")]))
    session = await memory.open_session("assistant")
    both = [hit_value(node_id="first"), hit_value(node_id="second")]

    async with session.run("turn-17") as run:
        with pytest.raises(IncompleteStreamError, match="1 outcomes of 2 hits"):
            await run.admit(both)
        assert run.context_id == "context-0"
        with pytest.raises(IncompleteStreamError, match="1 outcomes of 2 uses"):
            await run.record_use(both)


async def test_one_request_id_cannot_stand_for_several_calls(service: FakeService, memory: MemoryClient):
    service.will_answer(ADMIT, admits(admitted("first"), following="context-1"))
    session = await memory.open_session("assistant")

    async with session.run("turn-17") as run:
        await run.admit([hit_value(node_id="first")])
        with pytest.raises(ValueError, match="request id"):
            await run.record_use([hit_value(node_id="first"), hit_value(node_id="other")], request_id="once")

    assert service.calls(USE) == []


async def test_nothing_to_admit_or_to_record_is_no_call(service: FakeService, memory: MemoryClient):
    session = await memory.open_session("assistant")
    async with session.run("turn-17") as run:
        assert (await run.admit([])).hits == ()
        assert await run.record_use([]) == []

    assert service.calls(ADMIT) == service.calls(USE) == []


async def test_evidence_of_a_turn_names_session_and_run(memory: MemoryClient):
    session = await memory.open_session("assistant")
    async with session.run("turn-17") as run:
        assert run.evidence("I prefer tea.").uri == "session:assistant/turn/turn-17"


USER, TEAM = Namespace("acme", "user-1", "chat"), Namespace("acme", "team", "project-a")


@pytest.fixture
def two_namespaces(service: FakeService) -> None:
    service.will_answer(OPEN, opened("user", USER), opened("team", TEAM))


async def test_several_namespaces_are_recalled_as_one(service: FakeService, memory: MemoryClient, two_namespaces: None):
    service.will_answer(RECALL, recalled(hit("a", 1), hit("b", 2), hit("c", 3)))
    users = await memory.namespace(scope="chat").open_session("user")
    teams = await memory.namespace(principal="team").open_session("team")

    async with users.run() as user, teams.run() as team:
        merged = await recall_all([user, team], "tea", max_results=5)

    places = [(hit.namespace.principal, hit.node_id) for hit in merged]
    assert places == [("user-1", "a"), ("team", "a"), ("user-1", "b"), ("team", "b"), ("user-1", "c")]
    assert [part.namespace for part in merged.parts] == [USER, TEAM]
    assert not merged.unavailable


async def test_what_several_namespaces_gave_goes_back_to_where_it_came_from(
    service: FakeService, memory: MemoryClient, two_namespaces: None
):
    users = await memory.namespace(scope="chat").open_session("user")
    teams = await memory.namespace(principal="team").open_session("team")
    mine, ours = hit_value(node_id="a", namespace=USER), hit_value(node_id="a", namespace=TEAM)
    service.will_answer(ADMIT, admits(admitted("a"), following="context-1"))
    service.will_answer(USE, recall_service_pb2.RecordUseResponse(outcomes=[recorded("a")]))

    async with users.run() as user, teams.run() as team:
        admission = await admit_all([user, team], [ours, mine])
        await record_use_all([user, team], [ours])

    assert admission.hits == (ours, mine)
    assert {asked.request.namespace.principal_id for asked in service.calls(ADMIT)} == {"user-1", "team"}
    (use,) = service.calls(USE)
    assert use.request.namespace.principal_id == "team"


@pytest.mark.parametrize("scopes", [[USER, TEAM], [TEAM]], ids=["several", "one"])
async def test_an_error_in_one_of_several_namespaces_says_nothing_definite_of_the_whole(
    scopes: list[Namespace], service: FakeService, memory: MemoryClient, two_namespaces: None
):
    for method in (ADMIT, USE):
        service.will_answer(method, Refusal(grpc.StatusCode.FAILED_PRECONDITION, "SESSION_CLOSED"))
    users = await memory.namespace(scope="chat").open_session("user")
    teams = await memory.namespace(principal="team").open_session("team")
    hits = [hit_value(node_id="a", namespace=namespace) for namespace in scopes]

    async with users.run() as user, teams.run() as team:
        with pytest.raises(errors.SessionClosedError) as admitting:
            await admit_all([user, team], hits)
        with pytest.raises(errors.SessionClosedError) as recording:
            await record_use_all([user, team], hits)

    assert admitting.value.definite is recording.value.definite is (len(scopes) == 1)


async def test_a_hit_of_a_namespace_without_a_run_is_refused(memory: MemoryClient, two_namespaces: None):
    users = await memory.namespace(scope="chat").open_session("user")
    async with users.run() as user:
        with pytest.raises(ValueError, match="no run"):
            await admit_all([user], [hit_value(namespace=TEAM)])
