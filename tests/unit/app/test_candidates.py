"""Proposals end where equal memories are; decisions are on exact revisions, each with an outcome of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from durable_memory.app.candidates import DecidedItem, Proposal, ProposalOutcome, Proposed
from durable_memory.domain.change_set import SetStatus
from durable_memory.domain.errors import Reason
from durable_memory.domain.evidence import DecisionInput, EvidenceKind
from durable_memory.domain.limits import EVIDENCE_MAX_COUNT
from durable_memory.domain.node import NodeRef, NodeStatus
from tests.unit.app.world import MANUAL, WRITER, World, draft, evidence, refused

RULE = DecisionInput(kind=EvidenceKind.VERIFICATION, decider="rule:said-twice@1")


def proposal(content: str, *sources: str, node_id: str | None = None) -> Proposal:
    given = tuple(evidence(name) for name in sources or (f"turn {content}",))
    return Proposal(node_id=node_id, draft=draft(content, evidence=given))


async def propose(world: World, *proposals: Proposal, repropose: bool = False, key: str | None = None) -> Proposed:
    call = world.request("ProposeCandidates", key)
    return await world.app.candidates.propose(call, proposals, repropose=repropose)


async def activate(world: World, *refs: NodeRef, decision: DecisionInput = MANUAL) -> Sequence[DecidedItem]:
    return (await world.app.candidates.activate(world.request("ActivateCandidates"), refs, decision)).items


async def reject(world: World, *refs: NodeRef) -> Sequence[DecidedItem]:
    return (await world.app.candidates.reject(world.request("RejectCandidates"), refs, MANUAL)).items


def outcomes(proposed: Proposed) -> list[tuple[ProposalOutcome, NodeRef]]:
    return [(item.outcome, item.node.ref) for item in proposed.items]


def summary(items: Sequence[DecidedItem]) -> list[tuple[bool, Reason | None]]:
    return [(item.changed, None if item.error is None else item.error.reason) for item in items]


# Proposals


async def test_proposals_of_one_call_commit_together_as_candidates(world: World) -> None:
    proposed = await propose(world.as_caller(WRITER), proposal("tea", node_id="a"), proposal("coffee", node_id="b"))
    assert outcomes(proposed) == [
        (ProposalOutcome.CREATED, NodeRef("a", 1)),
        (ProposalOutcome.CREATED, NodeRef("b", 1)),
    ]
    assert proposed.token.namespace_revision == 1
    assert {item.node.status for item in proposed.items} == {NodeStatus.CANDIDATE}


async def test_an_equal_candidate_gets_the_new_evidence(world: World) -> None:
    await propose(world, proposal("tea", "one", node_id="a"))
    proposed = await propose(world, proposal("tea", "one", "two", node_id="b"))
    assert outcomes(proposed) == [(ProposalOutcome.CORROBORATED, NodeRef("a", 2))]
    assert [item.uri for item in proposed.items[0].node.evidence] == ["test:one", "test:two"]


async def test_an_equal_candidate_that_has_the_evidence_is_left_alone(world: World) -> None:
    await propose(world, proposal("tea", "one", node_id="a"))
    proposed = await propose(world, proposal("tea", "one"))
    assert outcomes(proposed) == [(ProposalOutcome.UNCHANGED, NodeRef("a", 1))]
    assert proposed.token.namespace_revision == 1


async def test_evidence_that_an_earlier_revision_had_is_not_new(world: World) -> None:
    """An extractor that sees a source in two versions by turns would otherwise revise a candidate for ever."""
    first = proposal("tea", "one", node_id="a")
    second = Proposal(node_id=None, draft=draft("tea", evidence=(replace(evidence("one"), digest="2" * 64),)))
    await propose(world, first)
    assert outcomes(await propose(world, second)) == [(ProposalOutcome.CORROBORATED, NodeRef("a", 2))]
    for again in (first, second, first):
        assert outcomes(await propose(world, again)) == [(ProposalOutcome.UNCHANGED, NodeRef("a", 2))]
    assert await world.revision() == 2
    both = Proposal(node_id=None, draft=draft("tea", evidence=(evidence("one"), evidence("three"))))
    proposed = await propose(world, both)
    assert outcomes(proposed) == [(ProposalOutcome.CORROBORATED, NodeRef("a", 3))]
    assert [item.identity for item in proposed.items[0].node.evidence] == [
        ("test:one", "2" * 64),
        ("test:three", evidence("three").digest),
    ]


async def test_an_equal_active_memory_is_what_a_proposal_ends_at(world: World) -> None:
    node = await world.remember("tea", "a")
    proposed = await propose(world, proposal("tea"))
    assert outcomes(proposed) == [(ProposalOutcome.ALREADY_ACTIVE, node.ref)]
    assert await world.revision() == 1


async def test_what_was_rejected_stays_so_unless_it_is_proposed_again_on_purpose(world: World) -> None:
    await propose(world, proposal("tea", node_id="a"))
    await reject(world, NodeRef("a", 1))
    proposed = await propose(world, proposal("tea", node_id="b"))
    assert outcomes(proposed) == [(ProposalOutcome.PREVIOUSLY_REJECTED, NodeRef("a", 2))]
    proposed = await propose(world, proposal("tea", node_id="b"), repropose=True)
    assert outcomes(proposed) == [(ProposalOutcome.CREATED, NodeRef("b", 1))]
    proposed = await propose(world, proposal("tea", "another source", node_id="c"))
    assert outcomes(proposed) == [(ProposalOutcome.CORROBORATED, NodeRef("b", 2))]


async def test_a_deleted_memory_is_no_rejection(world: World) -> None:
    node = await world.remember("tea", "a")
    await world.apply(SetStatus(node_id="a", expected_revision=node.revision, status=NodeStatus.TOMBSTONED))
    assert outcomes(await propose(world, proposal("tea", node_id="b"))) == [(ProposalOutcome.CREATED, NodeRef("b", 1))]


async def test_duplicates_inside_one_call_meet(world: World) -> None:
    await propose(world, proposal("coffee", "one", node_id="old"))
    proposed = await propose(
        world,
        proposal("tea", "one", node_id="a"),
        proposal("tea", "one", node_id="b"),
        proposal("tea", "two", node_id="c"),
        proposal("coffee", "two", node_id="d"),
        proposal("coffee", "three", node_id="e"),
        proposal("coffee", "one", node_id="f"),
    )
    assert outcomes(proposed) == [
        (ProposalOutcome.CREATED, NodeRef("a", 1)),
        (ProposalOutcome.UNCHANGED, NodeRef("a", 1)),
        (ProposalOutcome.CORROBORATED, NodeRef("a", 1)),
        (ProposalOutcome.CORROBORATED, NodeRef("old", 2)),
        (ProposalOutcome.CORROBORATED, NodeRef("old", 2)),
        (ProposalOutcome.UNCHANGED, NodeRef("old", 2)),
    ]
    assert [item.uri for item in (await world.node("a")).evidence] == ["test:one", "test:two"]
    assert [item.uri for item in (await world.node("old")).evidence] == ["test:one", "test:two", "test:three"]


@pytest.mark.parametrize("known", [False, True], ids=["a new candidate", "a candidate that is there"])
async def test_equal_proposals_never_give_a_node_one_uri_twice(world: World, known: bool) -> None:
    if known:
        await propose(world, proposal("tea", "zero", node_id="a"))
    page = evidence("page")
    newer = type(page)(uri=page.uri, digest=evidence("other bytes").digest, kind=page.kind)
    await propose(
        world,
        Proposal(node_id="a", draft=draft("tea", evidence=(page,))),
        Proposal(node_id="b", draft=draft("tea", evidence=(newer,))),
    )
    held = [item for item in (await world.node("a")).evidence if item.uri == page.uri]
    assert [item.digest for item in held] == [newer.digest]


@pytest.mark.parametrize("known", [False, True], ids=["a new candidate", "a candidate that is there"])
async def test_equal_proposals_together_bring_no_more_evidence_than_a_node_can_hold(world: World, known: bool) -> None:
    if known:
        await propose(world, proposal("tea", "zero", node_id="a"))
    many = [f"{number}" for number in range(EVIDENCE_MAX_COUNT)]
    with refused(Reason.LIMIT_EXCEEDED, field="proposals[1].memory.evidence", limit=EVIDENCE_MAX_COUNT):
        await propose(world, proposal("tea", *many, node_id="a"), proposal("tea", "one more"))
    await propose(world, proposal("tea", *many, node_id="a"))
    assert len((await world.node("a")).evidence) == EVIDENCE_MAX_COUNT


async def test_an_id_is_proposed_once_in_a_call_and_must_be_free(world: World) -> None:
    with refused(Reason.INVALID_FIELD, field="proposals[1].node_id"):
        await propose(world, proposal("tea", node_id="a"), proposal("coffee", node_id="a"))
    await world.remember("tea", "a")
    with refused(Reason.NODE_ALREADY_EXISTS, node_id="a"):
        await propose(world, proposal("coffee", node_id="a"), proposal("milk"))
    assert await world.revision() == 1


async def test_a_repeated_proposal_is_answered_as_at_first(world: World) -> None:
    first = await propose(world, proposal("tea", "one"), key="k")
    (item,) = first.items
    await activate(world, item.node.ref)
    again = await propose(world, proposal("tea", "one"), key="k")
    assert outcomes(again) == outcomes(first)
    assert again.token == first.token
    assert again.items[0].node.status is NodeStatus.CANDIDATE


# Decisions


async def test_each_candidate_is_decided_on_by_itself_and_the_good_ones_commit_together(world: World) -> None:
    await propose(world, proposal("tea", node_id="a"), proposal("coffee", node_id="b"), proposal("milk", node_id="c"))
    await propose(world, proposal("milk", "again"))
    await world.remember("water", "active")
    decided = await world.app.candidates.activate(
        world.request("ActivateCandidates"),
        [NodeRef("a", 1), NodeRef("missing", 1), NodeRef("c", 1), NodeRef("active", 1), NodeRef("b", 1)],
        RULE,
    )
    assert summary(decided.items) == [
        (True, None),
        (False, Reason.NODE_NOT_FOUND),
        (False, Reason.REVISION_CONFLICT),
        (False, None),
        (True, None),
    ]
    conflict = decided.items[2].error
    assert conflict is not None
    assert conflict.metadata == {"node_id": "c", "expected": "1", "actual": "2"}
    assert [item.node.ref for item in decided.items if item.node] == [
        NodeRef("a", 2),
        NodeRef("active", 1),
        NodeRef("b", 2),
    ]
    assert decided.token.namespace_revision == 4
    node = await world.node("a")
    assert (node.status, node.decided_by) == (NodeStatus.ACTIVE, "owner")
    assert node.evidence[-1].kind is EvidenceKind.VERIFICATION
    assert node.evidence[-1].uri.startswith("dm:decision/rule:said-twice@1/")


async def test_a_text_that_was_decided_on_already_is_said_to_be(world: World) -> None:
    await propose(world, proposal("tea", node_id="a"), proposal("coffee", node_id="b"))
    await activate(world, NodeRef("a", 1))
    await reject(world, NodeRef("b", 1))
    (item,) = await activate(world, NodeRef("a", 1))
    assert (item.changed, item.error, item.node and item.node.ref) == (False, None, NodeRef("a", 2))
    (item,) = await reject(world, NodeRef("b", 1))
    assert (item.changed, item.error, item.node and item.node.ref) == (False, None, NodeRef("b", 2))
    await world.put("a", "another text")
    assert summary(await activate(world, NodeRef("a", 1))) == [(False, Reason.REVISION_CONFLICT)]


async def test_only_candidates_are_decided_on(world: World) -> None:
    retired = await world.retire(await world.remember("tea", "a"))
    active = await world.remember("coffee", "b")
    await world.remember("milk", "c")
    await world.apply(SetStatus(node_id="c", expected_revision=1, status=NodeStatus.TOMBSTONED))
    assert summary(await activate(world, retired.ref)) == [(False, Reason.INVALID_TRANSITION)]
    assert summary(await reject(world, active.ref, NodeRef("c", 2))) == [
        (False, Reason.INVALID_TRANSITION),
        (False, Reason.INVALID_TRANSITION),
    ]


async def test_a_rejection_leaves_a_tombstone_that_says_so(world: World) -> None:
    await propose(world, proposal("tea", node_id="a"))
    (item,) = await reject(world, NodeRef("a", 1))
    assert item.node is not None
    assert (item.node.status, item.node.labels, item.node.decided_by) == (
        NodeStatus.TOMBSTONED,
        {"dm.decision": "rejected"},
        "owner",
    )
    assert item.node.rejected


async def test_a_proposal_that_is_taken_back_is_not_a_refusal(world: World) -> None:
    writer = world.as_caller(WRITER)
    await propose(writer, proposal("tea", node_id="a"))
    await writer.apply(SetStatus(node_id="a", expected_revision=1, status=NodeStatus.TOMBSTONED))
    assert not (await world.node("a")).rejected
    (again,) = (await propose(writer, proposal("tea", node_id="b"))).items
    assert again.outcome is ProposalOutcome.CREATED


async def test_nobody_activates_without_the_role(world: World) -> None:
    await propose(world, proposal("tea", node_id="a"))
    with refused(Reason.PERMISSION_DENIED, required_role="activator"):
        await activate(world.as_caller(WRITER), NodeRef("missing", 1), NodeRef("a", 1))
    assert (await world.node("a")).status is NodeStatus.CANDIDATE


async def test_what_is_wrong_with_the_whole_call_fails_the_call(world: World) -> None:
    await propose(world, proposal("tea", node_id="a"))
    late = evidence("x", occurred_at=world.clock.now().replace(year=2040))
    with refused(Reason.INVALID_FIELD, field="operations[0].activate.evidence[0].occurred_at"):
        await world.app.candidates.activate(world.request("ActivateCandidates"), [NodeRef("a", 1)], MANUAL, [late])
    with refused(Reason.INVALID_FIELD, field="items[1].node_id"):
        await activate(world, NodeRef("a", 1), NodeRef("a", 2))


async def test_a_repeated_decision_is_answered_as_at_first(world: World) -> None:
    await propose(world, proposal("tea", node_id="a"))
    call = world.request("ActivateCandidates", "k")
    refs = [NodeRef("a", 1), NodeRef("missing", 1)]
    first = await world.app.candidates.activate(call, refs, MANUAL)
    await world.put("a", "coffee")
    again = await world.app.candidates.activate(call, refs, MANUAL)
    assert again.token == first.token
    assert summary(again.items) == summary(first.items) == [(True, None), (False, Reason.NODE_NOT_FOUND)]
    assert again.items[0].node is not None
    assert (again.items[0].node.revision, again.items[0].node.content) == (2, "tea")


async def test_deciding_on_nothing_that_can_be_decided_changes_nothing(world: World) -> None:
    assert summary(await reject(world, NodeRef("missing", 1))) == [(False, Reason.NODE_NOT_FOUND)]
    assert await world.revision() == 0
