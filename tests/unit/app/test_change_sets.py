"""ApplyChangeSet: all of it or nothing, once, through the gate."""

from __future__ import annotations

from datetime import timedelta

import pytest

from durable_memory.domain.change_set import (
    Activate,
    AddRelation,
    ChangeSet,
    Corroborate,
    Create,
    Operation,
    Revise,
    ReviseMode,
    SetStatus,
)
from durable_memory.domain.errors import Reason
from durable_memory.domain.evidence import EvidenceKind
from durable_memory.domain.limits import CLOCK_SKEW_MAX, EVIDENCE_MAX_COUNT
from durable_memory.domain.node import NodeStatus, Relation, RelationKind
from tests.unit.app.world import WRITER, World, decision, draft, evidence, ids_of, refused, relate, unrelate


def candidate(node_id: str, content: str = "tea", *sources: str) -> Create:
    given = tuple(evidence(name) for name in sources)
    return Create(node_id=node_id, status=NodeStatus.CANDIDATE, draft=draft(content, evidence=given))


def active(node_id: str, content: str = "tea") -> Create:
    return Create(
        node_id=node_id, status=NodeStatus.ACTIVE, draft=draft(content, evidence=(decision(f"create {node_id}"),))
    )


def revise(node_id: str, revision: int, content: str | None = None, **more: object) -> Revise:
    values = {"set_labels": {}, "evidence": (decision(f"revise {node_id} {revision}"),), **more}
    return Revise(
        node_id=node_id,
        expected_revision=revision,
        mode=ReviseMode.CORRECTION,
        content=content,
        **values,  # type: ignore[arg-type]
    )


def to(status: NodeStatus, node_id: str, revision: int) -> SetStatus:
    return SetStatus(node_id=node_id, expected_revision=revision, status=status)


async def test_a_change_set_raises_the_revision_by_one_and_answers_with_what_it_made(world: World) -> None:
    applied = await world.apply(candidate("b"), candidate("a"))
    assert applied.token.namespace_revision == 1
    assert ids_of(applied.revisions) == ["a", "b"]


async def test_operations_on_one_node_make_one_revision(world: World) -> None:
    await world.apply(candidate("a"))
    applied = await world.apply(
        revise("a", 1, "green tea"),
        Activate(node_id="a", expected_revision=1, evidence=(decision("activate"),)),
    )
    (node,) = applied.revisions
    assert (node.revision, node.status, node.content) == (2, NodeStatus.ACTIVE, "green tea")


async def test_a_repeat_is_answered_with_the_first_result_whatever_has_happened_since(world: World) -> None:
    first = await world.apply(active("a"), key="k")
    await world.apply(revise("a", 1, "coffee"))
    await world.apply(to(NodeStatus.TOMBSTONED, "a", 2))
    again = await world.apply(active("a"), key="k")
    assert (again.token, again.record) == (first.token, first.record)
    assert [(node.revision, node.content) for node in again.revisions] == [(1, "tea")]
    assert await world.revision() == 3


async def test_a_key_cannot_be_used_for_another_command(world: World) -> None:
    await world.app.change_sets.apply(
        world.request("ApplyChangeSet", "k", asks="one"), ChangeSet(operations=(candidate("a"),))
    )
    with refused(Reason.IDEMPOTENCY_KEY_REUSED, request_id="k", method="ApplyChangeSet"):
        await world.app.change_sets.apply(
            world.request("ApplyChangeSet", "k", asks="other"), ChangeSet(operations=(candidate("b"),))
        )
    assert await world.revision() == 1


async def test_a_refused_change_set_leaves_nothing_behind_and_its_key_free(world: World) -> None:
    with refused(Reason.NODE_NOT_FOUND, node_id="missing", operation_index=1):
        await world.app.change_sets.apply(
            world.request("ApplyChangeSet", "k"),
            ChangeSet(operations=(candidate("a"), to(NodeStatus.ARCHIVED, "missing", 1))),
        )
    assert await world.revision() == 0
    await world.app.change_sets.apply(world.request("ApplyChangeSet", "k"), ChangeSet(operations=(candidate("a"),)))


async def test_the_expected_revisions_of_node_and_namespace_are_compared(world: World) -> None:
    await world.apply(candidate("a"))
    with refused(Reason.REVISION_CONFLICT, node_id="a", expected=2, actual=1, operation_index=0):
        await world.apply(to(NodeStatus.TOMBSTONED, "a", 2))
    with refused(Reason.REVISION_CONFLICT, expected=0, actual=1):
        await world.apply(candidate("b"), expected_namespace_revision=0)
    await world.apply(candidate("b"), expected_namespace_revision=1)


async def test_a_node_exists_in_whatever_status(world: World) -> None:
    await world.apply(candidate("a"))
    await world.apply(to(NodeStatus.TOMBSTONED, "a", 1))
    with refused(Reason.NODE_ALREADY_EXISTS, node_id="a", operation_index=0):
        await world.apply(candidate("a"))


@pytest.mark.parametrize(
    "operation",
    [
        active("new"),
        Activate(node_id="candidate", expected_revision=1, evidence=(decision("x"),)),
        revise("active", 1, "other"),
        revise("active", 1, None, set_labels={"type": "drink"}),
    ],
    ids=["create active", "activate", "revise the text", "revise labels alone"],
)
async def test_what_leaves_a_node_active_anew_needs_the_activator_role(world: World, operation: Operation) -> None:
    await world.apply(candidate("candidate"), active("active"))
    with refused(Reason.PERMISSION_DENIED, required_role="activator", operation_index=0):
        await world.as_caller(WRITER).apply(operation)


@pytest.mark.parametrize("kind", [kind for kind in EvidenceKind if not kind.decides])
async def test_only_decisions_let_a_memory_in(world: World, kind: EvidenceKind) -> None:
    await world.apply(candidate("a"))
    with refused(Reason.EVIDENCE_REQUIRED, node_id="a", accepted_kinds="MANUAL,VERIFICATION"):
        await world.apply(Activate(node_id="a", expected_revision=1, evidence=(evidence("x", kind),)))


async def test_a_decision_counts_once(world: World) -> None:
    await world.apply(active("a"))
    await world.apply(to(NodeStatus.ARCHIVED, "a", 1))
    with refused(Reason.EVIDENCE_REQUIRED, node_id="a"):
        await world.apply(Activate(node_id="a", expected_revision=2, evidence=(decision("create a"),)))
    await world.apply(Activate(node_id="a", expected_revision=2, evidence=(decision("another"),)))


async def test_a_source_that_was_known_as_something_else_is_no_new_decision(world: World) -> None:
    await world.apply(candidate("a", "tea", "statement"))
    with refused(Reason.EVIDENCE_REQUIRED, node_id="a"):
        await world.apply(
            Activate(node_id="a", expected_revision=1, evidence=(evidence("statement", EvidenceKind.MANUAL),))
        )


async def test_corroboration_and_relations_need_no_decision_on_an_active_node(world: World) -> None:
    one = (await world.apply(active("a"))).revisions[0]
    other = (await world.apply(active("b", "coffee"))).revisions[0]
    writer = world.as_caller(WRITER)
    await writer.apply(*relate(RelationKind.RELATED_TO, one, other))
    applied = await writer.apply(Corroborate(node_id="a", expected_revision=2, evidence=(evidence("heard"),)))
    assert applied.revisions[0].decided_by == ""


async def test_the_decider_of_record_is_the_authenticated_caller(world: World) -> None:
    applied = await world.apply(active("a"), candidate("b"))
    assert [node.decided_by for node in applied.revisions] == ["owner", ""]


async def test_a_source_with_a_new_digest_takes_the_place_of_the_old_one(world: World) -> None:
    await world.apply(candidate("a", "tea", "page"))
    changed = evidence("page")
    newer = type(changed)(uri=changed.uri, digest=decision("other bytes").digest, kind=changed.kind)
    applied = await world.apply(
        Corroborate(node_id="a", expected_revision=1, evidence=(changed, newer, evidence("more")))
    )
    held = applied.revisions[0].evidence
    assert [(item.uri, item.digest) for item in held] == [
        ("test:page", newer.digest),
        ("test:more", evidence("more").digest),
    ]


async def test_a_node_full_of_evidence_loses_the_oldest_that_is_no_decision(world: World) -> None:
    await world.apply(active("a"))
    await world.apply(
        Corroborate(
            node_id="a",
            expected_revision=1,
            evidence=tuple(evidence(f"{number}") for number in range(EVIDENCE_MAX_COUNT - 1)),
        )
    )
    applied = await world.apply(Corroborate(node_id="a", expected_revision=2, evidence=(evidence("last"),)))
    uris = [item.uri for item in applied.revisions[0].evidence]
    assert len(uris) == EVIDENCE_MAX_COUNT
    assert (uris[0], uris[1], uris[-1]) == ("test:create a", "test:1", "test:last")


async def test_frozen_nodes_take_no_text_evidence_or_relation(world: World) -> None:
    other = (await world.apply(candidate("b", "coffee"))).revisions[0]
    await world.apply(candidate("a"))
    frozen = (await world.apply(to(NodeStatus.TOMBSTONED, "a", 1))).revisions[0]
    with refused(Reason.NODE_FROZEN, node_id="a", status="TOMBSTONED"):
        await world.apply(revise("a", 2, "other"))
    with refused(Reason.NODE_FROZEN, node_id="a"):
        await world.apply(Corroborate(node_id="a", expected_revision=2, evidence=(evidence("x"),)))
    with refused(Reason.NODE_FROZEN, node_id="a"):
        await world.apply(*relate(RelationKind.RELATED_TO, frozen, other))


async def test_a_relation_can_be_taken_off_a_frozen_node(world: World) -> None:
    one = (await world.apply(active("a"))).revisions[0]
    other = (await world.apply(active("b", "coffee"))).revisions[0]
    await world.apply(*relate(RelationKind.CONFLICTS_WITH, one, other))
    await world.apply(to(NodeStatus.TOMBSTONED, "a", 2))
    applied = await world.apply(*unrelate(RelationKind.CONFLICTS_WITH, await world.node("a"), await world.node("b")))
    assert [node.relations for node in applied.revisions] == [(), ()]


async def test_a_relation_has_two_ends_in_one_change_set(world: World) -> None:
    await world.apply(active("a"), active("b", "coffee"))
    with refused(Reason.RELATION_INVALID, node_id="a", target_node_id="b", relation="RELATED_TO"):
        await world.apply(
            AddRelation(node_id="a", expected_revision=1, relation=Relation(RelationKind.RELATED_TO, "b"))
        )
    with refused(Reason.RELATION_INVALID, node_id="a", target_node_id="a"):
        await world.apply(
            AddRelation(node_id="a", expected_revision=1, relation=Relation(RelationKind.RELATED_TO, "a"))
        )
    with refused(Reason.RELATION_INVALID, target_node_id="missing"):
        await world.apply(
            AddRelation(node_id="a", expected_revision=1, relation=Relation(RelationKind.RELATED_TO, "missing"))
        )


async def test_a_status_moves_once_and_only_where_the_machine_has_a_move(world: World) -> None:
    await world.apply(active("a"))
    with refused(Reason.INVALID_FIELD, field="operations", node_id="a"):
        await world.apply(to(NodeStatus.ARCHIVED, "a", 1), to(NodeStatus.TOMBSTONED, "a", 1))
    with refused(Reason.INVALID_TRANSITION, **{"from": "ACTIVE", "to": "ACTIVE"}):
        await world.apply(to(NodeStatus.ACTIVE, "a", 1))
    await world.apply(to(NodeStatus.TOMBSTONED, "a", 1))
    with refused(Reason.INVALID_TRANSITION, **{"from": "TOMBSTONED", "to": "ARCHIVED"}):
        await world.apply(to(NodeStatus.ARCHIVED, "a", 2))


async def test_a_change_set_that_changes_nothing_is_refused(world: World) -> None:
    with refused(Reason.CHANGE_SET_EMPTY):
        await world.apply()
    await world.apply(candidate("a", "tea", "statement"))
    with refused(Reason.CHANGE_SET_EMPTY):
        await world.apply(Corroborate(node_id="a", expected_revision=1, evidence=(evidence("statement"),)))
    assert await world.revision() == 1


async def test_times_keep_their_order(world: World) -> None:
    now = world.clock.now()
    late = evidence("x", occurred_at=now - timedelta(seconds=1))
    with refused(Reason.INVALID_FIELD, field="operations[0].create.memory.evidence[0].occurred_at"):
        await world.apply(
            Create(node_id="a", status=NodeStatus.CANDIDATE, draft=draft("tea", evidence=(late,))),
            occurred_at=now - timedelta(seconds=2),
        )
    with refused(Reason.INVALID_FIELD, field="occurred_at"):
        await world.apply(candidate("a"), occurred_at=now + CLOCK_SKEW_MAX + timedelta(microseconds=1))
    await world.apply(candidate("a"), occurred_at=now + CLOCK_SKEW_MAX)
    with refused(Reason.INVALID_FIELD, field="occurred_at", bound=(now + CLOCK_SKEW_MAX).isoformat()):
        await world.apply(to(NodeStatus.TOMBSTONED, "a", 1), occurred_at=now)


async def test_a_node_written_by_a_clock_that_is_ahead_can_be_changed_without_stating_a_time(world: World) -> None:
    ahead = world.clock.now() + CLOCK_SKEW_MAX
    await world.apply(candidate("a"), occurred_at=ahead)
    applied = await world.apply(to(NodeStatus.TOMBSTONED, "a", 1))
    assert applied.revisions[0].updated_at == ahead
    assert applied.revisions[0].committed_at == world.clock.now()


async def test_what_a_memory_tells_of_happened_when_its_earliest_evidence_says(world: World) -> None:
    now = world.clock.now()
    sources = (
        evidence("late", occurred_at=now),
        evidence("early", occurred_at=now - timedelta(days=3)),
        evidence("without a time"),
    )
    create = Create(node_id="a", status=NodeStatus.CANDIDATE, draft=draft("tea", evidence=sources))
    assert (await world.apply(create)).revisions[0].occurred_at == now - timedelta(days=3)


async def test_namespaces_never_meet(world: World) -> None:
    await world.apply(candidate("a"))
    for names in (("acme", "user-1", "Project-a"), ("acme", "user-1:project-a", "x"), ("acme", "user-1", "project-a ")):
        other = world.at(type(world.namespace)(*names))
        assert await other.revision() == 0
        with refused(Reason.NODE_NOT_FOUND, node_id="a"):
            await other.apply(to(NodeStatus.TOMBSTONED, "a", 1))
