"""Namespaces never meet: everything of one is invisible and untouchable in another, however alike their names are."""

from dataclasses import replace

import pytest

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef, content_digest
from durable_memory.ports.store import Loaded, Reads
from tests.conformance.samples import (
    MANY,
    all_nodes,
    apply,
    binding_record,
    create,
    event,
    evidence,
    node,
    request_key,
    revise,
    run_with_context,
    session,
    writing,
)

ALIKE = [
    (Namespace("a:b", "c", "s"), Namespace("a", "b:c", "s")),
    (Namespace("acme", "u", "s"), Namespace("acme-corp", "u", "s")),
    (Namespace("A", "u", "s"), Namespace("a", "u", "s")),
    (Namespace("x", "u", "s"), Namespace("x,y", "u", "s")),
    (Namespace("t", "ab", "c"), Namespace("t", "a", "bc")),
    (Namespace("t", "u", "e\u0301"), Namespace("t", "u", "\u00e9")),
    (Namespace("t", "u", "s"), Namespace("t", "u", "s ")),
    (Namespace("t", "u", "%"), Namespace("t", "u", "_")),
]


@pytest.fixture(params=ALIKE, ids=lambda pair: f"{pair[0].label}-{pair[1].label}")
def alike(request, unique):
    return [replace(namespace, scope_id=unique + namespace.scope_id) for namespace in request.param]


async def _fill(store, namespace: Namespace) -> None:
    await apply(store, namespace, create("n", "text", active=True, sources=(evidence("e"),)), key="k")
    opened = session(namespace)
    run, context = run_with_context()
    await store.transact(
        namespace,
        writing(
            sessions=(opened,),
            bindings=(binding_record(opened),),
            runs=(run,),
            contexts=(context,),
            events=(event("event", NodeRef("n", 1)),),
            request=request_key("k", method="OpenSession"),
        ),
    )


async def test_nothing_of_one_namespace_is_read_in_another(store, alike):
    filled, other = alike
    await _fill(store, filled)
    ref = NodeRef("n", 1)
    _, context = run_with_context()
    assert (await store.head(other)).revision == 0
    assert await store.find_request(other, "ApplyChangeSet", "k") is None
    assert await store.current_nodes(other, ["n"]) == {}
    assert await store.nodes_at(other, ["n"], 1) == {}
    assert await store.revisions(other, [ref]) == {}
    assert await all_nodes(store, other, 1) == []
    assert await store.list_revisions(other, "n", after_revision=0, limit=MANY) == []
    assert await store.changed_nodes(other, after_revision=0, at_revision=1, after_node_id="", limit=MANY) == []
    assert await store.list_change_sets(other, after_revision=0, limit=MANY) == []
    assert await store.revisions_committed_at(other, [1]) == {}
    assert await store.get_session(other, "s") is None
    assert await store.list_sessions(other, after_session_id="", limit=MANY) == []
    assert await store.get_context(other, context.context_id) is None
    assert await store.usage(other, node_ids=[], after=NodeRef("", 0), limit=MANY) == []
    assert await store.list_events(other, kind=None, after_event_id="", limit=MANY) == []
    assert [item async for item in store.export_requests(other)] == []
    assert [item async for item in store.export_bindings(other)] == []
    assert [item async for item in store.export_runs(other)] == []


async def test_a_plan_in_one_namespace_loads_nothing_of_another(store, alike):
    filled, other = alike
    await _fill(store, filled)
    _, context = run_with_context()
    seen: list[Loaded] = []
    reads = Reads(
        node_ids=frozenset({"n"}),
        evidence=frozenset({("n", "test:e", evidence("e").digest)}),
        content_digests=frozenset({content_digest("text")}),
        revisions=frozenset({NodeRef("n", 1)}),
        session_ids=frozenset({"s"}),
        latest_runs=frozenset({("s", "r")}),
        contexts=frozenset({context.context_id}),
        event_ids=frozenset({"event"}),
    )
    await store.transact(other, writing(reads=reads, see=seen.append))
    assert seen == [Loaded(head=await store.head(other))]


async def test_equal_names_in_two_namespaces_live_side_by_side(store, alike):
    first, second = alike
    await _fill(store, first)
    before = await store.head(first)
    await _fill(store, second)
    await apply(store, second, revise("n", 1, "other"), key="k2")
    assert await store.head(first) == before
    assert (await node(store, first, "n")).content == "text"
    assert (await node(store, second, "n")).content == "other"
    assert before.history_id != (await store.head(second)).history_id
