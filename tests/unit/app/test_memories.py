"""Remember, put, revise, retire, reactivate, supersede: one change set each, and the no-ops that make none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from durable_memory.app.memories import MemoryOutcome, WriteOptions
from durable_memory.domain.change_set import Corroborate, Revise, ReviseMode, SetStatus
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import Reason
from durable_memory.domain.evidence import EvidenceKind
from durable_memory.domain.limits import LABELS_MAX_COUNT
from durable_memory.domain.node import NodeKind, NodeRevision, NodeStatus, Relation, RelationKind
from tests.unit.app.world import DEFAULTS, MANUAL, WRITER, World, draft, evidence, refused


def revision_of(node: NodeRevision, content: str | None = None, **more: object) -> Revise:
    values = {"set_labels": {}, **more}
    return Revise(
        node_id=node.node_id,
        expected_revision=node.revision,
        mode=ReviseMode.REFINEMENT,
        content=content,
        **values,  # type: ignore[arg-type]
    )


async def revise(world: World, node: NodeRevision, content: str | None = None, **more: object) -> NodeRevision:
    result = await world.app.memories.revise(
        world.request("ReviseMemory"), Citation.of(node), revision_of(node, content, **more), DEFAULTS
    )
    return result.node


async def reactivate(world: World, node: NodeRevision) -> MemoryOutcome:
    result = await world.app.memories.reactivate(world.request("ReactivateMemory"), Citation.of(node), (), DEFAULTS)
    return result.outcome


# Remember


async def test_remembering_makes_an_active_memory_on_the_callers_authority(world: World) -> None:
    result = await world.remembered("tea")
    assert result.outcome is MemoryOutcome.CREATED
    assert (result.node.status, result.node.decided_by, result.node.revision) == (NodeStatus.ACTIVE, "owner", 1)
    (source,) = result.node.evidence
    assert source.kind is EvidenceKind.MANUAL
    assert source.uri.startswith("dm:decision/owner/")
    assert result.token.namespace_revision == 1


async def test_remembering_what_is_active_is_a_no_op_that_cites_it(world: World) -> None:
    first = await world.remember("tea", "a")
    again = await world.remembered("tea", "b")
    assert (again.outcome, again.node.ref) == (MemoryOutcome.UNCHANGED, first.ref)
    assert again.token.namespace_revision == 1


async def test_a_no_op_stays_one_after_the_memory_is_gone(world: World) -> None:
    first = await world.remember("tea", "a")
    call = world.request("Remember", "again")
    await world.app.memories.remember(call, None, draft("tea"), DEFAULTS)
    await world.retire(first)
    replay = await world.app.memories.remember(call, None, draft("tea"), DEFAULTS)
    assert (replay.outcome, replay.node.ref, replay.node.status) == (
        MemoryOutcome.UNCHANGED,
        first.ref,
        NodeStatus.ACTIVE,
    )
    assert replay.token.namespace_revision == 1


async def test_what_is_not_active_any_more_can_be_remembered_anew(world: World) -> None:
    await world.retire(await world.remember("tea", "a"))
    result = await world.remembered("tea", "b")
    assert (result.outcome, result.node.node_id) == (MemoryOutcome.CREATED, "b")


async def test_a_repeat_without_an_id_gets_the_id_that_was_minted_first(world: World) -> None:
    call = world.request("Remember", "k")
    first = await world.app.memories.remember(call, None, draft("tea"), DEFAULTS)
    again = await world.app.memories.remember(call, None, draft("tea"), DEFAULTS)
    assert again.node.node_id == first.node.node_id
    assert again.outcome is MemoryOutcome.CREATED


async def test_an_id_that_is_taken_by_another_text_is_refused(world: World) -> None:
    await world.remember("tea", "a")
    with refused(Reason.NODE_ALREADY_EXISTS, node_id="a"):
        await world.remember("coffee", "a")


async def test_the_namespace_revision_is_compared_after_the_request_id(world: World) -> None:
    options = WriteOptions(expected_namespace_revision=0)
    call = world.request("Remember", "k")
    first = await world.app.memories.remember(call, "a", draft("tea"), options)
    again = await world.app.memories.remember(call, "a", draft("tea"), options)
    assert again == first
    with refused(Reason.REVISION_CONFLICT, expected=0, actual=1):
        await world.app.memories.remember(world.request("Remember"), "b", draft("coffee"), options)
    with refused(Reason.REVISION_CONFLICT, expected=0, actual=1):
        await world.app.memories.remember(world.request("Remember"), None, draft("tea"), options)


async def test_a_writer_without_the_activator_role_cannot_remember(world: World) -> None:
    with refused(Reason.PERMISSION_DENIED, required_role="activator"):
        await world.as_caller(WRITER).remember("tea")
    assert await world.revision() == 0


async def test_the_decision_names_the_decider_and_the_caller_stays_on_record(world: World) -> None:
    result = await world.app.memories.remember(
        world.request("Remember"), "a", draft("tea"), WriteOptions(decision=MANUAL)
    )
    assert result.node.evidence[0].uri.startswith("dm:decision/reviewer-1/")
    assert result.node.decided_by == "owner"
    _, record = await world.app.repository.change_set(world.call, 1)
    assert (record.note, record.method, record.caller) == ("read it", "Remember", "owner")


async def test_the_same_request_id_of_two_methods_makes_two_decisions(world: World) -> None:
    call = world.request("Remember", "k")
    node = (await world.app.memories.remember(call, "a", draft("tea"), DEFAULTS)).node
    result = await world.app.memories.revise(
        world.request("ReviseMemory", "k"), Citation.of(node), revision_of(node, "green tea"), DEFAULTS
    )
    assert len({item.identity for item in result.node.evidence}) == 2


# Put


async def test_putting_creates_revises_and_leaves_alone(world: World) -> None:
    async def put(content: str, **more: object) -> tuple[MemoryOutcome, int]:
        result = await world.app.memories.put(world.request("PutMemory"), "a", draft(content, **more), DEFAULTS)
        return result.outcome, result.node.revision

    assert await put("tea") == (MemoryOutcome.CREATED, 1)
    assert await put("tea") == (MemoryOutcome.UNCHANGED, 1)
    assert await put("green tea") == (MemoryOutcome.REVISED, 2)
    assert await put("green tea", labels={"type": "drink"}) == (MemoryOutcome.REVISED, 3)
    assert await put("green tea", labels={"type": "drink"}) == (MemoryOutcome.UNCHANGED, 3)
    assert await put("green tea") == (MemoryOutcome.REVISED, 4)
    assert (await world.node("a")).labels == {}


async def test_evidence_alone_is_no_difference_to_put(world: World) -> None:
    await world.put("a", "tea")
    result = await world.app.memories.put(
        world.request("PutMemory"), "a", draft("tea", evidence=(evidence("heard"),)), DEFAULTS
    )
    assert result.outcome is MemoryOutcome.UNCHANGED


async def test_putting_without_an_occurrence_time_keeps_the_one_there_is(world: World) -> None:
    then = world.clock.now() - timedelta(days=30)
    await world.put("a", "tea", occurred_at=then)
    assert (await world.put("a", "green tea")).occurred_at == then


@pytest.mark.parametrize("status", [NodeStatus.ARCHIVED, NodeStatus.CONFLICTED])
async def test_putting_brings_back_what_is_out_of_recall(world: World, status: NodeStatus) -> None:
    await world.put("a", "tea")
    await world.apply(SetStatus(node_id="a", expected_revision=1, status=status))
    node = await world.put("a", "tea")
    assert (node.status, node.revision, node.content) == (NodeStatus.ACTIVE, 3, "tea")


async def test_putting_changes_and_brings_back_in_one_revision(world: World) -> None:
    await world.retire(await world.put("a", "tea"))
    node = await world.put("a", "green tea")
    assert (node.status, node.revision, node.content) == (NodeStatus.ACTIVE, 3, "green tea")


async def test_a_frozen_memory_cannot_be_put(world: World) -> None:
    await world.put("a", "tea")
    await world.apply(SetStatus(node_id="a", expected_revision=1, status=NodeStatus.TOMBSTONED))
    for content in ("tea", "coffee"):
        with refused(Reason.NODE_FROZEN, node_id="a", status="TOMBSTONED"):
            await world.put("a", content)


async def test_a_memory_keeps_its_kind(world: World) -> None:
    await world.put("a", "tea")
    with refused(Reason.INVALID_FIELD, field="memory.kind"):
        await world.put("a", "tea", kind=NodeKind.EPISODIC)


async def test_put_compares_the_revision_that_it_is_told(world: World) -> None:
    async def put(content: str, expected: int) -> int:
        result = await world.app.memories.put(
            world.request("PutMemory"), "a", draft(content), DEFAULTS, expected_revision=expected
        )
        return result.node.revision

    with refused(Reason.REVISION_CONFLICT, node_id="a", expected=1, actual=0):
        await put("tea", 1)
    assert await put("tea", 0) == 1
    with refused(Reason.REVISION_CONFLICT, node_id="a", expected=0, actual=1):
        await put("tea", 0)
    assert await put("green tea", 1) == 2


async def test_the_servers_labels_are_no_difference_and_stay(world: World) -> None:
    await world.put("a", "tea", labels={"dm.mark": "x", "type": "drink"})
    node = await world.put("a", "tea", labels={"type": "drink"})
    assert node.revision == 1
    node = await world.put("a", "tea", labels={"type": "hot"})
    assert node.labels == {"dm.mark": "x", "type": "hot"}


# Revise


async def test_revising_leaves_what_is_not_named(world: World) -> None:
    node = await world.remember("tea", "a", author="user-1", surroundings=("at breakfast",), labels={"type": "drink"})
    revised = await revise(world, node, "green tea", set_labels={"hot": "yes"}, remove_labels=frozenset({"type"}))
    assert (revised.content, revised.author, revised.surroundings, revised.labels) == (
        "green tea",
        "user-1",
        ("at breakfast",),
        {"hot": "yes"},
    )
    assert revised.decided_by == "owner"


async def test_a_revision_that_changes_nothing_is_refused(world: World) -> None:
    node = await world.remember("tea", "a", labels={"type": "drink"})
    for more in ({}, {"content": "tea"}, {"set_labels": {"type": "drink"}}, {"remove_labels": frozenset({"other"})}):
        with refused(Reason.CHANGE_SET_EMPTY):
            await revise(world, node, **more)
    assert (await world.node("a")).revision == 1


async def test_a_revision_may_bring_sources_alone(world: World) -> None:
    node = await world.remember("tea", "a")
    revised = await revise(world, node, evidence=(evidence("heard"),))
    assert [item.uri for item in revised.evidence if not item.uri.startswith("dm:")] == ["test:heard"]


async def test_only_the_exact_current_citation_can_be_revised(world: World) -> None:
    node = await world.remember("tea", "a")
    await world.remember("another change in the namespace")
    with refused(Reason.REVISION_NOT_FOUND, node_id="a", revision=1):
        await revise(world, replace(node, content_digest="0" * 64), "coffee")
    with refused(Reason.NODE_NOT_FOUND, node_id="missing"):
        await revise(world, replace(node, node_id="missing"), "coffee")
    revised = await revise(world, node, "green tea")
    with refused(Reason.REVISION_CONFLICT, node_id="a", expected=1, actual=2):
        await revise(world, node, "coffee")
    assert revised.revision == 2


async def test_a_candidate_is_revised_without_the_activator_role_an_active_memory_is_not(world: World) -> None:
    writer = world.as_caller(WRITER)
    node = await world.remember("tea", "a")
    with refused(Reason.PERMISSION_DENIED, required_role="activator"):
        await revise(writer, node, "coffee")
    await writer.retire(node)
    revised = await revise(writer, await world.node("a"), "coffee")
    assert (revised.status, revised.decided_by) == (NodeStatus.ARCHIVED, "")


async def test_a_node_never_has_more_labels_than_it_may(world: World) -> None:
    labels = {f"label-{number}": "x" for number in range(LABELS_MAX_COUNT)}
    node = await world.remember("tea", "a", labels=labels)
    with refused(Reason.LIMIT_EXCEEDED, field="operations[0].revise.set_labels", limit=LABELS_MAX_COUNT):
        await revise(world, node, set_labels={"one more": "x"})
    revised = await revise(world, node, set_labels={"one more": "x"}, remove_labels=frozenset({"label-0"}))
    assert len(revised.labels) == LABELS_MAX_COUNT


# Retire and reactivate


async def test_a_memory_goes_out_of_recall_and_comes_back_by_a_new_decision(world: World) -> None:
    node = await world.remember("tea", "a")
    retired = await world.retire(node)
    assert (retired.status, retired.revision, retired.content) == (NodeStatus.ARCHIVED, 2, "tea")
    assert await reactivate(world, retired) is MemoryOutcome.REACTIVATED
    assert (await world.node("a")).status is NodeStatus.ACTIVE
    assert len((await world.node("a")).evidence) == 3


async def test_retiring_needs_no_activator_and_coming_back_does(world: World) -> None:
    writer = world.as_caller(WRITER)
    retired = await writer.retire(await world.remember("tea", "a"))
    with refused(Reason.PERMISSION_DENIED, required_role="activator"):
        await reactivate(writer, retired)


async def test_an_active_memory_is_left_as_it_is(world: World) -> None:
    node = await world.remember("tea", "a")
    assert await reactivate(world, node) is MemoryOutcome.UNCHANGED
    assert await world.revision() == 1


async def test_only_an_active_memory_can_be_retired(world: World) -> None:
    retired = await world.retire(await world.remember("tea", "a"))
    with refused(Reason.INVALID_TRANSITION, **{"from": "ARCHIVED", "to": "ARCHIVED"}):
        await world.retire(retired)


async def test_a_repeated_retirement_says_what_the_first_said_after_a_reactivation(world: World) -> None:
    node = await world.remember("tea", "a")
    call = world.request("RetireMemory", "k")
    first = await world.app.memories.retire(call, Citation.of(node), (), DEFAULTS)
    await reactivate(world, first.node)
    again = await world.app.memories.retire(call, Citation.of(node), (), DEFAULTS)
    assert (again.outcome, again.node.ref, again.token) == (first.outcome, first.node.ref, first.token)
    assert again.node.status is NodeStatus.ARCHIVED


# Supersede


async def test_superseding_creates_relates_and_freezes_at_once(world: World) -> None:
    old = await world.remember("tea", "a")
    result = await world.app.memories.supersede(
        world.request("SupersedeMemory"), Citation.of(old), "b", draft("coffee"), DEFAULTS
    )
    assert (result.outcome, result.token.namespace_revision) == (MemoryOutcome.SUPERSEDED, 2)
    assert (result.node.status, result.node.relations) == (
        NodeStatus.ACTIVE,
        (Relation(RelationKind.SUPERSEDES, "a"),),
    )
    assert result.superseded is not None
    assert (result.superseded.status, result.superseded.revision, result.superseded.relations) == (
        NodeStatus.SUPERSEDED,
        2,
        (Relation(RelationKind.SUPERSEDED_BY, "b"),),
    )
    with refused(Reason.NODE_FROZEN, node_id="a"):
        await world.apply(Corroborate(node_id="a", expected_revision=2, evidence=(evidence("x"),)))


async def test_a_repeated_supersession_names_the_same_two_revisions(world: World) -> None:
    old = await world.remember("tea", "a")
    call = world.request("SupersedeMemory", "k")
    first = await world.app.memories.supersede(call, Citation.of(old), None, draft("coffee"), DEFAULTS)
    await revise(world, first.node, "black coffee")
    again = await world.app.memories.supersede(call, Citation.of(old), None, draft("coffee"), DEFAULTS)
    assert again.superseded is not None
    assert first.superseded is not None
    assert (again.node.ref, again.superseded.ref) == (first.node.ref, first.superseded.ref)


async def test_a_memory_does_not_supersede_itself_or_something_that_is_gone(world: World) -> None:
    old = await world.remember("tea", "a")
    with refused(Reason.INVALID_FIELD, field="node_id"):
        await world.app.memories.supersede(
            world.request("SupersedeMemory"), Citation.of(old), "a", draft("coffee"), DEFAULTS
        )
    retired = await world.retire(old)
    with refused(Reason.INVALID_TRANSITION, **{"from": "ARCHIVED", "to": "SUPERSEDED"}):
        await world.app.memories.supersede(
            world.request("SupersedeMemory"), Citation.of(retired), "b", draft("coffee"), DEFAULTS
        )
    assert await world.revision() == 2


# Get


async def test_a_citation_reads_its_text_for_ever_and_no_other(world: World) -> None:
    node = await world.remember("tea", "a")
    cited = Citation.of(node)
    await world.retire(await revise(world, node, "coffee"))
    assert (await world.app.memories.get(world.call, cited)).content == "tea"
    for wrong in (
        replace(cited, content_digest="0" * 64),
        replace(cited, namespace_revision=2),
        replace(cited, revision=9),
        replace(cited, node_id="missing"),
    ):
        with refused(Reason.REVISION_NOT_FOUND, node_id=wrong.node_id, revision=wrong.revision):
            await world.app.memories.get(world.call, wrong)
