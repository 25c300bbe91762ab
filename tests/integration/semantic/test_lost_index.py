"""Redis dies, comes back empty, or comes back older than it was: no answer is wrong, and no vector is made again."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from durable_memory_client import DegradationReason, IndexState, RecallMode, RefreshReceipt
from durable_memory_client.errors import DependencyUnavailableError, SemanticUnavailableError
from durable_memory_client.sync import MemoryNamespace, MemorySession
from tests.integration.semantic.deployment import (
    ABOUT_RAIN,
    ABOUT_TEA,
    EXPLICIT,
    LONG_SECONDS,
    MONEY,
    RAIN,
    TEA,
    Deployment,
    assistant,
    by_hand,
    covered,
    ids,
    refresh,
    remember,
    understood,
    without,
)
from tests.processes.polling import wait_until
from tests.processes.proxy import Fate, TcpProxy, Way
from tests.processes.server import ServerProcess

pytestmark = pytest.mark.usefixtures("each_call_once")


def only_words(session: MemorySession, reason: DegradationReason) -> None:
    """AUTO answers by words and says why; explicit modes fail, and say why."""
    found = session.recall("kettles")
    assert (ids(found), found.mode_used, without(found)) == (["kettles"], RecallMode.LEXICAL, reason)
    assert session.recall(ABOUT_TEA).hits == ()
    for mode in EXPLICIT:
        with pytest.raises(SemanticUnavailableError) as refused:
            session.recall("kettles", mode=mode)
        assert refused.value.code is grpc.StatusCode.UNAVAILABLE
        assert refused.value.metadata["cause"] == reason.value


def test_an_index_that_dies_and_comes_back_empty_is_built_again_without_the_provider_and_without_a_restart(
    deployment: Deployment, scope: str
):
    replica = deployment.start()
    memory, other = replica.at(scope), replica.at("another")
    session = assistant(memory)
    remember(memory, TEA, RAIN)
    wait_until(lambda: understood(session), what="the schedule has indexed what was remembered")
    # Every question of this story is known to the server from here on.
    only_asks = ("kettles", ABOUT_TEA, ABOUT_RAIN)
    for question in only_asks:
        session.recall(question)
    calls, last = len(deployment.provider.provider.calls), _last_receipt(memory)

    deployment.redis.kill9()
    only_words(session, DegradationReason.INDEX_UNAVAILABLE)
    remember(other, MONEY)
    assert ids(other.preview("invoices", mode=RecallMode.LEXICAL)) == ["invoices"], "writes go on"
    with pytest.raises(DependencyUnavailableError):
        memory.get_index_status()

    deployment.redis.restart_empty()
    seen = []

    def is_back() -> bool:
        recall = session.recall(ABOUT_TEA)
        seen.append(without(recall))
        return (ids(recall), recall.mode_used) == (["kettles"], RecallMode.HYBRID)

    wait_until(is_back, what=lambda: f"hybrid recall is back; so far it said {set(seen)}")
    assert set(seen[:-1]) <= {DegradationReason.INDEX_UNAVAILABLE, DegradationReason.INDEX_REGRESSED}
    assert understood(session, ABOUT_RAIN, "umbrellas")
    receipt = _last_receipt(memory)
    assert receipt.fence > last.fence
    assert (receipt.work.cache_hits, receipt.work.provider_calls, receipt.indexed_count) == (2, 0, 2)
    assert len(deployment.provider.provider.calls) == calls, "nothing was embedded again"


def test_an_index_that_came_back_empty_is_not_served_until_it_is_built_again(deployment: Deployment, scope: str):
    memory = deployment.start().at(scope)
    session = by_hand(memory)
    remember(memory, TEA, RAIN)
    refresh(memory)
    assert understood(session)
    calls = len(deployment.provider.provider.calls)

    deployment.redis.restart_empty()
    wait_until(lambda: without(session.recall("kettles")) is DegradationReason.INDEX_REGRESSED)
    only_words(session, DegradationReason.INDEX_REGRESSED)
    status = memory.get_index_status()
    assert (status.state, status.published, status.unindexed_active_count) == (IndexState.REGRESSED, None, 2)
    assert status.last_receipt is not None
    assert status.last_receipt.indexed_count == 2, "what was there is still known"

    receipt = refresh(memory)
    assert (receipt.work.cache_hits, receipt.work.provider_calls, receipt.work.provider_inputs) == (2, 0, 0)
    assert receipt.fence > status.last_receipt.fence
    assert understood(session)
    assert len(deployment.provider.provider.calls) == calls + 1, "the one new question, and nothing else"
    assert memory.get_index_status().state is IndexState.CURRENT


def test_an_index_that_came_back_older_is_not_served_by_any_server_and_built_again(deployment: Deployment, scope: str):
    one, other = (deployment.start().at(scope) for _ in range(2))
    session = by_hand(one)
    asleep = other.resume_session("assistant", session.info.binding_digest)
    remember(one, TEA)
    first = refresh(one)
    assert understood(session)
    assert understood(asleep)
    earlier = deployment.redis.keep_data()
    remember(one, RAIN)
    second = refresh(one)
    assert second.index_revision == first.index_revision + 1
    assert understood(session, ABOUT_RAIN, "umbrellas")
    calls = len(deployment.provider.provider.calls)

    # The other server has not looked since: it knows the earlier state as a good one.
    deployment.redis.restart_from(earlier)
    for bound in (asleep, session):
        wait_until(lambda: without(bound.recall(ABOUT_TEA)) is not DegradationReason.INDEX_UNAVAILABLE)  # noqa: B023
        assert without(bound.recall(ABOUT_TEA)) is DegradationReason.INDEX_REGRESSED
    for memory in (one, other):
        status = memory.get_index_status()
        assert (status.state, status.unindexed_active_count) == (IndexState.REGRESSED, 2)

    receipt = refresh(one)
    assert receipt.fence > second.fence, "a lease store that went back grants no fence twice"
    assert (receipt.work.cache_hits, receipt.work.provider_calls, receipt.indexed_count) == (2, 0, 2)
    for bound in (session, asleep):
        assert understood(bound)
        assert understood(bound, ABOUT_RAIN, "umbrellas")
    assert len(deployment.provider.provider.calls) == calls + 1, "the other server's first look at one question"


def test_a_damaged_segment_is_not_searched_and_is_made_again_from_cached_vectors(deployment: Deployment, scope: str):
    memory = deployment.start().at(scope)
    session = assistant(memory)
    remember(memory, TEA, RAIN)
    wait_until(lambda: covered(memory), what="both are indexed")
    published, texts = _last_receipt(memory), len(deployment.provider.texts)
    with deployment.redis.client() as client:
        for key in client.scan_iter("dm:*:seg:*"):
            segment = client.get(key)
            assert isinstance(segment, bytes)
            client.setrange(key, len(segment) - 1, bytes([segment[-1] ^ 1]))

    # A server that has not read it yet.
    other = deployment.start().at(scope)
    there = other.resume_session("assistant", session.info.binding_digest)
    assert without(there.recall("kettles")) is DegradationReason.INDEX_CORRUPTED
    for bound in (there, session):
        wait_until(lambda: understood(bound), what="hybrid recall is back")  # noqa: B023
        assert understood(bound, ABOUT_RAIN, "umbrellas")
    receipt = _last_receipt(other)
    assert (receipt.work.cache_hits, receipt.work.provider_calls, receipt.indexed_count) == (2, 0, 2)
    assert receipt.index_revision == published.index_revision + 1
    asked = deployment.provider.texts[texts:]
    assert not {TEA, RAIN} & set(asked), "nothing was embedded again"


def test_a_server_that_starts_without_its_index_serves_by_words_until_the_index_is_there(
    deployment: Deployment, scope: str
):
    deployment.redis.kill9()
    memory = deployment.start().at(scope)
    session = assistant(memory)
    remember(memory, TEA)
    only_words(session, DegradationReason.INDEX_UNAVAILABLE)
    deployment.redis.restart()
    wait_until(lambda: understood(session), what="the session has what it is bound to")


def test_an_index_that_stays_silent_holds_no_recall_past_its_deadline(deployment: Deployment, scope: str):
    memory = deployment.start().at(scope)
    session = by_hand(memory)
    remember(memory, TEA)
    refresh(memory)
    assert understood(session)

    deployment.redis.stop_answering()
    try:
        found = session.recall("kettles", timeout=10.0)
        assert (ids(found), found.mode_used) == (["kettles"], RecallMode.LEXICAL)
        assert without(found) in (DegradationReason.INDEX_UNAVAILABLE, DegradationReason.DEADLINE)
        remember(memory, RAIN)
    finally:
        deployment.redis.answer_again()
    wait_until(lambda: understood(session), what="hybrid recall is back")


async def test_an_index_that_goes_on_being_silent_is_asked_by_nobody_who_calls(deployment: Deployment, scope: str):
    silence = Silence()
    async with TcpProxy(deployment.redis.port) as line:
        url = deployment.redis.url.replace(str(deployment.redis.port), str(line.port))
        replica = await asyncio.to_thread(deployment.start, vectors_redis_url=url)
        memory = replica.at(scope)
        session = await asyncio.to_thread(_with_tea, memory)
        line.rule = silence
        await asyncio.to_thread(_told_without_asking, memory, session, silence, replica.server)
        line.mend()
        await asyncio.to_thread(wait_until, lambda: understood(session), what="hybrid recall is back")
        await asyncio.to_thread(refresh, memory)
        assert await asyncio.to_thread(understood, session, ABOUT_RAIN, "umbrellas")
        await asyncio.to_thread(replica.server.terminate)


class Silence:
    """A rule under which connections are made and nothing is answered; `asked` is how often partitions were asked for.

    Whoever looks whether the index is back asks for none.
    """

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, way: Way, chunk: bytes) -> Fate:
        if way is Way.TO_CLIENT or b"\r\nCLIENT\r\n" in chunk:
            return Fate.PASS
        self.asked += b"dm:{" in chunk
        return Fate.SWALLOW


def _with_tea(memory: MemoryNamespace) -> MemorySession:
    session = by_hand(memory)
    remember(memory, TEA)
    refresh(memory)
    assert understood(session)
    return session


def _told_without_asking(
    memory: MemoryNamespace, session: MemorySession, silence: Silence, server: ServerProcess
) -> None:
    _refused_for_the_index(memory)
    wait_until(lambda: "index_left_alone" in server.log_text(), what="nobody is to wait for it any more")
    asked = silence.asked
    assert asked
    for _ in range(5):
        only_words(session, DegradationReason.INDEX_UNAVAILABLE)
        _refused_for_the_index(memory)
    remember(memory, RAIN)
    assert silence.asked == asked


def _refused_for_the_index(memory: MemoryNamespace) -> None:
    """And not for the caller's deadline."""
    for ask in (lambda: memory.get_index_status(timeout=LONG_SECONDS), lambda: refresh(memory, timeout=LONG_SECONDS)):
        with pytest.raises(DependencyUnavailableError) as refused:
            ask()
        assert refused.value.metadata["dependency"] == "index"


def _last_receipt(memory: MemoryNamespace) -> RefreshReceipt:
    (receipt,) = memory.list_receipts(page_size=1).page().items
    return receipt
