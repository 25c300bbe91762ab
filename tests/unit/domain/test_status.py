"""The status machine, as kernel.md draws it."""

import itertools

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeStatus
from durable_memory.domain.status import TRANSITIONS, check_transition
from tests.conformance.samples import activate, create, set_status

DRAWN = """
CANDIDATE  -> ACTIVE | CONFLICTED | TOMBSTONED
ACTIVE     -> SUPERSEDED | CONFLICTED | ARCHIVED | TOMBSTONED
CONFLICTED -> ACTIVE | SUPERSEDED | TOMBSTONED
ARCHIVED   -> ACTIVE | TOMBSTONED
SUPERSEDED -> TOMBSTONED
"""
MOVES = {
    (NodeStatus[source.strip()], NodeStatus[target.strip()])
    for source, targets in (line.split("->") for line in DRAWN.strip().splitlines())
    for target in targets.split("|")
}
PAIRS = list(itertools.product(NodeStatus, NodeStatus))


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda status: status.name)
def test_exactly_the_drawn_moves_exist(source, target):
    assert (target in TRANSITIONS[source]) == ((source, target) in MOVES)
    if (source, target) in MOVES:
        check_transition("n", source, target)
        return
    with pytest.raises(DomainError) as refusal:
        check_transition("n", source, target)
    assert refusal.value.reason is Reason.INVALID_TRANSITION
    assert refusal.value.metadata == {"node_id": "n", "from": source.name, "to": target.name}


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda status: status.name)
def test_operations_make_exactly_the_drawn_moves(stage, source, target):
    stage.apply(create("n"))
    stage.set("n", status=source)
    operation = activate("n", 1) if target is NodeStatus.ACTIVE else set_status("n", 1, target)
    if (source, target) in MOVES:
        stage.apply(operation)
        assert stage["n"].status is target
        assert stage["n"].decided_by == "tester"
        return
    with pytest.raises(DomainError) as refusal:
        stage.apply(operation)
    assert refusal.value.reason is Reason.INVALID_TRANSITION
    assert refusal.value.metadata["operation_index"] == "0"


@pytest.mark.parametrize("status", [NodeStatus.ACTIVE, NodeStatus.CANDIDATE], ids=lambda status: status.name)
def test_set_status_never_activates_nor_proposes(stage, status):
    for source in NodeStatus:
        stage.put_created(source.name, source)
        with pytest.raises(DomainError) as refusal:
            stage.apply(set_status(source.name, 1, status))
        assert refusal.value.reason is Reason.INVALID_TRANSITION


def test_a_node_has_one_status_change_per_change_set(stage):
    stage.apply(create("n", active=True))
    with pytest.raises(DomainError) as refusal:
        stage.apply(set_status("n", 1, NodeStatus.CONFLICTED), activate("n", 1))
    assert refusal.value.reason is Reason.INVALID_FIELD


@pytest.mark.parametrize("status", [item for item in NodeStatus if item.value > 2], ids=lambda status: status.name)
def test_a_node_is_created_as_a_candidate_or_active_only(stage, status):
    operation = create("n")
    with pytest.raises(DomainError) as refusal:
        stage.apply(type(operation)(node_id="n", status=status, draft=operation.draft))
    assert refusal.value.reason is Reason.INVALID_TRANSITION
    assert refusal.value.metadata["from"] == "ABSENT"


def test_a_refused_candidate_is_marked_and_a_retired_memory_is_not(stage):
    stage.apply(create("candidate"), create("memory", active=True))
    stage.apply(
        set_status("candidate", 1, NodeStatus.TOMBSTONED),
        set_status("memory", 1, NodeStatus.TOMBSTONED),
    )
    assert stage["candidate"].rejected
    assert not stage["memory"].rejected
