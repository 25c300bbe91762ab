"""SemanticService: refreshes, what they leave on record, and how the index stands, through a real channel."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import grpc
import pytest

from durable_memory.app.semantic import lease_holder
from durable_memory.app.semantic.maintenance import MaintenancePhase
from durable_memory.domain.errors import Reason
from durable_memory.domain.semantic.refusals import lease_fenced
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from durable_memory.ports.vector_index import Consistency
from durablememory.v1 import change_set_pb2, recall_pb2, semantic_pb2, session_pb2
from durablememory.v1 import memory_service_pb2 as memory_pb
from durablememory.v1 import semantic_service_pb2 as pb
from durablememory.v1 import session_service_pb2 as session_pb
from tests.fixture_embedder import FixtureEmbedder
from tests.processes.polling import wait_until_async
from tests.rpc.every_rpc import NOBODYS, requests
from tests.rpc.messages import call, change_token, namespace, remember
from tests.rpc.reflected import reflected_rpcs
from tests.rpc.refusals import answer_or_error, error_info, refused
from tests.rpc.semantic_parts import GENERATION, SemanticParts

UNAVAILABLE = f"ERROR_REASON_{Reason.SEMANTIC_UNAVAILABLE}"
CAS = semantic_pb2.INDEX_CONSISTENCY_INDEX_REVISION_CAS
WHERE = namespace()


@pytest.fixture
def parts():
    return SemanticParts()


@pytest.fixture(params=["memory:", "sqlite"])
async def stubs(request, serve_application, parts):
    """Of a server that recalls semantically, with an open session `assistant` and two ACTIVE memories."""
    stubs = await (await serve_application(request.param, semantic=parts)).stubs()
    await stubs.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="assistant")))
    await remember(stubs, "The user drinks tea.", node_id="tea")
    await remember(stubs, "The office opens at 8.", node_id="hours")
    return stubs


def refreshing(stubs, **fields):
    asked = {"session_id": "assistant", "requirement": CAS, **fields}
    return stubs.semantic.RefreshSemanticRecall(pb.RefreshSemanticRecallRequest(**call(**asked)), timeout=60)


async def refresh(stubs, **fields):
    """The phases that were reached, and the receipt."""
    phases, receipt = [], None
    async for message in refreshing(stubs, **fields):
        assert receipt is None, "nothing comes after the receipt"
        if message.WhichOneof("message") == "receipt":
            receipt = message.receipt
        else:
            phases.append(message.progress.phase)
    return phases, receipt


async def status(stubs):
    return (await stubs.semantic.GetIndexStatus(pb.GetIndexStatusRequest(namespace=WHERE))).status


async def revise(stubs, citation, content):
    correction = change_set_pb2.REVISION_KIND_CORRECTION
    request = memory_pb.ReviseMemoryRequest(**call(citation=citation, revision_kind=correction, content=content))
    return (await stubs.memories.ReviseMemory(request)).citation


async def set_schedule(stubs, **fields):
    return (await stubs.semantic.SetSchedule(pb.SetScheduleRequest(**call(**fields)))).schedule


async def clear(stubs):
    return (await stubs.semantic.ClearPartition(pb.ClearPartitionRequest(**call()))).receipt


async def test_a_refresh_says_what_it_does_and_ends_with_its_receipt(stubs):
    phases, receipt = await refresh(stubs)

    assert phases == sorted(phases)
    assert phases[-1] == semantic_pb2.REFRESH_PHASE_PUBLISHED
    assert receipt.authority_digest == GENERATION.authority_digest
    assert (receipt.fence, receipt.index_revision, len(receipt.index_history_digest)) == (1, 1, 64)
    assert receipt.source == await change_token(stubs)
    assert (receipt.active_count, receipt.indexed_count) == (2, 2)
    assert receipt.consistency == CAS
    assert (receipt.work.added, receipt.work.provider_inputs, receipt.work.cache_hits) == (2, 2, 0)
    assert receipt.work.provider_calls == 1
    assert receipt.work.staged_bytes > 2 * 8 * 4
    assert receipt.HasField("written_at")
    assert not receipt.completed_by_successor


async def test_a_repeated_refresh_finds_nothing_to_do_and_asks_no_provider(stubs, parts):
    _, first = await refresh(stubs, request_id="refresh-1")
    calls = parts.embedder.usage.calls

    phases, again = await refresh(stubs, request_id="refresh-1")

    assert phases[-1] == semantic_pb2.REFRESH_PHASE_UNCHANGED
    assert (again.index_revision, again.index_history_digest) == (1, first.index_history_digest)
    assert (again.work.added, again.work.provider_calls) == (0, 0)
    assert parts.embedder.usage.calls == calls


async def test_a_rebuild_writes_everything_anew_from_cached_vectors(stubs):
    _, first = await refresh(stubs)

    _, rebuilt = await refresh(stubs, rebuild=True)

    assert (rebuilt.index_revision, rebuilt.indexed_count) == (2, 2)
    assert (rebuilt.work.cache_hits, rebuilt.work.provider_calls) == (2, 0)
    assert rebuilt.index_history_digest != first.index_history_digest


async def test_status_says_what_is_published_and_what_it_does_not_cover(stubs):
    before = await status(stubs)
    assert before.state == semantic_pb2.INDEX_STATE_NOT_BUILT
    assert before.unindexed_active_count == 2
    assert not any(before.HasField(field) for field in ("published", "last_receipt", "schedule"))

    _, receipt = await refresh(stubs)
    built = await status(stubs)
    assert built.state == semantic_pb2.INDEX_STATE_CURRENT
    assert built.unindexed_active_count == 0
    assert built.last_receipt == receipt
    assert built.change_token == await change_token(stubs)
    assert built.published == semantic_pb2.PublishedIndex(
        index_revision=1,
        index_history_digest=receipt.index_history_digest,
        fence=1,
        source=receipt.source,
        live_count=2,
        stored_bytes=receipt.work.staged_bytes,
        segment_count=1,
        float_bits=32,
    )

    await remember(stubs, "The user is called Zoë.", node_id="name")
    assert (await status(stubs)).unindexed_active_count == 1
    await refresh(stubs)
    assert (await status(stubs)).unindexed_active_count == 0


async def test_a_revised_memory_is_not_covered_until_the_next_refresh_replaces_its_vector(stubs):
    first = await remember(stubs, "Lunch is at noon.", node_id="lunch")
    await refresh(stubs)
    await revise(stubs, first, "Lunch is at one.")
    assert (await status(stubs)).unindexed_active_count == 1

    _, receipt = await refresh(stubs)

    assert (receipt.work.added, receipt.work.replaced, receipt.work.removed) == (0, 1, 0)
    covered = await status(stubs)
    assert (covered.unindexed_active_count, covered.published.live_count) == (0, 3)


async def test_an_index_that_lost_its_writes_is_regressed_and_is_built_again_without_the_provider(stubs, parts):
    await refresh(stubs)
    lease = await parts.leases.acquire(parts.partition().name, "vandal", ttl_seconds=600.0, floor=5, nonce="n")
    await parts.index.clear(parts.partition(), lease)
    await parts.leases.release(lease)

    regressed = await status(stubs)
    assert (regressed.state, regressed.unindexed_active_count) == (semantic_pb2.INDEX_STATE_REGRESSED, 2)
    _, receipt = await refresh(stubs)

    assert (receipt.work.cache_hits, receipt.work.provider_calls) == (2, 0)
    assert (await status(stubs)).state == semantic_pb2.INDEX_STATE_CURRENT


async def test_an_index_with_a_lost_segment_is_corrupted_and_is_built_again_without_the_provider(
    stubs, parts, monkeypatch
):
    await refresh(stubs)

    async def nothing(*_):
        return {}

    with monkeypatch.context() as patch:
        patch.setattr(type(parts.index), "segments", nothing)
        corrupted = await status(stubs)
        _, receipt = await refresh(stubs)

    assert (corrupted.state, corrupted.unindexed_active_count) == (semantic_pb2.INDEX_STATE_CORRUPTED, 2)
    assert (receipt.index_revision, receipt.work.cache_hits, receipt.work.provider_calls) == (2, 2, 0)
    assert (await status(stubs)).state == semantic_pb2.INDEX_STATE_CURRENT


async def test_what_the_provider_failed_at_is_told_and_the_old_index_stays(stubs, parts):
    _, first = await refresh(stubs)
    await remember(stubs, "The user is called Zoë.")
    parts.embedder.failures.append(EmbeddingError(EmbeddingFailure.TIMEOUT, retryable=True))

    async with refused(Reason.SEMANTIC_UNAVAILABLE, cause="PROVIDER_FAILED", failure="TIMEOUT"):
        await refresh(stubs)

    after = await status(stubs)
    assert after.last_failure == "SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:TIMEOUT"
    assert after.published.index_revision == first.index_revision
    assert after.unindexed_active_count == 1


async def test_a_refresh_is_for_a_session_of_the_servers_generation(stubs, parts):
    await stubs.sessions.OpenSession(
        session_pb.OpenSessionRequest(**call(session_id="words", policy={"mode": recall_pb2.RECALL_MODE_LEXICAL}))
    )
    parts.current.value = replace(GENERATION, model="another")
    await stubs.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="older")))
    parts.current.value = GENERATION
    await stubs.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="closed")))
    await stubs.sessions.CloseSession(session_pb.CloseSessionRequest(**call(session_id="closed")))

    async with refused(Reason.SESSION_NOT_FOUND):
        await refresh(stubs, session_id="nobody")
    async with refused(Reason.SESSION_CLOSED):
        await refresh(stubs, session_id="closed")
    for session_id, cause in (("words", "SEMANTIC_NOT_CONFIGURED"), ("older", "GENERATION_NOT_SERVED")):
        error = await answer_or_error(refresh(stubs, session_id=session_id))
        assert isinstance(error, grpc.aio.AioRpcError)
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert (error_info(error).reason, error_info(error).metadata["cause"]) == (UNAVAILABLE, cause)
    assert (await status(stubs)).state == semantic_pb2.INDEX_STATE_NOT_BUILT


@pytest.mark.parametrize("requirement", [0, 3])
async def test_a_refresh_states_what_the_backend_must_promise(stubs, requirement):
    async with refused(Reason.INVALID_FIELD, field="requirement"):
        await refresh(stubs, requirement=requirement)


async def test_a_weaker_backend_is_refused_before_any_work_unless_any_will_do(stubs, parts, monkeypatch):
    monkeypatch.setattr(type(parts.index), "consistency", Consistency.LAST_WRITER_WINS)

    async with refused(Reason.CONSISTENCY_UNSUPPORTED, required="INDEX_REVISION_CAS", offered="LAST_WRITER_WINS"):
        await refresh(stubs)
    assert parts.embedder.usage.calls == 0

    _, receipt = await refresh(stubs, requirement=semantic_pb2.INDEX_CONSISTENCY_LAST_WRITER_WINS)
    assert receipt.consistency == semantic_pb2.INDEX_CONSISTENCY_LAST_WRITER_WINS


async def test_an_index_over_its_budget_is_refused(stubs, parts, monkeypatch):
    monkeypatch.setattr("durable_memory.app.semantic.refresh.live_records", lambda _: 1_001)

    async with refused(Reason.QUOTA_EXCEEDED, quota="index_records", limit=1_000, actual=1_001):
        await refresh(stubs)


async def test_one_refresh_of_a_namespace_runs_at_a_time_and_the_other_is_told_to_wait(stubs, parts):
    parts.embedder.gate.clear()
    first = asyncio.create_task(refresh(stubs))
    await parts.embedder.waiting.wait()

    async with refused(Reason.LEASE_HELD) as info:
        await refresh(stubs)
    assert 0 < int(info.metadata["retry_after_ms"]) <= 30_000

    parts.embedder.gate.set()
    _, receipt = await first
    assert receipt.indexed_count == 2


async def test_a_caller_that_leaves_ends_the_refresh_and_leaves_the_index_as_it_was(stubs, parts):
    parts.embedder.gate.clear()
    stream = refreshing(stubs)
    assert (await stream.read()).WhichOneof("message") == "progress"
    await parts.embedder.waiting.wait()

    stream.cancel()

    await wait_until_async(lambda: parts.embedder.cancelled == 1)
    parts.embedder.gate.set()
    assert (await status(stubs)).state == semantic_pb2.INDEX_STATE_NOT_BUILT

    async def free():
        return (await parts.leases.inspect(parts.partition().name)).owner is None

    await wait_until_async(free)
    _, receipt = await refresh(stubs)
    assert receipt.index_revision == 1


async def test_a_lost_lease_ends_the_work_and_the_caller_is_told(stubs, parts, monkeypatch):
    async def renew(self, lease):
        await parts.embedder.waiting.wait()
        raise lease_fenced(lease.fence, lease.fence + 1)

    monkeypatch.setattr(type(parts.leases), "renew", renew)
    monkeypatch.setattr(lease_holder, "_RENEWALS_PER_TTL", 300)  # so that the first of them is soon
    parts.embedder.gate.clear()

    async with refused(Reason.LEASE_FENCED, fence=1, highest_fence=2):
        await refresh(stubs)
    assert parts.embedder.cancelled == 1


async def test_receipts_are_listed_newest_first_page_by_page(stubs):
    await refresh(stubs)
    await remember(stubs, "The user is called Zoë.")
    await refresh(stubs)
    await clear(stubs)

    pages: list[list[tuple[int, int]]] = []
    token = ""
    while not pages or token:
        answer = await stubs.semantic.ListReceipts(
            pb.ListReceiptsRequest(namespace=WHERE, page_size=2, page_token=token)
        )
        pages.append([(receipt.fence, receipt.index_revision) for receipt in answer.receipts])
        token = answer.next_page_token

    assert pages == [[(3, 0), (2, 2)], [(1, 1)]]
    whole = await stubs.semantic.ListReceipts(pb.ListReceiptsRequest(namespace=WHERE))
    assert len(whole.receipts) == 3
    assert not whole.next_page_token


async def test_a_cleared_index_is_built_again_without_the_provider(stubs, parts):
    await refresh(stubs)

    receipt = await clear(stubs)

    assert (receipt.index_revision, receipt.indexed_count, receipt.active_count) == (0, 0, 2)
    assert receipt.index_history_digest == "0" * 64
    cleared = await status(stubs)
    assert (cleared.state, cleared.unindexed_active_count) == (semantic_pb2.INDEX_STATE_NOT_BUILT, 2)
    assert not cleared.HasField("published")
    assert (await clear(stubs)).index_revision == 0
    calls = parts.embedder.usage.calls
    _, built = await refresh(stubs)
    assert (built.indexed_count, built.work.cache_hits, parts.embedder.usage.calls) == (2, 2, calls)


async def test_a_schedule_holds_until_the_next_one_replaces_all_of_it(stubs):
    schedule = await set_schedule(stubs, interval=timedelta(hours=1), on_change_delay=timedelta(seconds=2.5))

    assert schedule.interval.ToTimedelta() == timedelta(hours=1)
    assert schedule.on_change_delay.ToTimedelta() == timedelta(seconds=2.5)
    assert (schedule.set_by, schedule.HasField("set_at")) == ("development", True)
    assert (await status(stubs)).schedule == schedule
    off = await set_schedule(stubs)
    assert not off.HasField("interval")
    assert not off.HasField("on_change_delay")
    assert (await status(stubs)).schedule == off


@pytest.mark.parametrize("field", ["interval", "on_change_delay"])
@pytest.mark.parametrize(
    "given",
    [
        {"seconds": 0},
        {"nanos": 999_999_999},
        {"seconds": -5},
        {"seconds": 5, "nanos": -1},
        {"seconds": 5, "nanos": 1_000_000_000},
        {"seconds": 366 * 86_400, "nanos": 1_000},
        {"seconds": 2**63 - 1},
    ],
)
async def test_a_schedule_out_of_bounds_is_refused_and_the_old_one_holds(stubs, field, given):
    async with refused(Reason.INVALID_FIELD, field=field):
        await set_schedule(stubs, **{field: given})

    assert not (await status(stubs)).HasField("schedule")


async def test_the_longest_and_the_shortest_schedule_are_accepted(stubs):
    await set_schedule(stubs, interval=timedelta(days=366), on_change_delay=timedelta(seconds=1))


async def test_maintenance_tells_of_the_process_and_of_the_namespaces_runs(stubs, parts):
    asked = pb.GetMaintenanceHealthRequest(namespace=WHERE)
    before = await stubs.semantic.GetMaintenanceHealth(asked)
    assert (before.health.worker_count, before.health.run_count, before.health.last_error) == (2, 0, "")
    assert before.health.phase in (semantic_pb2.MAINTENANCE_PHASE_STOPPED, semantic_pb2.MAINTENANCE_PHASE_IDLE)
    assert not before.runs
    assert not before.HasField("last_receipt")
    parts.embedder.failures.append(EmbeddingError(EmbeddingFailure.NOT_FINITE, retryable=False))
    async with refused(Reason.SEMANTIC_UNAVAILABLE):
        await refresh(stubs)
    _, receipt = await refresh(stubs)

    after = await stubs.semantic.GetMaintenanceHealth(asked)

    assert after.last_receipt == receipt
    (run,) = after.runs
    assert run.outcome == semantic_pb2.MAINTENANCE_RUN_OUTCOME_FAILED
    assert run.error == "SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:NOT_FINITE"
    assert (run.fence, run.index_revision, receipt.fence) == (1, 0, 2)
    assert run.started_at.ToNanoseconds() <= run.ended_at.ToNanoseconds()


async def test_who_is_no_operator_is_told_of_the_namespace_and_not_of_the_process(
    serve_application, credentials_file, parts
):
    """The process works for all tenants, and how busy it is or why it fails tells of theirs."""
    served = await serve_application(credentials_file=credentials_file, semantic=parts)
    asked = pb.GetMaintenanceHealthRequest(namespace=WHERE)
    owner = await served.stubs("activator")
    await owner.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="assistant")))
    await remember(owner, "The user drinks tea.")
    _, receipt = await refresh(owner)

    for name, is_operator in (("reader", False), ("writer", False), ("activator", False), ("full", True)):
        answer = await (await served.stubs(name)).semantic.GetMaintenanceHealth(asked)
        assert (answer.HasField("health"), answer.last_receipt) == (is_operator, receipt)


async def test_a_text_that_the_provider_refuses_is_counted_in_receipt_and_status(stubs, parts, monkeypatch):
    def row(self, text):
        if "tea" in text:
            raise EmbeddingError(EmbeddingFailure.REFUSED, retryable=False, status=400)
        return [1.0] * GENERATION.dimension

    monkeypatch.setattr(FixtureEmbedder, "_row", row)
    _, receipt = await refresh(stubs)

    assert (receipt.active_count, receipt.indexed_count, receipt.work.added, receipt.work.refused) == (2, 1, 1, 1)
    stands = await status(stubs)
    assert (stands.refused_count, stands.unindexed_active_count, stands.last_failure) == (1, 1, "")


def test_the_phases_of_maintenance_have_the_numbers_of_the_contract():
    contract = semantic_pb2.MaintenancePhase.DESCRIPTOR.values_by_name
    assert {f"MAINTENANCE_PHASE_{phase.name}": phase.value for phase in MaintenancePhase} == {
        name: value.number for name, value in contract.items() if value.number
    }


async def test_the_server_says_which_generation_it_makes(stubs):
    info = await stubs.sessions.GetServerInfo(session_pb.GetServerInfoRequest())

    assert list(info.semantic_generations) == [
        session_pb2.SemanticGeneration(
            authority_digest=GENERATION.authority_digest,
            provider=GENERATION.provider,
            model=GENERATION.model,
            model_revision=GENERATION.revision,
            dimension=GENERATION.dimension,
            normalization=session_pb2.VECTOR_NORMALIZATION_L2,
            metric=session_pb2.VECTOR_METRIC_COSINE,
            candidate_limit=100,
            min_similarity=-1.0,
        )
    ]
    assert (await status(stubs)).generation == info.semantic_generations[0]
    assert info.default_policy.semantic == session_pb2.SemanticPolicy(
        authority_digest=GENERATION.authority_digest, candidate_limit=100, min_similarity=-1.0
    )
    assert set(info.recall_modes) == {1, 2, 3, 4}


async def test_without_a_generation_every_rpc_says_so_once_the_request_is_in_order(serve_application):
    stubs = await (await serve_application()).stubs()
    for rpc in await reflected_rpcs(stubs.channel):
        if rpc.service != "SemanticService":
            continue
        request = requests(namespace(), NOBODYS)[rpc.name]
        async with refused(Reason.SEMANTIC_UNAVAILABLE, cause="SEMANTIC_NOT_CONFIGURED"):
            await rpc.call(stubs.channel, request)
        if "request_id" in request.DESCRIPTOR.fields_by_name:
            request.request_id = ""
            async with refused(Reason.INVALID_FIELD, field="request_id"):
                await rpc.call(stubs.channel, request)
    info = await stubs.sessions.GetServerInfo(session_pb.GetServerInfoRequest())
    assert not info.semantic_generations
