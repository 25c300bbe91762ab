"""One server with everything in one file: killed in the middle of a refresh, it goes on from what it had."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from durable_memory_client import IndexState
from durable_memory_client.errors import MemoryUnavailableError
from tests.integration.semantic.deployment import (
    ABOUT_RAIN,
    BRIEF_LEASE_SECONDS,
    RAIN,
    TEA,
    Deployment,
    by_hand,
    refresh,
    refresh_when_free,
    remember,
    understands,
    understood,
)
from tests.processes.embedding_provider import for_texts_with, hangs
from tests.processes.polling import wait_until

pytestmark = pytest.mark.usefixtures("each_call_once")

MANY = [f"Number{number} is a memory of its own." for number in range(100)]
"""More than one batch of what is embedded and cached at a time."""


def test_a_refresh_that_was_killed_between_two_batches_is_finished_without_embedding_anything_twice(
    embedded: Deployment, scope: str
):
    replica = embedded.start(vectors_lease_ttl_seconds=BRIEF_LEASE_SECONDS, embedding_call_timeout_seconds=600)
    memory = replica.at(scope)
    session = by_hand(memory)
    remember(memory, TEA)
    first = refresh(memory)
    remember(memory, *MANY, RAIN)
    provider, before = embedded.provider, len(embedded.provider.provider.calls)

    def calls() -> int:
        return len(provider.provider.calls) - before

    # The first batch is answered, and the second never.
    provider.provider.script.append(understands())
    provider.provider.usually = for_texts_with("Number", hangs, understands())
    with ThreadPoolExecutor(1) as pool:
        refreshing = pool.submit(refresh, memory)
        wait_until(lambda: calls() == 2, what="the second batch is with the provider")
        replica.server.kill9()
        assert isinstance(refreshing.exception(), MemoryUnavailableError)
    answered, lost = (call.texts for call in provider.provider.calls[before:])
    assert set(answered) | set(lost) == {*MANY, RAIN}

    replica.server.start()
    replica.wait_ready()
    status = memory.get_index_status()
    assert (status.state, status.last_receipt, status.unindexed_active_count) == (IndexState.CURRENT, first, 101)
    assert status.published is not None
    assert (status.published.index_revision, status.published.live_count) == (first.index_revision, 1)
    assert understood(session), "what was published serves, and no half of the rest"
    assert session.recall(ABOUT_RAIN).hits == ()

    provider.provider.usually = understands()
    before = len(provider.provider.calls)
    receipt = refresh_when_free(memory)
    asked = [text for call in provider.provider.calls[before:] for text in call.texts]
    assert asked == lost, "the answered batch was in the cache"
    assert (receipt.work.cache_hits, receipt.work.provider_inputs) == (len(answered), len(lost))
    assert (receipt.indexed_count, receipt.index_revision) == (102, first.index_revision + 1)
    assert receipt.fence > first.fence + 1, "the killed refresh had one of its own"
    assert understood(session, ABOUT_RAIN, "umbrellas")


def test_the_schedule_finishes_what_a_killed_server_had_begun(embedded: Deployment, scope: str):
    replica = embedded.start(vectors_lease_ttl_seconds=BRIEF_LEASE_SECONDS, embedding_call_timeout_seconds=600)
    memory = replica.at(scope)
    session = memory.open_session("assistant", max_results=1)
    embedded.provider.hold()
    remember(memory, TEA, RAIN)
    wait_until(lambda: RAIN in embedded.provider.texts or TEA in embedded.provider.texts)
    replica.server.kill9()
    embedded.provider.let_go()
    replica.server.start()
    replica.wait_ready()
    wait_until(lambda: understood(session, ABOUT_RAIN, "umbrellas"), what="the schedule has gone on")
    assert memory.get_index_status().unindexed_active_count == 0
