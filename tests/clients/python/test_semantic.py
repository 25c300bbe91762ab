"""Refreshing and looking at the vector index: progress, receipts, lost connections."""

import gc
from datetime import UTC, datetime, timedelta

import grpc
import pytest

from durable_memory_client import (
    ChangeToken,
    IncompleteStreamError,
    IndexConsistency,
    IndexState,
    MemoryClient,
    RefreshPhase,
    RefreshProgress,
    errors,
)
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durablememory.v1 import semantic_pb2
from durablememory.v1 import semantic_service_pb2 as pb
from tests.clients.python.fake_service import FakeService, Forever, Refusal
from tests.clients.python.messages import DIGEST, HISTORY, NOW, progressed, receipt, refreshed, token
from tests.clients.python.refusals import CUT, LOST
from tests.processes.polling import wait_until_async

REFRESH = "SemanticService.RefreshSemanticRecall"
HELD = Refusal(grpc.StatusCode.ABORTED, "LEASE_HELD", {"retry_after_ms": "12000"})
THEN = datetime.fromtimestamp(1_900_000_000, UTC)

pytestmark = pytest.mark.usefixtures("hasty_backoff")


async def test_a_refresh_returns_its_receipt_and_tells_every_step(service: FakeService, memory: MemoryClient):
    service.will_answer(REFRESH, refreshed())
    steps: list[RefreshProgress] = []

    done = await memory.refresh_semantic_recall("assistant", rebuild=True).wait(steps.append)

    assert [(step.phase, step.done, step.total) for step in steps] == [("EMBEDDING", 1, 3), ("PUBLISHED", 0, 0)]
    assert (done.index_revision, done.indexed_count, done.source) == (1, 3, ChangeToken(HISTORY, 7))
    assert (done.consistency, done.written_at) == (IndexConsistency.INDEX_REVISION_CAS, THEN)
    (asked,) = service.calls(REFRESH)
    assert (asked.request.session_id, asked.request.rebuild) == ("assistant", True)
    assert asked.request.requirement == semantic_pb2.INDEX_CONSISTENCY_INDEX_REVISION_CAS


async def test_a_refresh_can_be_watched_and_nothing_is_asked_before(service: FakeService, memory: MemoryClient):
    service.will_answer(REFRESH, refreshed())
    refresh = memory.refresh_semantic_recall("assistant", requirement=IndexConsistency.LAST_WRITER_WINS)
    assert service.calls(REFRESH) == []

    phases = [step.phase async for step in refresh]

    assert phases == [RefreshPhase.EMBEDDING, RefreshPhase.PUBLISHED]
    assert refresh.receipt is not None
    assert refresh.receipt.index_revision == 1


def test_the_blocking_twin_refreshes_the_same_way(service: FakeService, blocking_memory: BlockingMemoryClient):
    service.will_answer(REFRESH, refreshed())
    refresh = blocking_memory.refresh_semantic_recall("assistant")

    assert [step.phase for step in refresh] == ["EMBEDDING", "PUBLISHED"]
    assert refresh.wait().index_revision == 1


async def test_a_lost_connection_is_taken_up_again_with_the_same_request_id(service: FakeService, memory: MemoryClient):
    embedding = progressed(semantic_pb2.REFRESH_PHASE_EMBEDDING, 1, 3)
    service.will_answer(REFRESH, [embedding, LOST], [LOST], refreshed())

    done = await memory.refresh_semantic_recall("assistant").wait()

    assert done.index_revision == 1
    assert len(service.calls(REFRESH)) == 3
    assert len({asked.request.request_id for asked in service.calls(REFRESH)}) == 1


async def test_a_refresh_gives_up_as_often_as_any_call_and_says_under_which_id_it_asked(
    service: FakeService, memory: MemoryClient
):
    service.will_answer(REFRESH, [LOST])

    with pytest.raises(errors.MemoryUnavailableError) as caught:
        await memory.refresh_semantic_recall("assistant", request_id="refresh-1").wait()

    assert len(service.calls(REFRESH)) == 5
    assert (caught.value.request_id, caught.value.attempts) == ("refresh-1", 5)


async def test_a_refusal_is_not_repeated(service: FakeService, memory: MemoryClient):
    service.will_answer(REFRESH, [HELD])

    with pytest.raises(errors.LeaseHeldError) as caught:
        await memory.refresh_semantic_recall("assistant").wait()

    assert len(service.calls(REFRESH)) == 1
    assert (caught.value.definite, caught.value.metadata["retry_after_ms"]) == (True, "12000")


async def test_a_stream_without_a_receipt_is_not_a_refresh(service: FakeService, memory: MemoryClient):
    service.will_answer(REFRESH, refreshed()[:2])

    with pytest.raises(IncompleteStreamError):
        await memory.refresh_semantic_recall("assistant").wait()
    assert len(service.calls(REFRESH)) == 1


async def test_a_refresh_that_fails_after_its_receipt_has_none(service: FakeService, memory: MemoryClient):
    service.will_answer(REFRESH, [*refreshed(), HELD])
    refresh = memory.refresh_semantic_recall("assistant")

    with pytest.raises(errors.LeaseHeldError):
        await refresh.wait()

    assert refresh.receipt is None


async def test_a_refresh_that_a_server_ends_as_it_stops_is_taken_up_again(service: FakeService, memory: MemoryClient):
    service.will_answer(REFRESH, [CUT], refreshed())

    assert (await memory.refresh_semantic_recall("assistant").wait()).index_revision == 1


async def test_what_keeps_a_refresh_from_being_taken_up_does_not_hide_what_became_of_it(service: FakeService):
    tokens = ["first", ""]

    def token() -> str:
        if tokens[0] == "":
            raise PermissionError("no token any more")
        return tokens.pop(0)

    service.will_answer(REFRESH, [LOST])
    async with MemoryClient(service.address, token) as memory:
        with pytest.raises(errors.MemoryUnavailableError) as caught:
            await memory.refresh_semantic_recall("assistant", request_id="refresh-1").wait()

    assert (caught.value.request_id, caught.value.attempts) == ("refresh-1", 1)
    assert isinstance(caught.value.__cause__, PermissionError)


async def test_a_refresh_with_a_deadline_ends_at_it(service: FakeService, memory: MemoryClient):
    service.will_answer(REFRESH, [Forever()])

    with pytest.raises(errors.DeadlineExceededError):
        await memory.refresh_semantic_recall("assistant", timeout=0.3).wait()


async def test_leaving_the_loop_ends_the_refresh(service: FakeService, memory: MemoryClient):
    waiting = Forever()
    service.will_answer(REFRESH, [progressed(semantic_pb2.REFRESH_PHASE_EMBEDDING, 1, 3), waiting])

    async for step in memory.refresh_semantic_recall("assistant"):
        assert step.phase == "EMBEDDING"
        break

    def left() -> bool:
        gc.collect()  # the loop leaves its iterator to the collector, which may be in no hurry
        return waiting.left.is_set()

    await wait_until_async(left)


async def test_status_has_everything_that_the_service_said(service: FakeService, memory: MemoryClient):
    service.will_answer(
        "SemanticService.GetIndexStatus",
        pb.GetIndexStatusResponse(
            status=semantic_pb2.IndexStatus(
                change_token=token(9),
                generation={"authority_digest": DIGEST, "dimension": 8},
                state=semantic_pb2.INDEX_STATE_REGRESSED,
                published={"index_revision": 4, "source": token(7), "live_count": 3, "float_bits": 16},
                last_receipt=receipt(5),
                unindexed_active_count=3,
                last_failure="SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:TIMEOUT",
                schedule={"on_change_delay": timedelta(seconds=2.5), "set_by": "operator-1", "set_at": NOW},
            )
        ),
        pb.GetIndexStatusResponse(status=semantic_pb2.IndexStatus(state=semantic_pb2.INDEX_STATE_NOT_BUILT)),
    )

    status = await memory.get_index_status()

    assert (status.state, status.unindexed_active_count) == (IndexState.REGRESSED, 3)
    assert (status.change_token, status.generation.dimension) == (ChangeToken(HISTORY, 9), 8)
    assert status.published is not None
    assert (status.published.index_revision, status.published.float_bits) == (4, 16)
    assert status.last_receipt is not None
    assert status.last_receipt.index_revision == 5
    assert status.last_failure.endswith("TIMEOUT")
    assert status.schedule is not None
    assert (status.schedule.interval, status.schedule.on_change_delay) == (None, timedelta(seconds=2.5))
    assert (status.schedule.set_by, status.schedule.set_at) == ("operator-1", THEN)
    bare = await memory.get_index_status()
    assert (bare.published, bare.last_receipt, bare.schedule) == (None, None, None)


async def test_receipts_are_read_on_to_the_last_page(service: FakeService, memory: MemoryClient):
    service.will_answer(
        "SemanticService.ListReceipts",
        pb.ListReceiptsResponse(receipts=[receipt(3), receipt(2)], next_page_token="2"),
        pb.ListReceiptsResponse(receipts=[receipt(1)]),
    )

    assert [found.index_revision async for found in memory.list_receipts(page_size=2)] == [3, 2, 1]
    assert [asked.request.page_token for asked in service.calls("SemanticService.ListReceipts")] == ["", "2"]


async def test_a_schedule_goes_out_as_it_was_given_and_what_is_none_stays_absent(
    service: FakeService, memory: MemoryClient
):
    service.will_answer(
        "SemanticService.SetSchedule",
        pb.SetScheduleResponse(schedule={"interval": timedelta(hours=1), "set_by": "operator-1", "set_at": NOW}),
    )

    schedule = await memory.set_schedule(interval=timedelta(hours=1))

    assert (schedule.interval, schedule.on_change_delay) == (timedelta(hours=1), None)
    (asked,) = service.calls("SemanticService.SetSchedule")
    assert asked.request.interval.ToTimedelta() == timedelta(hours=1)
    assert not asked.request.HasField("on_change_delay")


async def test_maintenance_has_the_runs_of_the_namespace(service: FakeService, memory: MemoryClient):
    failed = semantic_pb2.MaintenanceRun(
        started_at=NOW,
        ended_at=NOW,
        outcome=semantic_pb2.MAINTENANCE_RUN_OUTCOME_FAILED,
        error="SOURCE_DRIFT",
    )
    service.will_answer(
        "SemanticService.GetMaintenanceHealth",
        pb.GetMaintenanceHealthResponse(
            health={"phase": semantic_pb2.MAINTENANCE_PHASE_FAILING, "worker_count": 2, "last_error_at": NOW},
            runs=[failed],
        ),
    )

    health = await memory.get_maintenance_health()

    assert (health.phase, health.worker_count, health.last_error_at) == ("FAILING", 2, THEN)
    assert [(run.outcome, run.error, run.ended_at) for run in health.runs] == [("FAILED", "SOURCE_DRIFT", THEN)]
    assert health.last_receipt is None
