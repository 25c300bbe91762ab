"""The commands about the vector index, against a service that says what a test wants it to say."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from durable_memory_client import Namespace
from durablememory.v1 import node_pb2, recall_pb2, recall_service_pb2, semantic_pb2, session_pb2, session_service_pb2
from durablememory.v1 import semantic_service_pb2 as pb
from tests.clients.python.fake_service import FakeService, Refusal
from tests.clients.python.messages import DIGEST, NOW, citation, opened, receipt, refreshed, token
from tests.integration.command_line import CommandLine

STATUS, REFRESH = "SemanticService.GetIndexStatus", "SemanticService.RefreshSemanticRecall"
EXPLAIN = "RecallService.ExplainRecall"
INFO, OPEN, REBIND = "SessionService.GetServerInfo", "SessionService.OpenSession", "SessionService.RebindSession"
GENERATION = session_pb2.SemanticGeneration(
    authority_digest=DIGEST, provider="local", model="small", model_revision="1", dimension=384
)
STANDS = semantic_pb2.IndexStatus(
    change_token=token(9),
    generation=GENERATION,
    state=semantic_pb2.INDEX_STATE_CURRENT,
    published={
        "index_revision": 4,
        "index_history_digest": "ab" * 32,
        "source": token(5),
        "live_count": 1_200,
        "dead_count": 7,
        "stored_bytes": 1_900_000,
        "segment_count": 2,
        "float_bits": 16,
    },
    last_receipt={
        "fence": 6,
        "index_revision": 4,
        "index_history_digest": "ab" * 32,
        "source": token(8),
        "active_count": 1_203,
        "indexed_count": 1_200,
        "work": {"added": 3, "provider_calls": 1, "provider_inputs": 2, "cache_hits": 1, "staged_bytes": 99},
        "written_at": NOW,
    },
    unindexed_active_count=3,
    last_failure="SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:TIMEOUT",
)
HEALTH = pb.GetMaintenanceHealthResponse(
    health={
        "phase": semantic_pb2.MAINTENANCE_PHASE_FAILING,
        "worker_count": 2,
        "running_count": 1,
        "run_count": 12,
        "failure_count": 3,
        "last_error": "SOURCE_DRIFT",
        "last_error_at": NOW,
    }
)
NOT_CONFIGURED = Refusal(
    grpc.StatusCode.FAILED_PRECONDITION, "SEMANTIC_UNAVAILABLE", {"cause": "SEMANTIC_NOT_CONFIGURED"}
)


def bound(generation: session_pb2.SemanticGeneration | None) -> session_pb2.Session:
    session = opened("command-line", Namespace("local", "someone", "default")).session
    session.binding.semantic_generation.CopyFrom(generation or session_pb2.SemanticGeneration())
    if generation is None:
        session.binding.ClearField("semantic_generation")
    return session


@pytest.fixture
def service() -> Iterator[FakeService]:
    """One that has an index, a session of the command line, and answers a refresh."""
    with FakeService() as service:
        service.will_answer(STATUS, pb.GetIndexStatusResponse(status=STANDS))
        service.will_answer("SemanticService.GetMaintenanceHealth", HEALTH)
        service.will_answer(INFO, session_service_pb2.GetServerInfoResponse(semantic_generations=[GENERATION]))
        service.will_answer(OPEN, session_service_pb2.OpenSessionResponse(session=bound(GENERATION)))
        service.will_answer(REBIND, session_service_pb2.RebindSessionResponse(session=bound(GENERATION)))
        service.will_answer(REFRESH, refreshed())
        yield service


@pytest.fixture
def memory(service: FakeService, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, DURABLE_MEMORY_ADDRESS=service.address)


def test_status_says_what_stands_and_what_does_not(memory: CommandLine):
    said = memory.ok("index", "status", "--utc").out

    for part in (
        "in use, and behind: some active memories are new or changed since",
        "small of local, 384 dimensions",
        "3 active memories, found by words only",
        "index revision 4, covers revision 8",
        "1,200 as of then, not used where the text has changed since; 7 replaced ones; 16-bit numbers, 2 segments, "
        "1,900,000 bytes",
        "2030-03-17 17:46 UTC: 3 added, 2 embedded in 1 call, 1 from the cache",
        "SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:TIMEOUT",
        "(the server's default)",
        "failing, 1 of 2 workers busy; 12 runs and 3 failures",
        "SOURCE_DRIFT",
    ):
        assert part in said


def test_status_for_programs_has_every_field(memory: CommandLine):
    said = memory.ok("index", "status", "--json").json

    assert said["status"]["state"] == "CURRENT"
    assert said["status"]["published"]["live_count"] == 1_200
    assert said["status"]["last_receipt"]["written_at"] == "2030-03-17T17:46:40.000000Z"
    assert said["status"]["schedule"] is None
    assert said["maintenance"]["phase"] == "FAILING"


def test_a_refresh_prints_what_it_covers_and_nothing_of_its_progress_into_a_pipe(
    service: FakeService, memory: CommandLine
):
    done = memory.ok("index", "refresh")

    assert done.out.startswith("indexed: 3 of 3 active memories, as of revision 7; index revision 1\n")
    assert done.err == ""
    (asked,) = service.calls(REFRESH)
    assert (asked.request.session_id, asked.request.rebuild) == ("command-line", False)
    assert asked.request.requirement == semantic_pb2.INDEX_CONSISTENCY_INDEX_REVISION_CAS
    assert service.calls(REBIND) == []
    assert memory.ok("index", "refresh", "--json").json["index_revision"] == 1


@pytest.mark.parametrize("stale", [None, session_pb2.SemanticGeneration(authority_digest="ab" * 32)])
def test_the_command_lines_session_moves_to_the_servers_generation(
    service: FakeService, memory: CommandLine, stale: session_pb2.SemanticGeneration | None
):
    service.will_answer(OPEN, session_service_pb2.OpenSessionResponse(session=bound(stale)))

    memory.ok("index", "refresh")

    assert len(service.calls(REBIND)) == 1


def test_who_is_no_operator_is_told_so_and_refused_texts_are_counted(service: FakeService, memory: CommandLine):
    service.will_answer("SemanticService.GetMaintenanceHealth", pb.GetMaintenanceHealthResponse())
    stands = semantic_pb2.IndexStatus()
    stands.CopyFrom(STANDS)
    stands.refused_count = 2
    stands.last_receipt.work.refused = 2
    service.will_answer(STATUS, pb.GetIndexStatusResponse(status=stands))

    lines = memory.ok("index", "status").out.splitlines()

    said = {line[:13].strip(): line[13:].strip() for line in lines}
    assert said["maintenance"] == "for operators"
    assert said["refused"] == "2 active memories, by the embedding provider"
    assert "2 refused by the provider" in said["last refresh"]
    assert memory.ok("index", "status", "--json").json["maintenance"]["phase"] is None


def test_a_rebuild_of_a_session_of_ones_own_accepts_any_backend_if_told_to(service: FakeService, memory: CommandLine):
    memory.ok("index", "rebuild", "--session", "assistant", "--any-backend", "--request-id", "once")

    (asked,) = service.calls(REFRESH)
    assert (asked.request.session_id, asked.request.rebuild, asked.request.request_id) == ("assistant", True, "once")
    assert asked.request.requirement == semantic_pb2.INDEX_CONSISTENCY_LAST_WRITER_WINS
    assert service.calls(OPEN) == []


def test_receipts_are_listed_newest_first_and_no_more_than_asked_for(service: FakeService, memory: CommandLine):
    unchanged = receipt(2)
    cleared = receipt(3)
    cleared.index_revision = 0
    first = receipt(1)
    first.work.MergeFrom(semantic_pb2.RefreshWork(removed=2, replaced=1, staged_bytes=9, cache_hits=1))
    first.work.duration.FromTimedelta(timedelta(seconds=2.5))
    service.will_answer("SemanticService.ListReceipts", pb.ListReceiptsResponse(receipts=[cleared, unchanged, first]))

    header, *lines = memory.ok("index", "receipts").out.splitlines()

    assert header.startswith("fence ")
    assert "covers revision" in header
    assert [line.split()[0] for line in lines] == ["3", "2", "1"]
    assert [line.rpartition("3 of 3")[2].strip() for line in lines] == [
        "cleared",
        "nothing to do",
        "1 replaced, 2 removed, 0 embedded in 0 calls, 1 from the cache, 2.5 s",
    ]
    listed = memory.ok("index", "receipts", "--limit", "2", "--json").lines
    assert [line["fence"] for line in listed] == [3, 2]


def test_a_schedule_is_set_with_what_is_named_and_shown_otherwise(service: FakeService, memory: CommandLine):
    schedule = semantic_pb2.RefreshSchedule(set_by="operator-1", set_at=NOW)
    schedule.interval.FromTimedelta(timedelta(minutes=15))
    service.will_answer("SemanticService.SetSchedule", pb.SetScheduleResponse(schedule=schedule))

    said = memory.ok("index", "schedule", "--every", "15m", "--utc").out
    assert said == "every 15 min\nset by operator-1, 2030-03-17 17:46 UTC\n"
    memory.ok("index", "schedule", "--on-change", "2.5s")
    memory.ok("index", "schedule", "--off")

    every, on_change, off = (asked.request for asked in service.calls("SemanticService.SetSchedule"))
    assert (every.interval.ToTimedelta(), every.HasField("on_change_delay")) == (timedelta(minutes=15), False)
    assert on_change.on_change_delay.ToTimedelta() == timedelta(seconds=2.5)
    assert not off.HasField("interval")
    assert not off.HasField("on_change_delay")
    assert memory.ok("index", "schedule").out.startswith("shortly after a change")
    assert memory.ok("index", "schedule", "--json").out == "null\n"


@pytest.mark.parametrize("wrong", [["--every", "soon"], ["--on-change", "2"], ["--off", "--every", "1h"]])
def test_a_schedule_that_cannot_be_meant_is_not_sent(service: FakeService, memory: CommandLine, wrong: list[str]):
    done = memory("index", "schedule", *wrong)

    assert done.code == 2
    assert wrong[0] in done.err
    assert service.calls("SemanticService.SetSchedule") == []


def test_a_clear_says_what_is_left(service: FakeService, memory: CommandLine):
    service.will_answer(
        "SemanticService.ClearPartition",
        pb.ClearPartitionResponse(receipt=semantic_pb2.RefreshReceipt(fence=2, active_count=1_200, written_at=NOW)),
    )

    assert memory.ok("index", "clear").out == "cleared: 1,200 active memories, found by words from now on\n"
    assert memory.ok("index", "clear", "--json").json["index_revision"] == 0


def test_a_server_without_vectors_says_so_and_what_could_be_done(service: FakeService, memory: CommandLine):
    service.will_answer(STATUS, NOT_CONFIGURED)
    service.will_answer(REFRESH, [NOT_CONFIGURED])

    done = memory("index", "status")
    assert (done.code, done.out) == (1, "")
    assert "SEMANTIC_UNAVAILABLE" in done.err
    assert "embedding provider" in done.err
    assert json.loads(memory("index", "refresh", "--json").err)["error"]["metadata"] == {
        "cause": "SEMANTIC_NOT_CONFIGURED"
    }


def test_a_refresh_waits_for_the_end_of_another_one(service: FakeService, memory: CommandLine):
    held = [Refusal(grpc.StatusCode.ABORTED, "LEASE_HELD", {"retry_after_ms": "12000"})]
    service.will_answer(REFRESH, held, held, refreshed())

    assert memory.ok("index", "refresh").out.startswith("indexed: 3 of 3 active memories")
    assert len({call.request.request_id for call in service.calls(REFRESH)}) == 1
    assert len(service.calls(REFRESH)) == 3


def test_a_refresh_that_somebody_else_runs_for_too_long_is_refused_with_advice(
    service: FakeService, memory: CommandLine
):
    service.will_answer(REFRESH, [Refusal(grpc.StatusCode.ABORTED, "LEASE_HELD", {"retry_after_ms": "12000"})])

    done = memory("index", "refresh", "--wait", "1s")

    assert done.code == 1
    assert "Another refresh of this namespace is running" in done.err


def explained(**fields: Any) -> recall_service_pb2.ExplainRecallResponse:
    explanation = recall_pb2.RecallExplanation(
        citation=citation(),
        status=node_pb2.NODE_STATUS_ACTIVE,
        mode_used=recall_pb2.RECALL_MODE_LEXICAL,
        vector_state=recall_pb2.VECTOR_STATE_NOT_USED,
        exclusion=recall_pb2.RECALL_EXCLUSION_NO_MATCH,
        **fields,
    )
    return recall_service_pb2.ExplainRecallResponse(explanation=explanation, change_token=token(9))


def test_an_explanation_says_what_it_could_not_ask(service: FakeService, memory: CommandLine):
    service.will_answer(
        EXPLAIN,
        explained(
            degradation={"reason": recall_pb2.DEGRADATION_REASON_INDEX_UNAVAILABLE, "message": "it cannot be read"}
        ),
    )

    assert "NOT_USED, INDEX_UNAVAILABLE: it cannot be read\n" in memory.ok("explain", "tea", "prefers-tea").out
    said = memory.ok("explain", "tea", "prefers-tea", "--json").json
    assert said["degradation"] == {"reason": "INDEX_UNAVAILABLE", "message": "it cannot be read"}


def test_an_explanation_shows_the_cosine_and_the_rank(service: FakeService, memory: CommandLine):
    why = explained(semantic={"rank": 7, "score": 0.81234}, matched_share=0.5)
    why.explanation.vector_state = recall_pb2.VECTOR_STATE_CURRENT
    service.will_answer(EXPLAIN, why)

    said = memory.ok("explain", "tea", "prefers-tea").out

    assert "CURRENT, cosine 0.812, rank 7\n" in said
    assert "0.50 of the query\n" in said


@pytest.mark.parametrize(
    ("held", "server", "rebinds"),
    [
        (GENERATION, {}, 0),
        (None, {}, 1),
        (session_pb2.SemanticGeneration(authority_digest="ab" * 32), {}, 1),
        (GENERATION, {"default_policy": {"max_results": 7}}, 1),
        (GENERATION, {"default_policy": {"max_results": 5}}, 0),
        (GENERATION, {"semantic_generations": []}, 0),
    ],
)
def test_what_explain_explains_is_what_a_recall_of_now_would_do(
    service: FakeService,
    memory: CommandLine,
    held: session_pb2.SemanticGeneration | None,
    server: dict[str, Any],
    rebinds: int,
):
    info = session_service_pb2.GetServerInfoResponse(**{"semantic_generations": [GENERATION], **server})
    service.will_answer(INFO, info)
    service.will_answer(OPEN, session_service_pb2.OpenSessionResponse(session=bound(held)))
    service.will_answer(EXPLAIN, explained())

    memory.ok("explain", "tea", "prefers-tea")

    assert len(service.calls(REBIND)) == rebinds


def test_a_session_that_another_command_has_bound_anew_is_taken_as_it_is(service: FakeService, memory: CommandLine):
    service.will_answer(OPEN, session_service_pb2.OpenSessionResponse(session=bound(None)))
    service.will_answer(REBIND, Refusal(grpc.StatusCode.FAILED_PRECONDITION, "BINDING_DRIFT", {"fields": "semantic"}))
    service.will_answer("SessionService.GetSession", session_service_pb2.GetSessionResponse(session=bound(GENERATION)))
    resumed = session_service_pb2.ResumeSessionResponse(session=bound(GENERATION))
    service.will_answer("SessionService.ResumeSession", resumed)

    assert memory.ok("index", "refresh").out.startswith("indexed: ")


def test_a_session_keeps_its_policy_when_it_moves_to_the_servers_model(service: FakeService, memory: CommandLine):
    known = bound(session_pb2.SemanticGeneration(authority_digest="ab" * 32, candidate_limit=50, min_similarity=0.25))
    known.binding.mode = recall_pb2.RECALL_MODE_HYBRID
    service.will_answer("SessionService.GetSession", session_service_pb2.GetSessionResponse(session=known))
    service.will_answer("SessionService.ResumeSession", session_service_pb2.ResumeSessionResponse(session=known))

    assert memory.ok("sessions", "rebind", "assistant").out.startswith("bound: assistant, ")

    (asked,) = service.calls(REBIND)
    policy = asked.request.policy
    assert (policy.mode, policy.max_results) == (recall_pb2.RECALL_MODE_HYBRID, 5)
    assert (policy.semantic.candidate_limit, policy.semantic.min_similarity) == (50, 0.25)
    assert not policy.semantic.HasField("authority_digest")


def test_a_provider_that_has_not_answered_is_no_reason_to_ask_for_the_status_again(
    service: FakeService, memory: CommandLine
):
    service.will_answer(
        STATUS, Refusal(grpc.StatusCode.UNAVAILABLE, "SEMANTIC_UNAVAILABLE", {"cause": "PROVIDER_FAILED"})
    )

    done = memory("index", "status")

    assert done.code == 1
    assert "log says" in done.err
    assert "index status" not in done.err


def test_a_status_never_calls_complete_what_does_not_cover_everything(service: FakeService, memory: CommandLine):
    def heading(**fields: int) -> str:
        stands = semantic_pb2.IndexStatus()
        stands.CopyFrom(STANDS)
        stands.unindexed_active_count = fields.get("unindexed", 0)
        stands.refused_count = fields.get("refused", 0)
        service.will_answer(STATUS, pb.GetIndexStatusResponse(status=stands))
        return memory.ok("index", "status").out.splitlines()[0].split(maxsplit=1)[1]

    assert heading() == "in use: covers every active memory as it is now"
    assert heading(unindexed=15).startswith("in use, and behind")
    assert heading(unindexed=15, refused=2).startswith("in use, and behind")
    assert heading(unindexed=2, refused=2) == "in use: covers what the embedding provider does not refuse"
