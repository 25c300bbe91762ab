"""A namespace's whole content can be copied into another, at once."""

from dataclasses import replace

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, NodeStatus, Relation, RelationKind
from durable_memory.ports.store import Loaded, Reads
from tests.conformance.samples import (
    activate,
    all_nodes,
    apply,
    binding_record,
    create,
    event,
    everything,
    evidence,
    request_key,
    revise,
    run_with_context,
    session,
    set_status,
    writing,
)

HISTORY_ID = "f" * 32


async def _fill(store, namespace: Namespace) -> None:
    await apply(
        store,
        namespace,
        create("a", "one", active=True, sources=(evidence("e"),), relations=(Relation(RelationKind.RELATED_TO, "b"),)),
        create("b", relations=(Relation(RelationKind.RELATED_TO, "a"),)),
        key="k1",
    )
    await apply(store, namespace, revise("a", 1, "two"), activate("b", 1), key="k2")
    await apply(store, namespace, set_status("b", 2, NodeStatus.ARCHIVED), create("c", "naïve 记忆"), key="k3")
    opened = session(namespace)
    run, context = run_with_context()
    await store.transact(
        namespace,
        writing(
            sessions=(opened,),
            bindings=(binding_record(opened),),
            runs=(run,),
            contexts=(context, context.next()),
            events=(event("event", NodeRef("a", 1)),),
            request=request_key("open", method="OpenSession"),
        ),
    )


async def test_an_import_holds_everything_that_was_exported(store, namespace, other_namespace):
    await _fill(store, namespace)
    copy = await everything(store, namespace)
    head = await store.import_namespace(other_namespace, copy, HISTORY_ID)
    assert head == await store.head(other_namespace)
    assert head == replace(await store.head(namespace), history_id=HISTORY_ID, session_revision=head.session_revision)
    assert await everything(store, other_namespace) == copy


async def test_where_imported_revisions_end_follows_from_their_order(store, namespace, other_namespace):
    await _fill(store, namespace)
    copy = await everything(store, namespace)
    wrong = replace(copy, revisions=[replace(node, valid_to=7 if node.revision == 1 else 9) for node in copy.revisions])
    await store.import_namespace(other_namespace, wrong, HISTORY_ID)
    for revision in range(5):
        assert await all_nodes(store, other_namespace, revision) == await all_nodes(store, namespace, revision)


async def test_an_import_brings_evidence_and_requests_to_bear(store, namespace, other_namespace):
    await _fill(store, namespace)
    await store.import_namespace(other_namespace, await everything(store, namespace), HISTORY_ID)
    seen: list[Loaded] = []
    known = ("a", "test:e", evidence("e").digest)
    reads = Reads(evidence=frozenset({known}), latest_runs=frozenset({("s", "r")}))
    await store.transact(other_namespace, writing(reads=reads, see=seen.append))
    assert seen[0].known_evidence == {known}
    assert seen[0].latest_runs["s", "r"] == run_with_context()[0]
    replay = await apply(store, other_namespace, revise("a", 1, "two"), key="k2")
    assert (replay.replayed, replay.result) == (True, {"at": 2, "nodes": {"a": 2, "b": 2}})


async def test_an_imported_namespace_goes_on_under_its_new_history_id(store, namespace, other_namespace):
    await _fill(store, namespace)
    await store.import_namespace(other_namespace, await everything(store, namespace), HISTORY_ID)
    outcome = await apply(store, other_namespace, revise("a", 2, "three"))
    assert (outcome.head.history_id, outcome.head.revision) == (HISTORY_ID, 4)
    assert (await store.head(namespace)).revision == 3


async def test_an_empty_namespace_can_be_imported(store, namespace):
    copy = await everything(store, namespace)
    head = await store.import_namespace(namespace, copy, HISTORY_ID)
    assert (head.history_id, head.revision) == (HISTORY_ID, 0)
    assert await store.head(namespace) == head


@pytest.mark.parametrize("held", ["a node", "a request", "a session"])
async def test_an_import_into_a_namespace_that_holds_anything_is_refused(store, namespace, other_namespace, held):
    await _fill(store, namespace)
    plan = {
        "a request": writing(request=request_key("k")),
        "a session": writing(sessions=(session(other_namespace),)),
    }
    if held == "a node":
        await apply(store, other_namespace, create("n"))
    else:
        await store.transact(other_namespace, plan[held])
    before = await store.head(other_namespace)
    with pytest.raises(DomainError) as refusal:
        await store.import_namespace(other_namespace, await everything(store, namespace), HISTORY_ID)
    assert refusal.value.reason is Reason.REVISION_CONFLICT
    assert refusal.value.metadata == {"expected": "0", "actual": str(before.revision)}
    assert await store.head(other_namespace) == before
    assert await store.current_nodes(other_namespace, ["a"]) == {}


async def test_a_plan_that_wrote_nothing_leaves_a_namespace_empty(store, namespace, other_namespace):
    await _fill(store, namespace)
    await store.transact(other_namespace, writing())
    await store.import_namespace(other_namespace, await everything(store, namespace), HISTORY_ID)
    assert (await store.head(other_namespace)).history_id == HISTORY_ID


async def test_a_failed_import_leaves_nothing(store, namespace, other_namespace):
    await _fill(store, namespace)
    copy = await everything(store, namespace)
    broken = replace(copy, events=[*copy.events, event("of nothing", NodeRef("absent", 1))])
    with pytest.raises(DomainError):
        await store.import_namespace(other_namespace, broken, HISTORY_ID)
    assert (await store.head(other_namespace)).revision == 0
    assert await all_nodes(store, other_namespace, 9) == []
    await store.import_namespace(other_namespace, copy, HISTORY_ID)
