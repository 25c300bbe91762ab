"""Atomic, serial, and honest about what was decided on."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from durable_memory.domain.change_set import ChangeSet, Corroborate
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeRef, NodeStatus, content_digest
from durable_memory.domain.session import Context
from durable_memory.domain.state import Head
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads
from tests.conformance.samples import (
    activate,
    all_nodes,
    apply,
    binding_record,
    change_plan,
    corroborate,
    create,
    event,
    evidence,
    ids,
    node,
    request_key,
    revise,
    run_with_context,
    session,
    set_status,
    writing,
)


async def test_a_plan_sees_what_it_names_and_nothing_else(store, namespace):
    await apply(store, namespace, create("a", "same"), create("b", "same"), create("c", sources=(evidence("e"),)))
    await apply(store, namespace, revise("a", 1, "other"), corroborate("c", 1, "f"))
    seen: list[Loaded] = []
    reads = Reads(
        node_ids=frozenset({"a", "absent"}),
        evidence=frozenset({("c", f"test:{name}", evidence(name).digest) for name in ("e", "f", "g")}),
        content_digests=frozenset({content_digest("same"), content_digest("other"), content_digest("none")}),
        revisions=frozenset({NodeRef("a", 1), NodeRef("a", 3), NodeRef("absent", 1)}),
        session_ids=frozenset({"absent"}),
        latest_runs=frozenset({("s", "absent")}),
        contexts=frozenset({"absent"}),
        event_ids=frozenset({"absent"}),
    )
    await store.transact(namespace, writing(reads=reads, see=seen.append))
    (loaded,) = seen
    assert loaded.head == await store.head(namespace)
    assert {name: found.revision for name, found in loaded.nodes.items()} == {"a": 2}
    assert loaded.known_evidence == {("c", f"test:{name}", evidence(name).digest) for name in ("e", "f")}
    assert {name: ids(found) for name, found in loaded.by_content.items()} == {
        content_digest("same"): ["b"],
        content_digest("other"): ["a"],
    }
    assert {ref: found.content for ref, found in loaded.revisions.items()} == {NodeRef("a", 1): "same"}
    assert (loaded.sessions, loaded.latest_runs, loaded.runs) == ({}, {}, {})
    assert (loaded.contexts, loaded.events) == ({}, {})


async def test_equal_contents_are_found_in_byte_order_whatever_their_status(store, namespace):
    await apply(store, namespace, *(create(name, "same") for name in ("é", "z", "Z", "记", "a")))
    await apply(store, namespace, set_status("z", 1, NodeStatus.TOMBSTONED))
    seen: list[Loaded] = []
    reads = Reads(content_digests=frozenset({content_digest("same")}))
    await store.transact(namespace, writing(reads=reads, see=seen.append))
    assert ids(seen[0].by_content[content_digest("same")]) == ["Z", "a", "z", "é", "记"]


async def test_evidence_stays_known_after_it_left_the_current_revision(store, namespace):
    changed = replace(evidence("old"), digest=evidence("new").digest)
    await apply(store, namespace, create("n", sources=(evidence("old"),)))
    await apply(store, namespace, Corroborate(node_id="n", expected_revision=1, evidence=(changed,)))
    assert [item.digest for item in (await node(store, namespace, "n")).evidence] == [changed.digest]
    with pytest.raises(DomainError) as refusal:
        await apply(store, namespace, corroborate("n", 2, "old"))
    assert refusal.value.reason is Reason.CHANGE_SET_EMPTY


@pytest.mark.parametrize("lock", list(Lock))
async def test_evidence_is_known_of_what_is_found_by_its_content_too(store, namespace, lock):
    old, other = evidence("old"), evidence("other")
    changed = replace(old, digest=evidence("new").digest)
    await apply(store, namespace, create("a", "same", sources=(old,)), create("b", "same", sources=(other,)))
    await apply(store, namespace, Corroborate(node_id="a", expected_revision=1, evidence=(changed,)))
    same, none = content_digest("same"), content_digest("none")
    seen: list[Loaded] = []
    reads = Reads(
        content_digests=frozenset({same, none}),
        content_evidence=frozenset(
            (content, item.uri, item.digest) for content in (same, none) for item in (old, changed)
        ),
    )
    await store.transact(namespace, writing(reads=reads, see=seen.append, lock=lock))
    assert seen[0].known_evidence == {("a", item.uri, item.digest) for item in (old, changed)}


async def test_what_decide_raises_is_raised_as_it_is_and_nothing_is_written(store, namespace):
    class UnexpectedError(Exception):
        pass

    def decide(loaded: Loaded) -> Decision:
        raise UnexpectedError

    await apply(store, namespace, create("n"))
    before = await store.head(namespace)
    with pytest.raises(UnexpectedError):
        await store.transact(
            namespace, Plan(lock=Lock.NAMESPACE, reads=Reads(), decide=decide, request=request_key("k"))
        )
    assert await store.head(namespace) == before
    assert await store.find_request(namespace, "ApplyChangeSet", "k") is None


async def test_a_refused_change_set_writes_none_of_its_operations(store, namespace):
    await apply(store, namespace, create("n"))
    with pytest.raises(DomainError) as refusal:
        await apply(store, namespace, create("m"), revise("n", 7, "late"))
    assert refusal.value.reason is Reason.REVISION_CONFLICT
    assert (refusal.value.metadata["expected"], refusal.value.metadata["actual"]) == ("7", "1")
    assert ids(await all_nodes(store, namespace, 99)) == ["n"]
    assert (await store.head(namespace)).revision == 1


@pytest.mark.parametrize("defect", ["event of no revision", "context of no run", "run of no session", "binding again"])
async def test_a_defective_decision_writes_nothing(store, namespace, defect):
    bound = session(namespace, "bound")
    await store.transact(namespace, writing(sessions=(bound,), bindings=(binding_record(bound),)))
    run, context = run_with_context("bound")
    rows: dict[str, Any] = {"sessions": (session(namespace, "fresh"),), "runs": (run,), "contexts": (context,)}
    defects: dict[str, dict[str, Any]] = {
        "event of no revision": {"events": (event("e", NodeRef("absent", 1)),)},
        "context of no run": {"contexts": (Context.of("bound", "absent", "1", 0),)},
        "run of no session": {"runs": run_with_context("absent")[:1]},
        "binding again": {"bindings": (binding_record(bound),)},
    }
    plan = writing(**{**rows, **defects[defect]}, request=request_key("k"))
    with pytest.raises(DomainError) as failure:
        await store.transact(namespace, plan)
    assert failure.value.reason is Reason.INTERNAL
    assert await store.get_session(namespace, "fresh") is None
    assert await store.get_context(namespace, context.context_id) is None
    assert await store.find_request(namespace, "ApplyChangeSet", "k") is None


async def test_a_call_that_is_cancelled_before_it_starts_leaves_nothing(store, namespace):
    call = asyncio.ensure_future(apply(store, namespace, create("n"), key="k"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await store.head(namespace)).revision == 0
    assert await store.find_request(namespace, "ApplyChangeSet", "k") is None


async def test_a_cancelled_call_happens_wholly_or_not_at_all_and_blocks_nobody(store, namespace):
    turns = range(24)

    async def cancelled_after(turn: int) -> None:
        call = asyncio.ensure_future(apply(store, namespace, create(f"n{turn}"), create(f"m{turn}"), key=f"k{turn}"))
        for _ in range(turn):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])

    for turn in turns:
        await cancelled_after(turn)
    await apply(store, namespace, create("last"))
    held = set(ids(await all_nodes(store, namespace, 99)))
    for turn in turns:
        stored = await store.find_request(namespace, "ApplyChangeSet", f"k{turn}") is not None
        assert ({f"n{turn}", f"m{turn}"} & held) == ({f"n{turn}", f"m{turn}"} if stored else set())
    head = await store.head(namespace)
    assert head.revision == len(await store.list_change_sets(namespace, after_revision=0, limit=99))


async def test_the_head_counts_what_the_namespace_holds(store, namespace):
    await apply(store, namespace, create("a", "12345", active=True), create("b", "four"))
    await apply(store, namespace, activate("b", 1), set_status("a", 1, NodeStatus.ARCHIVED))
    head = await store.head(namespace)
    (first, second) = await store.list_change_sets(namespace, after_revision=0, limit=9)
    assert head == Head(
        history_id=head.history_id,
        revision=2,
        chain_digest=second.chain_digest,
        node_count=2,
        active_count=1,
        active_bytes=4,
    )
    assert first.chain_digest != second.chain_digest


async def test_only_writes_of_sessions_move_the_session_revision(store, namespace):
    await apply(store, namespace, create("n", active=True))
    opened = await store.transact(namespace, writing(sessions=(session(namespace),)))
    run, context = run_with_context()
    await store.transact(namespace, writing(runs=(run,), contexts=(context,), events=(event("e", NodeRef("n", 1)),)))
    changed = await apply(store, namespace, revise("n", 1, "other"))
    assert opened.head.session_revision == 1
    assert changed.head.session_revision == 1
    assert (await store.head(namespace)) == changed.head


async def test_a_read_sees_every_call_that_returned_before_it(store, namespace):
    for revision in range(1, 20):
        outcome = await apply(store, namespace, create(f"n{revision}"))
        assert await store.head(namespace) == outcome.head
        assert (await node(store, namespace, f"n{revision}")).valid_from == revision


async def test_the_head_is_never_older_than_what_a_read_has_shown(store, namespace):
    async def write() -> None:
        for number in range(60):
            await apply(store, namespace, create(f"n{number}"))

    writing_task = asyncio.ensure_future(write())
    while not writing_task.done():
        await asyncio.sleep(0)
        shown = max((item.valid_from for item in await all_nodes(store, namespace, 99)), default=0)
        assert (await store.head(namespace)).revision >= shown
    await writing_task


async def test_plans_that_lock_nodes_only_record_events_and_runs(store, namespace):
    await apply(store, namespace, create("n", active=True))
    await store.transact(namespace, writing(sessions=(session(namespace),)))
    run, context = run_with_context()
    plan = writing(
        lock=Lock.NODES,
        reads=Reads(node_ids=frozenset({"n"})),
        runs=(run,),
        contexts=(context,),
        events=(event("e", NodeRef("n", 1)),),
        request=request_key("k"),
    )
    first, again = await store.transact(namespace, plan), await store.transact(namespace, plan)
    assert (first.replayed, again.replayed) == (False, True)
    assert await store.get_context(namespace, context.context_id) == (context, run)


async def test_a_staged_change_and_its_expected_namespace_revision_are_judged_under_the_lock(store, namespace):
    async def attempt(name: str) -> object:
        change_set = ChangeSet(operations=(create(name),), expected_namespace_revision=0)
        try:
            return await store.transact(namespace, change_plan(change_set))
        except DomainError as error:
            return error.reason

    results = await asyncio.gather(*(attempt(f"n{number}") for number in range(8)))
    assert results.count(Reason.REVISION_CONFLICT) == 7
