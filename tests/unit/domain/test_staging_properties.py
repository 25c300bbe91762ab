"""What holds after any sequence of change sets, accepted or refused."""

from collections.abc import Iterable
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from durable_memory.domain.change_set import CHAIN_START, chain
from durable_memory.domain.errors import DomainError
from durable_memory.domain.node import NodeRevision, NodeStatus, Relation, content_digest
from durable_memory.domain.staging import StagedChange
from tests.conformance.change_strategies import often, operations
from tests.conformance.samples import NOW
from tests.unit.domain.stages import Stage

STEPS = 8


def play(data: st.DataObject, stage: Stage, *, may_activate: bool | None = None) -> Iterable[StagedChange]:
    """Apply drawn change sets; those that are refused must leave everything as it was."""
    for step in range(STEPS):
        drawn = data.draw(operations(stage.nodes, f"step {step}"))
        before = (stage.head, dict(stage.nodes), set(stage.evidence))
        allowed = data.draw(often) if may_activate is None else may_activate
        now = NOW + timedelta(seconds=data.draw(st.integers(-3, 3)))
        try:
            yield stage.apply(*drawn, may_activate=allowed, now=now)
        except DomainError:
            assert (stage.head, stage.nodes, stage.evidence) == before


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_revisions_count_up_and_times_never_go_back(data):
    stage = Stage()
    for staged in play(data, stage):
        for node in staged.revisions:
            assert node.valid_from == staged.record.namespace_revision == stage.head.revision
            assert node.content_digest == content_digest(node.content)
            assert node.created_at <= node.updated_at
    by_node: dict[str, list[NodeRevision]] = {}
    for node in stage.history:
        by_node.setdefault(node.node_id, []).append(node)
    for revisions in by_node.values():
        assert [node.revision for node in revisions] == list(range(1, len(revisions) + 1))
        assert [node.updated_at for node in revisions] == sorted(node.updated_at for node in revisions)
        assert len({node.created_at for node in revisions}) == 1
        assert len({node.kind for node in revisions}) == 1


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_nobody_walks_around_the_gate(data):
    stage = Stage()
    known: set[tuple[str, str, str]] = set()
    previous: dict[str, NodeRevision] = {}
    for staged in play(data, stage):
        for node in staged.revisions:
            before = previous.get(node.node_id)
            fresh = [item for item in node.evidence if (node.node_id, item.uri, item.digest) not in known]
            activated = before is None or before.status is not NodeStatus.ACTIVE
            reworded = before is None or (before.content, before.labels) != (node.content, node.labels)
            if node.status is NodeStatus.ACTIVE and (activated or reworded):
                assert any(item.kind.decides for item in fresh)
                assert node.decided_by == "tester"
            known.update((node.node_id, item.uri, item.digest) for item in node.evidence)
            previous[node.node_id] = node
        assert known == stage.evidence


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_without_the_role_nothing_ever_becomes_active(data):
    stage = Stage()
    for _ in play(data, stage, may_activate=False):
        assert all(node.status is not NodeStatus.ACTIVE for node in stage.nodes.values())


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_relations_have_two_ends_and_frozen_nodes_stay_as_they_are(data):
    stage = Stage()
    previous: dict[str, NodeRevision] = {}
    for _ in play(data, stage):
        for node in stage.nodes.values():
            assert list(node.relations) == sorted(set(node.relations))
            for relation in node.relations:
                inverse = Relation(relation.kind.inverse, node.node_id)
                assert relation.node_id != node.node_id
                assert inverse in stage.nodes[relation.node_id].relations
            before = previous.get(node.node_id)
            if before is not None and before.frozen:
                assert node.frozen
                assert (node.content, node.labels) == (before.content, before.labels)
                assert set(node.relations) <= set(before.relations)
        previous = dict(stage.nodes)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_the_head_and_the_chain_say_what_there_is(data):
    stage = Stage()
    chained = CHAIN_START
    for revision, staged in enumerate(play(data, stage), start=1):
        active = [node for node in stage.nodes.values() if node.status is NodeStatus.ACTIVE]
        assert (stage.head.revision, stage.head.node_count) == (revision, len(stage.nodes))
        assert (stage.head.active_count, stage.head.active_bytes) == (
            len(active),
            sum(node.active_bytes for node in active),
        )
        chained = chain(chained, revision, staged.record.digest())
        assert stage.head.chain_digest == staged.record.chain_digest == chained


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_staging_the_same_twice_gives_the_same(data):
    stage, twin = Stage(), Stage()
    for step in range(STEPS):
        drawn = data.draw(operations(stage.nodes, f"step {step}"))
        answers: list[object] = []
        for each in (stage, twin):
            try:
                answers.append(each.apply(*drawn))
            except DomainError as error:
                answers.append((error.reason, error.metadata))
        assert answers[0] == answers[1]
