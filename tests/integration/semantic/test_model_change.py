"""Another model is another generation beside the old one: nothing mixes, and sessions keep what they are bound to."""

from __future__ import annotations

import grpc
import pytest

from durable_memory_client import DegradationReason, IndexState, RecallMode, SemanticPolicy
from durable_memory_client.errors import BindingDriftError, SemanticUnavailableError
from durable_memory_client.sync import MemorySession
from tests.integration.semantic.deployment import (
    ABOUT_RAIN,
    ABOUT_TEA,
    EXPLICIT,
    RAIN,
    TEA,
    Deployment,
    assistant,
    by_hand,
    ids,
    refresh,
    remember,
    understands,
    understood,
    without,
)
from tests.processes.embedding_provider import Behaviour, Call, Reply

WIDE = 16


def by_model() -> Behaviour:
    """One provider with two models, of 8 and of 16 dimensions."""
    models = {"fixture": understands(), "wide": understands(WIDE)}

    def behave(call: Call) -> Reply:
        return models[call.body["model"]](call)

    return behave


@pytest.fixture
def two_models(deployment: Deployment) -> Deployment:
    deployment.provider.provider.usually = by_model()
    return deployment


def keeps_to_its_own(session: MemorySession) -> None:
    """A session of a generation that the server does not make: words, said so, and no other mode in its place."""
    found = session.recall("kettles")
    assert (ids(found), found.mode_used) == (["kettles"], RecallMode.LEXICAL)
    assert without(found) is DegradationReason.GENERATION_NOT_SERVED
    for mode in EXPLICIT:
        with pytest.raises(SemanticUnavailableError) as refused:
            session.recall("kettles", mode=mode)
        assert refused.value.code is grpc.StatusCode.FAILED_PRECONDITION
        assert refused.value.metadata["cause"] == "GENERATION_NOT_SERVED"


def test_servers_of_two_models_work_beside_each_other_over_one_store_and_one_index(two_models: Deployment, scope: str):
    old, new = two_models.start().at(scope), two_models.start(embedding_model="wide").at(scope)
    before = by_hand(old)
    remember(old, TEA, RAIN)
    published = refresh(old)
    assert understood(before)

    status = new.get_index_status()
    assert (status.generation.model, status.generation.dimension) == ("wide", WIDE)
    assert (status.state, status.last_receipt, status.unindexed_active_count) == (IndexState.NOT_BUILT, None, 2)
    new.set_schedule()
    after = assistant(new, "newer")
    bound = after.info.binding.semantic_generation
    assert bound is not None
    assert bound.authority_digest != published.authority_digest
    receipt = new.refresh_semantic_recall("newer").wait()
    assert (receipt.authority_digest, receipt.work.cache_hits) == (bound.authority_digest, 0), "its own vectors"
    assert (receipt.fence, receipt.index_revision) == (1, 1), "and its own partition"
    assert understood(after)
    assert understood(before)
    assert old.get_index_status().last_receipt == published

    # Each session at the other's server.
    keeps_to_its_own(new.resume_session("assistant", before.info.binding_digest))
    keeps_to_its_own(old.resume_session("newer", after.info.binding_digest))
    for memory, session_id in ((new, "assistant"), (old, "newer")):
        with pytest.raises(SemanticUnavailableError) as refused:
            memory.refresh_semantic_recall(session_id).wait()
        assert refused.value.metadata["cause"] == "GENERATION_NOT_SERVED"
        with pytest.raises(BindingDriftError):
            memory.resume_session(session_id, "ab" * 32)

    # Changes reach both, and each is refreshed by its own.
    old.put("kettles", "Grinders crush beans.")
    for session in (before, after):
        found = session.recall(ABOUT_TEA)
        assert (found.hits, without(found)) == ((), None)
    refresh(old)
    assert old.get_index_status().unindexed_active_count == 0
    assert new.get_index_status().unindexed_active_count == 1


def test_a_server_that_is_restarted_with_another_model_and_back_again(two_models: Deployment, scope: str):
    old = two_models.start()
    memory = old.at(scope)
    session = by_hand(memory)
    remember(memory, TEA)
    published = refresh(memory)
    assert old.server.terminate() == 0

    new = two_models.start(embedding_model="wide")
    memory = new.at(scope)
    stale = memory.resume_session("assistant", session.info.binding)
    keeps_to_its_own(stale)
    # A binding changes in one way only: by being told to.
    with pytest.raises(SemanticUnavailableError) as refused:
        stale.rebind(semantic=SemanticPolicy(authority_digest=published.authority_digest))
    assert refused.value.metadata["cause"] == "GENERATION_NOT_SERVED"
    memory.set_schedule()
    another = assistant(memory, "another")
    memory.refresh_semantic_recall("another").wait()
    assert understood(another)
    keeps_to_its_own(stale)
    assert new.server.terminate() == 0

    calls = len(two_models.provider.texts)
    old.server.start()
    old.wait_ready()
    assert understood(session), "what was published for it is still there"
    assert old.at(scope).get_index_status().last_receipt == published
    assert refresh(old.at(scope)).work.provider_calls == 0
    assert two_models.provider.texts[calls:] == ["dimension", ABOUT_TEA], "nothing was embedded again"


def test_a_rebound_session_moves_to_the_servers_model(two_models: Deployment, scope: str):
    old, new = two_models.start().at(scope), two_models.start(embedding_model="wide").at(scope)
    session = by_hand(old)
    remember(old, TEA, RAIN)
    refresh(old)
    there = new.resume_session("assistant", session.info.binding_digest)
    new.set_schedule()
    there.rebind(max_results=20, semantic=SemanticPolicy(min_similarity=0.9))
    assert without(there.recall("kettles")) is DegradationReason.INDEX_NOT_BUILT
    refresh(new)
    assert understood(there, ABOUT_RAIN, "umbrellas")
    keeps_to_its_own(old.resume_session("assistant", there.info.binding_digest))
    with pytest.raises(BindingDriftError) as drifted:
        new.resume_session("assistant", session.info.binding)
    assert "semantic_generation" in drifted.value.metadata["fields"]
