"""Admission and use: two facts, two events, one outcome per item, counted once."""

from __future__ import annotations

from dataclasses import replace

from durable_memory.app.access import AccessOutcome
from durable_memory.app.sessions import BegunRun
from durable_memory.domain.access import AccessItem, AccessKind
from durable_memory.domain.change_set import SetStatus
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import Reason
from durable_memory.domain.node import NodeRef, NodeStatus
from durable_memory.domain.session import Context
from tests.unit.app.world import World, items, refused

NO_NODE = NodeRef("", 0)


async def begun(world: World, session_id: str = "assistant") -> BegunRun:
    await world.open(session_id)
    return await world.begin(session_id)


def reasons(outcomes: tuple[AccessOutcome, ...]) -> list[Reason | None]:
    return [None if outcome.error is None else outcome.error.reason for outcome in outcomes]


async def counts(world: World) -> dict[NodeRef, tuple[int, int]]:
    found = await world.app.access.usage(world.call, [], after=NO_NODE, limit=100)
    return {NodeRef(item.node_id, item.revision): (item.admissions, item.uses) for item in found}


async def test_an_admission_names_the_exact_text_and_gives_the_next_context(world: World) -> None:
    run = (await begun(world)).run
    node = await world.remember("tea", "a")
    recorded = await world.app.access.admit(
        world.request("AdmitMemories"), "assistant", run.context_id, items(node.ref)
    )
    (outcome,) = recorded.outcomes
    assert outcome.citation == Citation.of(node)
    assert recorded.next_context_id == Context.of("assistant", "turn-1", run.incarnation, 1).context_id
    assert recorded.token == await world.app.repository.token(world.call)
    assert await counts(world) == {node.ref: (1, 0)}


async def test_only_the_current_active_revision_is_admitted_each_item_for_itself(world: World) -> None:
    run = (await begun(world)).run
    good = await world.remember("tea", "good")
    old = await world.put("revised", "coffee")
    await world.put("revised", "black coffee")
    retired = await world.retire(await world.remember("milk", "retired"))
    recorded = await world.app.access.admit(
        world.request("AdmitMemories"),
        "assistant",
        run.context_id,
        items(old.ref, good.ref, retired.ref, NodeRef("missing", 1)),
    )
    assert reasons(recorded.outcomes) == [
        Reason.REVISION_CONFLICT,
        None,
        Reason.INVALID_TRANSITION,
        Reason.NODE_NOT_FOUND,
    ]
    stale, inactive = recorded.outcomes[0].error, recorded.outcomes[2].error
    assert stale is not None
    assert stale.metadata == {"node_id": "revised", "expected": "1", "actual": "2"}
    assert inactive is not None
    assert inactive.metadata["status"] == "ARCHIVED"
    assert await counts(world) == {good.ref: (1, 0)}


async def test_admitting_the_same_in_the_same_context_counts_once_also_after_a_change(world: World) -> None:
    run = (await begun(world)).run
    node = await world.remember("tea", "a")
    for _ in range(2):
        await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items(node.ref))
    await world.put("a", "coffee")
    recorded = await world.app.access.admit(
        world.request("AdmitMemories"), "assistant", run.context_id, items(node.ref)
    )
    assert reasons(recorded.outcomes) == [None]
    assert await counts(world) == {node.ref: (1, 0)}


async def test_a_repeated_call_has_the_same_contexts_and_outcomes(world: World) -> None:
    run = (await begun(world)).run
    node = await world.remember("tea", "a")
    call = world.request("AdmitMemories", "k")
    given = items(node.ref, NodeRef("missing", 1))
    first = await world.app.access.admit(call, "assistant", run.context_id, given)
    await world.put("a", "coffee")
    assert first.next_context_id is not None
    await world.app.access.admit(world.request("AdmitMemories"), "assistant", first.next_context_id, items())
    again = await world.app.access.admit(call, "assistant", run.context_id, given)
    assert (again.next_context_id, again.token) == (first.next_context_id, first.token)
    assert [outcome.citation for outcome in again.outcomes] == [Citation.of(node), None]
    assert reasons(again.outcomes) == reasons(first.outcomes)
    assert await counts(world) == {node.ref: (1, 0)}


async def test_contexts_follow_each_other_and_an_old_one_leads_where_it_led(world: World) -> None:
    run = (await begun(world)).run
    seen = [run.context_id]
    for _ in range(3):
        recorded = await world.app.access.admit(world.request("AdmitMemories"), "assistant", seen[-1], items())
        assert recorded.next_context_id is not None
        seen.append(recorded.next_context_id)
    assert len(set(seen)) == 4
    again = await world.app.access.admit(world.request("AdmitMemories"), "assistant", seen[0], items())
    assert again.next_context_id == seen[1]
    ended = await world.app.sessions.end_run(world.request("EndRun"), "assistant", "turn-1", run.incarnation)
    assert (ended.sequence, ended.context_id) == (3, seen[3])


async def test_an_event_id_stands_for_one_body(world: World) -> None:
    run = (await begun(world)).run
    one, other = await world.remember("tea", "a"), await world.remember("coffee", "b")
    recorded = await world.app.access.admit(
        world.request("AdmitMemories"),
        "assistant",
        run.context_id,
        [AccessItem(ref=one.ref, event_id="e"), AccessItem(ref=other.ref, event_id="e")],
    )
    assert reasons(recorded.outcomes) == [None, Reason.EVENT_ID_REUSED]
    recorded = await world.app.access.admit(
        world.request("AdmitMemories"),
        "assistant",
        run.context_id,
        [AccessItem(ref=one.ref, event_id="e"), AccessItem(ref=other.ref, event_id="e")],
    )
    assert reasons(recorded.outcomes) == [None, Reason.EVENT_ID_REUSED]
    used = await world.app.access.record_use(
        world.request("RecordUse"), "assistant", run.context_id, [AccessItem(ref=one.ref, event_id="e")]
    )
    assert reasons(used.outcomes) == [Reason.EVENT_ID_REUSED]
    assert await counts(world) == {one.ref: (1, 0)}


async def test_any_revision_that_exists_may_have_been_used(world: World) -> None:
    run = (await begun(world)).run
    old = await world.put("a", "tea")
    await world.put("a", "coffee")
    await world.apply(SetStatus(node_id="a", expected_revision=2, status=NodeStatus.TOMBSTONED))
    recorded = await world.app.access.record_use(
        world.request("RecordUse"), "assistant", run.context_id, items(old.ref, NodeRef("a", 9), NodeRef("b", 1))
    )
    assert reasons(recorded.outcomes) == [None, Reason.REVISION_NOT_FOUND, Reason.REVISION_NOT_FOUND]
    assert recorded.outcomes[0].citation == Citation.of(old)
    assert recorded.next_context_id is None
    assert await counts(world) == {old.ref: (0, 1)}


async def test_a_use_by_citation_is_of_the_cited_text(world: World) -> None:
    run = (await begun(world)).run
    node = await world.remember("tea", "a")
    cited = Citation.of(node)
    wrong = replace(cited, content_digest="0" * 64)
    recorded = await world.app.access.record_use(
        world.request("RecordUse"),
        "assistant",
        run.context_id,
        [AccessItem(ref=node.ref, citation=wrong), AccessItem(ref=node.ref, citation=cited)],
    )
    assert reasons(recorded.outcomes) == [Reason.REVISION_NOT_FOUND, None]


async def test_a_use_may_be_recorded_after_the_run_has_ended_an_admission_not(world: World) -> None:
    run = (await begun(world)).run
    node = await world.remember("tea", "a")
    await world.app.sessions.end_run(world.request("EndRun"), "assistant", "turn-1", run.incarnation)
    with refused(Reason.RUN_ENDED, run_id="turn-1", incarnation=run.incarnation):
        await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items(node.ref))
    recorded = await world.app.access.record_use(
        world.request("RecordUse"), "assistant", run.context_id, items(node.ref)
    )
    assert reasons(recorded.outcomes) == [None]


async def test_a_closed_session_takes_neither(world: World) -> None:
    run = (await begun(world)).run
    node = await world.remember("tea", "a")
    await world.app.sessions.close(world.request("CloseSession"), "assistant")
    with refused(Reason.SESSION_CLOSED, session_id="assistant"):
        await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items(node.ref))
    with refused(Reason.SESSION_CLOSED, session_id="assistant"):
        await world.app.access.record_use(world.request("RecordUse"), "assistant", run.context_id, items(node.ref))
    assert await counts(world) == {}


async def test_a_context_belongs_to_one_session_and_one_namespace(world: World) -> None:
    run = (await begun(world)).run
    await world.open("other")
    for session_id, context_id in (("other", run.context_id), ("assistant", "0" * 64)):
        with refused(Reason.RUN_NOT_FOUND):
            await world.app.access.admit(world.request("AdmitMemories"), session_id, context_id, items())
        with refused(Reason.RUN_NOT_FOUND):
            await world.app.access.record_use(world.request("RecordUse"), session_id, context_id, items())
    foreign = world.at(replace(world.namespace, scope_id="project-b"))
    with refused(Reason.SESSION_NOT_FOUND, session_id="assistant"):
        await foreign.app.access.admit(foreign.request("AdmitMemories"), "assistant", run.context_id, items())
    await foreign.open()
    with refused(Reason.RUN_NOT_FOUND):
        await foreign.app.access.admit(foreign.request("AdmitMemories"), "assistant", run.context_id, items())


async def test_reading_counts_as_nothing(world: World) -> None:
    await begun(world)
    node = await world.remember("tea", "a")
    assert await world.recall("tea") == ["a"]
    await world.app.memories.get(world.call, Citation.of(node))
    assert await counts(world) == {}


async def test_usage_is_listed_in_order_with_last_times(world: World) -> None:
    run = (await begun(world)).run
    old = await world.put("a", "tea")
    other = await world.remember("coffee", "b")
    for ref in (old.ref, other.ref):
        await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items(ref))
    new = await world.put("a", "green tea")
    await world.app.access.record_use(world.request("RecordUse"), "assistant", run.context_id, items(old.ref, new.ref))
    first = await world.app.access.usage(world.call, [], after=NO_NODE, limit=2)
    rest = await world.app.access.usage(world.call, [], after=NodeRef("a", 2), limit=2)
    assert [(item.node_id, item.revision, item.admissions, item.uses) for item in (*first, *rest)] == [
        ("a", 1, 1, 1),
        ("a", 2, 0, 1),
        ("b", 1, 1, 0),
    ]
    assert (rest[0].last_admitted_at, rest[0].last_used_at) == (world.clock.now(), None)
    assert [item.node_id for item in await world.app.access.usage(world.call, ["b"], after=NO_NODE, limit=9)] == ["b"]


async def test_events_keep_who_recorded_them_and_when(world: World) -> None:
    run = (await begun(world)).run
    node = await world.remember("tea", "a")
    await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items(node.ref))
    (event,) = await world.store.list_events(world.namespace, kind=AccessKind.ADMISSION, after_event_id="", limit=9)
    assert (event.caller, event.at, event.context_id, event.ref) == (
        "owner",
        world.clock.now(),
        run.context_id,
        node.ref,
    )
