"""A server that starts while its provider does not answer, with or without ever having heard what it makes."""

from __future__ import annotations

import pytest

from durable_memory_client import DegradationReason, IndexState, RecallMode
from durable_memory_client.errors import SemanticUnavailableError
from tests.integration.semantic.deployment import (
    ABOUT_RAIN,
    ABOUT_TEA,
    EXPLICIT,
    RAIN,
    TEA,
    Deployment,
    Replica,
    assistant,
    covered,
    ids,
    remember,
    understands,
    understood,
    without,
)
from tests.processes.embedding_provider import says
from tests.processes.polling import wait_until

pytestmark = pytest.mark.usefixtures("each_call_once")


@pytest.fixture(params=["embedded", "deployment"])
def anywhere(request: pytest.FixtureRequest) -> Deployment:
    """Everything in one file, or servers that share PostgreSQL and Redis."""
    deployment: Deployment = request.getfixturevalue(request.param)
    return deployment


def knows_generation(replica: Replica) -> bool:
    return bool(replica.client.server_info().semantic_generations)


def test_a_session_that_is_opened_while_the_provider_of_a_restarted_server_is_away_is_hybrid_when_it_answers_again(
    anywhere: Deployment, scope: str
):
    replica = anywhere.start(embedding_attempts=1)
    memory = replica.at(scope)
    before = assistant(memory, "before")
    remember(memory, TEA)
    wait_until(lambda: covered(memory), what="it is indexed")
    assert replica.server.terminate() == 0

    anywhere.provider.provider.usually = says(503)
    replica.server.start()
    assert knows_generation(replica), "from the repository"
    session = assistant(memory, "opened while it was away")
    assert session.info.binding.semantic_generation == before.info.binding.semantic_generation
    for bound in (before, session):
        found = bound.recall("kettles")
        assert (ids(found), found.mode_used) == (["kettles"], RecallMode.LEXICAL)
        assert without(found) is DegradationReason.PROVIDER_FAILED
        for mode in EXPLICIT:
            with pytest.raises(SemanticUnavailableError) as refused:
                bound.recall("kettles", mode=mode)
            assert refused.value.metadata["cause"] == "PROVIDER_FAILED"
    status = memory.get_index_status()
    assert (status.state, status.unindexed_active_count) == (IndexState.CURRENT, 0)
    remember(memory, RAIN)

    anywhere.provider.provider.usually = understands()
    wait_until(lambda: understood(session), 60.0, what="the session that was opened meanwhile recalls by meaning")
    assert understood(before)
    wait_until(lambda: covered(memory), what="what was remembered meanwhile is indexed")
    assert understood(session, ABOUT_RAIN, "umbrellas")


def test_before_a_provider_has_ever_answered_a_session_has_no_generation_and_everything_says_so(
    embedded: Deployment, scope: str
):
    embedded.provider.provider.usually = says(503)
    replica = embedded.launch(embedding_attempts=1)
    memory = replica.at(scope)
    remember(memory, TEA)
    assert not knows_generation(replica)
    session = assistant(memory)
    assert session.info.binding.semantic_generation is None
    assert [item.binding.semantic_generation for item in memory.list_sessions()] == [None]
    assert without(session.recall("kettles")) is not None
    assert "session_without_generation" in replica.server.log_text()

    embedded.provider.provider.usually = understands()
    wait_until(lambda: knows_generation(replica), 60.0, what="the provider has answered")
    assert without(session.recall("kettles")) is DegradationReason.SEMANTIC_NOT_CONFIGURED
    session.rebind(max_results=20)
    wait_until(lambda: without(session.recall(ABOUT_TEA)) is None, what="the session was moved over")
