"""A provider that fails in every way there is: the index stays as it was, says what it lacks and why, and still serves.

Nobody waits for it longer than they said they would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc
import pytest

from durable_memory_client import DegradationReason, IndexState, RecallMode
from durable_memory_client.errors import DeadlineExceededError, SemanticUnavailableError
from durable_memory_client.sync import MemoryNamespace, MemorySession
from tests.fixture_embedder import DIMENSION
from tests.integration.semantic.deployment import (
    ABOUT_MONEY,
    ABOUT_SLEEP,
    EXPLICIT,
    LONG_SECONDS,
    MONEY,
    RAIN,
    SLEEP,
    TEA,
    Deployment,
    Replica,
    by_hand,
    ids,
    refresh,
    refresh_when_free,
    remember,
    understands,
    understood,
    without,
)
from tests.processes.embedding_provider import (
    Behaviour,
    EmbeddingProvider,
    for_texts_with,
    hangs,
    in_turn,
    reorders,
    replaces,
    says,
)
from tests.processes.polling import wait_until

pytestmark = pytest.mark.usefixtures("each_call_once")

CALL_SECONDS = 10.0
"""Of a provider that says nothing; one that answers does so sooner."""
CALLER_SECONDS = 15.0
"""Of one who waits for a recall: no provider is waited for to the end of that."""


@dataclass(frozen=True)
class Trouble:
    """What the provider does, what it is called, and how often it is asked within one refresh."""

    behaviour: Behaviour
    failure: str
    calls: int = 1
    details: tuple[tuple[str, str], ...] = ()


def last(row: Callable[[list[float]], list[float]]) -> Behaviour:
    """Only the last of several vectors is bad: the others are not taken either."""
    return replaces(lambda rows: [*rows[:-1], row(rows[-1])])


def sizes(received: int) -> tuple[tuple[str, str], ...]:
    return (("expected_dimension", str(DIMENSION)), ("received_dimension", str(received)))


TROUBLES = {
    "an error": Trouble(says(500), "UNREACHABLE", calls=2, details=(("status", "500"),)),
    "a refusal of the credential": Trouble(says(401), "REFUSED", details=(("status", "401"),)),
    "too many requests, always": Trouble(says(429), "RATE_LIMITED", calls=2, details=(("status", "429"),)),
    "fewer vectors than inputs": Trouble(replaces(lambda rows: rows[:-1]), "WRONG_COUNT"),
    "another dimension": Trouble(
        replaces(lambda rows: [row + row for row in rows]), "WRONG_DIMENSION", details=sizes(2 * DIMENSION)
    ),
    "one of another dimension": Trouble(last(lambda row: row[:-1]), "WRONG_DIMENSION", details=sizes(DIMENSION - 1)),
    "not a number": Trouble(last(lambda row: [*row[:-1], math.nan]), "NOT_FINITE"),
    "infinity": Trouble(last(lambda row: [*row[:-1], -math.inf]), "NOT_FINITE"),
    "a zero vector": Trouble(last(lambda row: [0.0] * len(row)), "ZERO_VECTOR"),
    "an index twice": Trouble(reorders(lambda items: [items[0], {**items[1], "index": 0}]), "WRONG_ORDER"),
    "no index at all": Trouble(reorders(lambda items: [{"embedding": items[0]["embedding"]}] * 2), "WRONG_ORDER"),
    "nothing": Trouble(hangs, "TIMEOUT"),
}


@pytest.fixture(scope="module")
def replica(shared: Deployment) -> Replica:
    """A server that waits some seconds for its provider, and tries twice."""
    return shared.start(
        embedding_call_timeout_seconds=CALL_SECONDS, embedding_query_timeout_seconds=CALL_SECONDS, embedding_attempts=2
    )


@pytest.fixture(scope="module")
def patient(shared: Deployment, replica: Replica) -> Replica:
    """A server that would wait for its provider for much longer than any caller for it."""
    return shared.start(
        embedding_call_timeout_seconds=600, embedding_query_timeout_seconds=600, vectors_lease_ttl_seconds=600
    )


@pytest.fixture
def scripted(shared: Deployment) -> Iterator[EmbeddingProvider]:
    """The provider, which is well before and after the test."""
    provider = shared.provider.provider
    yield provider
    provider.usually = understands()


@pytest.fixture
def memory(replica: Replica, scope: str) -> MemoryNamespace:
    return replica.at(scope)


@pytest.fixture
def session(memory: MemoryNamespace, scripted: EmbeddingProvider) -> MemorySession:
    """Two memories are indexed, and two are not yet."""
    session = by_hand(memory)
    remember(memory, TEA, RAIN)
    refresh(memory)
    remember(memory, MONEY, SLEEP)
    assert understood(session)
    return session


def for_new_texts(behaviour: Behaviour) -> Behaviour:
    return for_texts_with(MONEY, behaviour, understands())


def calls_for_new_texts(provider: EmbeddingProvider) -> int:
    """Others are the server's own, which looks whether a provider that failed is there again."""
    return sum(MONEY in call.texts for call in list(provider.calls))


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_a_refresh_fails_whole_and_says_why_while_the_old_index_serves(
    memory: MemoryNamespace, session: MemorySession, scripted: EmbeddingProvider, trouble: Trouble
):
    before = memory.get_index_status()
    scripted.usually = for_new_texts(trouble.behaviour)
    asked = calls_for_new_texts(scripted)
    with pytest.raises(SemanticUnavailableError) as failed:
        refresh(memory)
    assert failed.value.code is grpc.StatusCode.UNAVAILABLE
    told = {"cause": "PROVIDER_FAILED", "failure": trouble.failure, **dict(trouble.details)}
    assert dict(failed.value.metadata) == told
    assert calls_for_new_texts(scripted) == asked + trouble.calls

    after = memory.get_index_status()
    assert (after.state, after.published) == (IndexState.CURRENT, before.published)
    assert after.last_receipt == before.last_receipt
    assert after.unindexed_active_count == 2
    details = [f"{name}={value}" for name, value in trouble.details]
    assert after.last_failure == ":".join(["SEMANTIC_UNAVAILABLE", "PROVIDER_FAILED", trouble.failure, *details])
    assert memory.get_maintenance_health().runs[0].error == after.last_failure
    assert understood(session)
    found = session.recall("invoices")
    assert (ids(found), without(found)) == (["invoices"], None), "found by words until it has a vector"
    assert found.semantic is not None
    assert (found.semantic.vectors_searched, found.semantic.unindexed_active_count) == (2, 2)
    assert session.recall(ABOUT_MONEY).hits == ()

    scripted.usually = understands()
    receipt = refresh(memory)
    assert (receipt.work.added, receipt.work.provider_inputs, receipt.indexed_count) == (2, 2, 4)
    status = memory.get_index_status()
    assert (status.unindexed_active_count, status.last_failure) == (0, "")
    assert understood(session, ABOUT_MONEY, "invoices")


def test_a_text_that_the_provider_refuses_is_left_out_and_counted_and_the_others_are_indexed(
    memory: MemoryNamespace, session: MemorySession, scripted: EmbeddingProvider
):
    scripted.usually = for_new_texts(says(400))
    receipt = refresh(memory)
    assert (receipt.work.added, receipt.work.refused, receipt.indexed_count, receipt.active_count) == (1, 1, 3, 4)
    status = memory.get_index_status()
    assert (status.refused_count, status.unindexed_active_count, status.last_failure) == (1, 1, "")
    assert understood(session)
    found = session.recall("invoices")
    assert (ids(found), without(found)) == (["invoices"], None), "found by words all the same"
    assert found.semantic is not None
    assert (found.semantic.vectors_searched, found.semantic.unindexed_active_count) == (3, 1)

    asked = calls_for_new_texts(scripted)
    assert refresh(memory).work.refused == 0, "nothing has changed"
    assert calls_for_new_texts(scripted) == asked
    scripted.usually = understands()
    assert memory.refresh_semantic_recall("assistant", rebuild=True).wait().indexed_count == 4
    assert memory.get_index_status().refused_count == 0


def test_a_provider_that_asks_for_a_pause_gets_it_and_is_asked_again(
    memory: MemoryNamespace, session: MemorySession, scripted: EmbeddingProvider
):
    scripted.usually = for_new_texts(in_turn(says(429, {"retry-after": "0"}), understands()))
    receipt = refresh(memory)
    assert (receipt.work.provider_calls, receipt.work.provider_inputs, receipt.indexed_count) == (2, 2, 4)
    assert understood(session, ABOUT_MONEY, "invoices")


def test_vectors_in_another_order_are_put_right_by_their_index(
    memory: MemoryNamespace, session: MemorySession, scripted: EmbeddingProvider
):
    scripted.usually = for_new_texts(reorders(lambda items: items[::-1], understands()))
    assert refresh(memory).indexed_count == 4
    assert understood(session, ABOUT_MONEY, "invoices")
    assert understood(session, ABOUT_SLEEP, "pillows")


@pytest.mark.parametrize(
    ("behaviour", "question", "failure"),
    [
        (says(500), "unheard of kettles", "UNREACHABLE (status 500)"),
        (hangs, "kettles unheard", "TIMEOUT"),
    ],
    ids=["error", "nothing"],
)
def test_a_question_that_cannot_be_embedded_is_answered_by_words_and_says_so(
    session: MemorySession, scripted: EmbeddingProvider, behaviour: Behaviour, question: str, failure: str
):
    scripted.usually = for_texts_with("unheard", behaviour, understands())
    found = session.recall(question, timeout=LONG_SECONDS)
    assert (ids(found), found.mode_used) == (["kettles"], RecallMode.LEXICAL)
    assert without(found) is DegradationReason.PROVIDER_FAILED
    assert understood(session), "a question whose vector is known needs no provider"
    with pytest.raises(SemanticUnavailableError) as refused:
        session.recall(question, mode=RecallMode.SEMANTIC, timeout=LONG_SECONDS)
    assert (refused.value.code, refused.value.metadata["cause"]) == (grpc.StatusCode.UNAVAILABLE, "PROVIDER_FAILED")
    assert failure in refused.value.message
    assert found.degradation is not None
    assert failure in found.degradation.message
    scripted.usually = understands()
    assert without(session.recall(question)) is None


@pytest.mark.usefixtures("session")
def test_a_silent_provider_holds_no_recall_past_its_deadline(patient: Replica, scripted: EmbeddingProvider, scope: str):
    session = patient.at(scope).resume_session("assistant", _digest(patient, scope))
    assert understood(session)
    scripted.usually = hangs
    found = session.recall("unheard of kettles", timeout=CALLER_SECONDS)
    assert (ids(found), found.mode_used, without(found)) == (
        ["kettles"],
        RecallMode.LEXICAL,
        DegradationReason.DEADLINE,
    )
    with ThreadPoolExecutor(len(EXPLICIT)) as pool:
        for asked in [
            pool.submit(session.recall, "unheard of kettles", mode=mode, timeout=CALLER_SECONDS) for mode in EXPLICIT
        ]:
            refused = asked.exception()
            assert isinstance(refused, SemanticUnavailableError)
            assert refused.metadata["cause"] == "DEADLINE"


@pytest.mark.usefixtures("session")
def test_a_silent_provider_holds_no_refresh_past_its_deadline_and_no_lease_after_it(
    patient: Replica, scripted: EmbeddingProvider, scope: str
):
    memory = patient.at(scope)
    before = memory.get_index_status()
    scripted.usually = for_new_texts(hangs)
    with pytest.raises(DeadlineExceededError):
        refresh(memory, timeout=2.0)
    assert memory.get_index_status().published == before.published
    scripted.usually = understands()
    # Whoever comes next does not wait for the lease to run out, which here takes longer than a test.
    assert refresh_when_free(memory).indexed_count == 4


@pytest.mark.usefixtures("session")
def test_recall_goes_on_while_a_refresh_waits_for_its_provider(patient: Replica, shared: Deployment, scope: str):
    memory = patient.at(scope)
    session = memory.resume_session("assistant", _digest(patient, scope))
    assert understood(session)
    shared.provider.hold()
    with ThreadPoolExecutor(1) as pool:
        try:
            waiting = pool.submit(refresh, memory)
            wait_until(lambda: MONEY in shared.provider.texts[-2:], what="the refresh has come to the provider")
            for _ in range(20):
                assert understood(session)
            remember(memory, "Bridges carry trains.")
            assert not waiting.done()
        finally:
            shared.provider.let_go()
        assert waiting.result().indexed_count == 5


def _digest(replica: Replica, scope: str) -> str:
    return replica.at(scope).get_session("assistant").binding_digest
