"""Nodes and their history: what was written comes back exactly, as it was at any revision, in the promised order."""

from datetime import UTC, datetime, timedelta

import pytest

from durable_memory.domain.change_set import ChangeSet, Create, NodeDraft, chain
from durable_memory.domain.evidence import EvidenceKind
from durable_memory.domain.node import NodeKind, NodeRef, NodeStatus, Relation, RelationKind
from durable_memory.ports.store import NodeSelection
from tests.conformance.samples import (
    MANY,
    NOW,
    activate,
    all_nodes,
    apply,
    change_plan,
    corroborate,
    create,
    evidence,
    ids,
    node,
    relate,
    revise,
    set_status,
)

BYTE_ORDER = ["A", "Z", "a", "a b", "a%", "a_", "aa", "z", "é", "記憶", "ﬀ", "\U0001f9e0"]
"""By UTF-8, which neither UTF-16 nor any language's alphabet agrees with."""


async def _pages(read, key, limit):
    """All items of a paged read, which is asked with the last item's key until it is empty."""
    items, page = [], await read(None, limit)
    while page:
        assert len(page) <= limit
        items.extend(page)
        page = await read(key(page[-1]), limit)
    return items


async def test_a_revision_comes_back_with_every_field(store, namespace):
    long_ago = datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    draft = NodeDraft(
        kind=NodeKind.EPISODIC,
        content="line one\r\nline two\tnaïve 记忆 \U0001f9e0 '; DROP TABLE nodes; -- \u2028 \\ \"",
        surroundings=("before", "日本語"),
        author="Ünïcode",
        occurred_at=long_ago,
        confidence=0.1,
        importance=1.0,
        evidence=tuple(evidence(f"{kind.name} 'é", kind) for kind in EvidenceKind),
        relations=(Relation(RelationKind.RELATED_TO, "other"),),
        labels={"topic": 'naïve \n\t"', "a.b": "", "[x]": "{}"},
    )
    change_set = ChangeSet(
        operations=(
            Create(node_id="n é", status=NodeStatus.ACTIVE, draft=draft, created_at=long_ago),
            create("other", relations=(Relation(RelationKind.RELATED_TO, "n é"),)),
        )
    )
    await store.transact(namespace, change_plan(change_set))
    written = await node(store, namespace, "n é")
    assert (written.content, written.surroundings, written.author) == (draft.content, draft.surroundings, "Ünïcode")
    assert (written.occurred_at, written.created_at, written.committed_at) == (long_ago, long_ago, NOW)
    assert (written.confidence, written.importance, written.kind) == (0.1, 1.0, NodeKind.EPISODIC)
    assert written.evidence == tuple(item.at(NOW) for item in draft.evidence)
    assert (written.labels, written.relations) == (draft.labels, draft.relations)
    assert (written.decided_by, written.valid_from, written.valid_to) == ("tester", 1, None)
    (record,) = await store.list_change_sets(namespace, after_revision=0, limit=1)
    assert {change.node_id: change.revision_digest for change in record.changes}["n é"] == written.digest()


async def test_the_largest_allowed_values_fit(store, namespace):
    name = "é" * 128
    relations = tuple(Relation(RelationKind.RELATED_TO, f"{number:03}{name}"[:128]) for number in range(1, 100))
    big = Create(
        node_id=name,
        status=NodeStatus.CANDIDATE,
        draft=NodeDraft(
            kind=NodeKind.SEMANTIC,
            content="記" * 21845,
            surroundings=("s" * 4096,) * 4,
            evidence=tuple(evidence("u" * 2030 + f"{number:03}") for number in range(64)),
            labels={f"{number:03}" + "k" * 125: "v" * 1024 for number in range(64)},
        ),
    )
    others = tuple(create(relation.node_id) for relation in relations)
    await apply(store, namespace, big, *others)
    written = await node(store, namespace, name)
    assert (len(written.evidence), len(written.labels), len(written.content)) == (64, 64, 21845)


async def test_a_new_revision_ends_the_one_before_and_changes_nothing_else_of_it(store, namespace):
    await apply(store, namespace, create("n", "one"))
    first = await node(store, namespace, "n")
    await apply(store, namespace, create("m"))
    await apply(store, namespace, revise("n", 1, "two"), now=NOW + timedelta(seconds=1))
    old, new = await store.list_revisions(namespace, "n", after_revision=0, limit=MANY)
    assert (old.valid_from, old.valid_to, new.valid_from, new.valid_to) == (1, 3, 3, None)
    assert old.digest() == first.digest()
    assert await store.revisions(namespace, [NodeRef("n", 1), NodeRef("n", 2), NodeRef("n", 3)]) == {
        NodeRef("n", 1): old,
        NodeRef("n", 2): new,
    }


async def test_ids_are_ordered_and_paged_by_their_bytes(store, namespace):
    await apply(store, namespace, *(create(name) for name in reversed(BYTE_ORDER)))

    async def page(after, limit):
        return await store.list_nodes(namespace, NodeSelection(), at_revision=1, after_node_id=after or "", limit=limit)

    for limit in (1, 2, 5, len(BYTE_ORDER), MANY):
        assert ids(await _pages(page, lambda item: item.node_id, limit)) == BYTE_ORDER


async def test_a_page_may_start_after_an_id_that_does_not_exist(store, namespace):
    await apply(store, namespace, create("a"), create("c"))
    assert ids(await store.list_nodes(namespace, NodeSelection(), at_revision=1, after_node_id="b", limit=9)) == ["c"]


async def test_any_past_revision_can_be_listed(store, namespace):
    await apply(store, namespace, create("a", "a1"), create("b", "b1"))
    await apply(store, namespace, revise("a", 1, "a2"))
    await apply(store, namespace, create("c", "c1"), revise("a", 2, "a3"))

    async def contents(at_revision: int) -> list[str]:
        return [item.content for item in await all_nodes(store, namespace, at_revision)]

    assert [await contents(revision) for revision in range(4)] == [
        [],
        ["a1", "b1"],
        ["a2", "b1"],
        ["a3", "b1", "c1"],
    ]
    assert await contents(99) == await contents(3)
    found = await store.nodes_at(namespace, ["a", "c", "absent"], 2)
    assert {name: item.content for name, item in found.items()} == {"a": "a2"}


async def test_a_selection_applies_to_the_listed_state_before_the_limit(store, namespace):
    kinds = [NodeKind.EPISODIC, NodeKind.SEMANTIC]
    await apply(
        store,
        namespace,
        *(
            create(f"n{number}", active=number % 3 == 0, kind=kinds[number % 2], labels={"half": str(number // 5)})
            for number in range(10)
        ),
    )
    await apply(store, namespace, activate("n1", 1), set_status("n0", 1, NodeStatus.ARCHIVED))

    async def selected(at_revision=2, after="", limit=MANY, **criteria) -> list[str]:
        selection = NodeSelection(**criteria)
        return ids(
            await store.list_nodes(namespace, selection, at_revision=at_revision, after_node_id=after, limit=limit)
        )

    active = frozenset({NodeStatus.ACTIVE})
    assert await selected(statuses=active) == ["n1", "n3", "n6", "n9"]
    assert await selected(statuses=active, at_revision=1) == ["n0", "n3", "n6", "n9"]
    assert await selected(statuses=active, limit=2, after="n1") == ["n3", "n6"]
    assert await selected(statuses=frozenset({NodeStatus.ARCHIVED, NodeStatus.ACTIVE}), limit=3) == ["n0", "n1", "n3"]
    assert await selected(statuses=active, kinds=frozenset({NodeKind.SEMANTIC})) == ["n1", "n3", "n9"]
    assert await selected(statuses=active, labels={"half": "1"}) == ["n6", "n9"]
    assert await selected(kinds=frozenset({NodeKind.EPISODIC}), labels={"half": "0"}) == ["n0", "n2", "n4"]
    assert await selected(labels={"half": "0", "absent": ""}) == []
    assert await selected(labels={"half": "2"}) == []
    assert await selected(statuses=frozenset({NodeStatus.CONFLICTED})) == []


@pytest.mark.parametrize("key", ["a.b", 'quo"te', "[0]", "$", "naïve", "a'b", "\\u0041"])
async def test_labels_are_compared_as_exact_text(store, namespace, key):
    await apply(store, namespace, create("yes", labels={key: "v"}), create("no", labels={key: "V", "other": "v"}))
    selection = NodeSelection(labels={key: "v"})
    assert ids(await store.list_nodes(namespace, selection, at_revision=1, after_node_id="", limit=9)) == ["yes"]


async def test_revisions_of_a_node_are_listed_oldest_first(store, namespace):
    await apply(store, namespace, create("n", "1"))
    for revision in range(1, 12):
        await apply(store, namespace, revise("n", revision, str(revision + 1)))

    async def page(after, limit):
        return await store.list_revisions(namespace, "n", after_revision=after or 0, limit=limit)

    for limit in (1, 4, 12, 13):
        listed = await _pages(page, lambda item: item.revision, limit)
        assert [item.content for item in listed] == [str(number) for number in range(1, 13)]
    assert await store.list_revisions(namespace, "absent", after_revision=0, limit=9) == []


async def test_changes_between_two_revisions_ignore_later_commits(store, namespace):
    await apply(store, namespace, create("a"), create("b"), create("c"))
    await apply(store, namespace, revise("b", 1, "b2"))
    await apply(store, namespace, revise("a", 1, "a2"), create("d"))
    await apply(store, namespace, revise("b", 2, "b3"), revise("d", 1, "d2"), create("e"))

    async def changes(after: int, at: int) -> list[tuple[str, int]]:
        changed = await store.changed_nodes(
            namespace, after_revision=after, at_revision=at, after_node_id="", limit=MANY
        )
        return [(item.node_id, item.revision) for item in changed]

    assert await changes(0, 1) == [("a", 1), ("b", 1), ("c", 1)]
    assert await changes(0, 3) == [("a", 2), ("b", 2), ("c", 1), ("d", 1)]
    assert await changes(1, 3) == [("a", 2), ("b", 2), ("d", 1)]
    assert await changes(2, 3) == [("a", 2), ("d", 1)]
    assert await changes(3, 3) == []
    assert await changes(1, 4) == [("a", 2), ("b", 3), ("d", 2), ("e", 1)]


async def test_changes_are_paged_by_the_bytes_of_ids(store, namespace):
    await apply(store, namespace, create("first"))
    await apply(store, namespace, *(create(name) for name in reversed(BYTE_ORDER)))
    for after_revision, expected in ((0, sorted([*BYTE_ORDER, "first"])), (1, BYTE_ORDER)):

        async def page(after, limit, after_revision=after_revision):
            return await store.changed_nodes(
                namespace,
                after_revision=after_revision,
                at_revision=2,
                after_node_id=after or "",
                limit=limit,
            )

        for limit in (1, 5, MANY):
            assert ids(await _pages(page, lambda item: item.node_id, limit)) == expected


async def test_change_sets_are_listed_in_order_without_gaps_and_chained(store, namespace):
    for number in range(7):
        await apply(store, namespace, create(f"n{number}"), key=f"k{number}")

    async def page(after, limit):
        return await store.list_change_sets(namespace, after_revision=after or 0, limit=limit)

    for limit in (1, 3, 7, MANY):
        records = await _pages(page, lambda record: record.namespace_revision, limit)
        assert [record.namespace_revision for record in records] == list(range(1, 8))
    previous = "0" * 64
    for record in records:
        assert record.chain_digest == chain(previous, record.namespace_revision, record.digest())
        assert record.request_id == f"k{record.namespace_revision - 1}"
        previous = record.chain_digest
    assert (await store.head(namespace)).chain_digest == previous


async def test_the_revisions_of_each_change_set_are_found_in_byte_order(store, namespace):
    await apply(store, namespace, create("é"), create("a"), create("Z"))
    await apply(store, namespace, revise("a", 1, "a2"), create("b"))
    found = await store.revisions_committed_at(namespace, [1, 2, 3])
    assert {revision: [(item.node_id, item.revision) for item in nodes] for revision, nodes in found.items()} == {
        1: [("Z", 1), ("a", 1), ("é", 1)],
        2: [("a", 2), ("b", 1)],
    }


async def test_both_ends_of_a_relation_change_in_one_revision(store, namespace):
    await apply(store, namespace, create("a"), create("b"))
    await apply(
        store,
        namespace,
        relate("a", 1, Relation(RelationKind.SUPERSEDES, "b")),
        relate("b", 1, Relation(RelationKind.SUPERSEDED_BY, "a")),
        corroborate("a", 1, "e"),
    )
    a, b = await node(store, namespace, "a"), await node(store, namespace, "b")
    assert (a.relations, b.relations) == (
        (Relation(RelationKind.SUPERSEDES, "b"),),
        (Relation(RelationKind.SUPERSEDED_BY, "a"),),
    )
    assert (a.valid_from, b.valid_from, a.revision) == (2, 2, 2)


async def test_asking_for_nothing_answers_nothing(store, namespace):
    await apply(store, namespace, create("n"))
    assert await store.current_nodes(namespace, []) == {}
    assert await store.nodes_at(namespace, [], 1) == {}
    assert await store.revisions(namespace, []) == {}
    assert await store.revisions_committed_at(namespace, []) == {}
    assert await store.revisions(namespace, [NodeRef("n", 0), NodeRef("", 1)]) == {}


@pytest.mark.parametrize("absurd", [2**63 - 1, 2**63, 2**64])
async def test_revisions_beyond_any_that_exist_are_answered_like_other_absent_ones(store, namespace, absurd):
    await apply(store, namespace, create("n"))
    assert ids(await all_nodes(store, namespace, absurd)) == ["n"]
    assert ids((await store.nodes_at(namespace, ["n"], absurd)).values()) == ["n"]
    assert await store.revisions(namespace, [NodeRef("n", absurd)]) == {}
    assert await store.list_revisions(namespace, "n", after_revision=absurd, limit=9) == []
    assert await store.list_change_sets(namespace, after_revision=absurd, limit=9) == []
    assert await store.revisions_committed_at(namespace, [absurd]) == {}
    assert (
        await store.changed_nodes(namespace, after_revision=absurd, at_revision=absurd, after_node_id="", limit=9) == []
    )
