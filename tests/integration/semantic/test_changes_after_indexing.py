"""A memory that changed after it was indexed never comes back through its vector: at once, on every server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from durable_memory_client import Citation, Evidence, NodeStatus, Recall, RecallMode, SemanticPolicy, SetStatus
from durable_memory_client.sync import MemoryNamespace
from tests.integration.semantic.deployment import (
    ABOUT_RAIN,
    ABOUT_SLEEP,
    ABOUT_TEA,
    RAIN,
    SLEEP,
    TEA,
    Deployment,
    Replica,
    by_hand,
    ids,
    refresh,
    remember,
    understood,
    without,
)

MODES = (RecallMode.SEMANTIC, RecallMode.HYBRID, None)
"""None leaves it to AUTO."""

COFFEE = "Grinders crush beans."


def revise(memory: MemoryNamespace, citation: Citation) -> None:
    memory.revise(citation, content=COFFEE)


def put(memory: MemoryNamespace, citation: Citation) -> None:
    memory.put(citation.node_id, COFFEE)


def archive(memory: MemoryNamespace, citation: Citation) -> None:
    memory.retire(citation)


def tombstone(memory: MemoryNamespace, citation: Citation) -> None:
    asked = Evidence.user_statement("chat:forget", "Please forget it.")
    memory.apply_change_set(
        [
            SetStatus(
                node_id=citation.node_id,
                expected_revision=citation.node_revision,
                status=NodeStatus.TOMBSTONED,
                evidence=[asked],
            )
        ]
    )


def supersede(memory: MemoryNamespace, citation: Citation) -> None:
    memory.supersede(citation, COFFEE, node_id="grinders")


CHANGES = pytest.mark.parametrize("change", [revise, put, archive, tombstone, supersede])
Change = Callable[[MemoryNamespace, Citation], None]


@pytest.fixture(scope="module")
def replicas(shared: Deployment) -> tuple[Replica, Replica]:
    return shared.start(), shared.start()


@CHANGES
@pytest.mark.parametrize("writer", [0, 1], ids=["by one server", "by the other"])
def test_what_changed_is_dropped_and_counted_by_both_servers_as_soon_as_the_change_is_acknowledged(
    replicas: tuple[Replica, Replica], scope: str, change: Change, writer: int
):
    one, other = (replica.at(scope) for replica in replicas)
    sessions = [by_hand(one)]
    sessions.append(other.resume_session("assistant", sessions[0].info.binding_digest))
    remember(one, TEA, RAIN)
    published = refresh(one)
    for session in sessions:
        for mode in MODES:
            (hit,) = session.recall(ABOUT_TEA, mode=mode)
            assert hit.content == TEA

    change((one, other)[writer], hit.citation)

    for session in (sessions[1 - writer], sessions[writer]):
        for mode in MODES:
            found = session.recall(ABOUT_TEA, mode=mode)
            assert (found.hits, without(found)) == ((), None)
            assert _counts(found) == (published.index_revision, 2, 1)
        assert understood(session, ABOUT_RAIN, "umbrellas"), "all others are as they were"
    assert one.get_index_status().last_receipt == published, "nothing was refreshed meanwhile"


def test_the_new_text_is_found_by_words_at_once_and_by_meaning_after_a_refresh(
    replicas: tuple[Replica, Replica], scope: str
):
    one, other = (replica.at(scope) for replica in replicas)
    session = by_hand(one)
    far = other.resume_session("assistant", session.info.binding_digest)
    remember(one, TEA)
    refresh(one)
    assert understood(far)

    one.put("kettles", SLEEP)
    found = far.recall("pillows")
    assert [(hit.content, hit.semantic) for hit in found] == [(SLEEP, None)]
    assert found.semantic is not None
    assert found.semantic.unindexed_active_count == 1
    assert far.recall(ABOUT_SLEEP, mode=RecallMode.SEMANTIC).hits == ()

    refresh(one)
    assert understood(far, ABOUT_SLEEP)
    assert far.recall(ABOUT_TEA).hits == ()


def test_the_place_of_a_dropped_memory_goes_to_the_next_one(replicas: tuple[Replica, Replica], scope: str):
    one, other = (replica.at(scope) for replica in replicas)
    session = by_hand(one)
    twins = [f"{word} {TEA}" for word in ("Red", "Blue", "Green")]
    # What nobody taught the provider points anywhere: the floor of this session lets everything pass.
    anything = other.open_session("anything", semantic=SemanticPolicy(candidate_limit=2))
    remember(one, *twins)
    refresh(one)
    first, second = ids(anything.recall(ABOUT_TEA, mode=RecallMode.SEMANTIC))
    (third,) = {"red", "blue", "green"} - {first, second}

    (citation,) = (hit.citation for hit in session.recall(_text_of(first, twins)) if hit.node_id == first)
    one.retire(citation)

    found = anything.recall(ABOUT_TEA, mode=RecallMode.SEMANTIC)
    assert ids(found) == [second, third]
    assert found.semantic is not None
    assert (found.semantic.candidates_dropped, found.semantic.candidates_refilled) == (1, 1)


def test_labels_leave_a_memory_where_it_is_found(replicas: tuple[Replica, Replica], scope: str):
    one, other = (replica.at(scope) for replica in replicas)
    session = by_hand(one)
    far = other.resume_session("assistant", session.info.binding_digest)
    remember(one, TEA)
    refresh(one)
    (hit,) = far.recall(ABOUT_TEA)
    one.revise(hit.citation, set_labels={"room": "kitchen"})
    (again,) = far.recall(ABOUT_TEA, mode=RecallMode.SEMANTIC)
    assert (again.labels["room"], again.citation.node_revision) == ("kitchen", hit.citation.node_revision + 1)


def _counts(found: Recall) -> tuple[int, int, int]:
    assert found.semantic is not None
    return found.semantic.index_revision, found.semantic.vectors_searched, found.semantic.candidates_dropped


def _text_of(node_id: str, texts: list[str]) -> str:
    (text,) = (text for text in texts if text.lower().startswith(node_id))
    return text
