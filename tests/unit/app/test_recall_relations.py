"""Recall along relations: one hop from what was found, and what it says of a hit's neighbours."""

from __future__ import annotations

import pytest

from durable_memory.app.recall_result import RecallChannel
from durable_memory.domain.citation import Citation
from durable_memory.domain.lexical.query import LexicalFilter
from durable_memory.domain.node import NodeKind, NodeStatus, RelationKind
from tests.unit.app.world import DEFAULTS, World, draft


async def test_one_hop_of_related_memories_follows_the_hits(world: World) -> None:
    await world.open(related_lookups=8)
    for node_id, content in (("a", "tea"), ("b", "porcelain cup"), ("c", "kettle"), ("far", "water")):
        await world.remember(content, node_id)
    for one, other in (("a", "b"), ("a", "c"), ("b", "far")):
        await world.relate(RelationKind.RELATED_TO, one, other)
    found = await world.answer("tea")
    assert [(hit.node.node_id, hit.rank, hit.channel, hit.related_to) for hit in found.hits] == [
        ("a", 1, RecallChannel.LEXICAL, None),
        ("b", 2, RecallChannel.RELATED, "a"),
        ("c", 3, RecallChannel.RELATED, "a"),
    ]
    assert [(hit.score, hit.lexical) for hit in found.hits[1:]] == [(0.0, None)] * 2
    assert [relation.node_id for relation in found.hits[1].relations] == ["a", "far"]


async def test_a_memory_that_is_found_and_related_is_one_hit(world: World) -> None:
    await world.open(related_lookups=8)
    await world.remember("green tea", "a")
    await world.remember("black tea", "b")
    await world.relate(RelationKind.RELATED_TO, "a", "b")
    found = await world.answer("tea")
    assert sorted(hit.node.node_id for hit in found.hits) == ["a", "b"]
    assert {hit.channel for hit in found.hits} == {RecallChannel.LEXICAL}


async def test_related_memories_stay_within_the_lookups_and_the_results(world: World) -> None:
    await world.remember("tea", "a")
    for number in range(4):
        await world.remember(f"thing {number}", f"b{number}")
        await world.relate(RelationKind.RELATED_TO, "a", f"b{number}")
    await world.open("none")
    await world.open("two lookups", related_lookups=2)
    await world.open("three results", related_lookups=8, max_results=3)
    assert await world.recall("tea", "none") == ["a"]
    assert await world.recall("tea", "two lookups") == ["a", "b0", "b1"]
    assert await world.recall("tea", "three results") == ["a", "b0", "b1"]


async def test_what_is_not_active_is_never_related(world: World) -> None:
    await world.open(related_lookups=1)
    for node_id, content in (("a", "tea"), ("b", "cup"), ("c", "kettle")):
        await world.remember(content, node_id)
    await world.relate(RelationKind.RELATED_TO, "a", "b")
    await world.relate(RelationKind.RELATED_TO, "a", "c")
    await world.retire(await world.node("b"))
    found = await world.answer("tea")
    assert [hit.node.node_id for hit in found.hits] == ["a", "c"]
    assert [(relation.node_id, relation.status) for relation in found.hits[0].relations] == [
        ("b", NodeStatus.ARCHIVED),
        ("c", NodeStatus.ACTIVE),
    ]


async def test_what_is_excluded_takes_no_lookup_from_others(world: World) -> None:
    await world.open(related_lookups=1)
    for node_id, content in (("a", "tea"), ("b", "cup"), ("c", "kettle")):
        await world.remember(content, node_id)
    await world.relate(RelationKind.RELATED_TO, "a", "b")
    await world.relate(RelationKind.RELATED_TO, "a", "c")
    assert await world.recall("tea", filter=LexicalFilter(excluded_ids=frozenset({"b"}))) == ["a", "c"]


async def test_a_contradiction_marks_both_and_leads_to_neither(world: World) -> None:
    await world.open(related_lookups=8)
    await world.remember("tea in the morning", "a")
    await world.remember("coffee at dawn", "b")
    await world.relate(RelationKind.CONFLICTS_WITH, "a", "b")
    for query, node_id in (("tea", "a"), ("coffee", "b")):
        (hit,) = (await world.answer(query)).hits
        assert (hit.node.node_id, hit.disputed) == (node_id, True)


@pytest.mark.parametrize(
    "filter",
    [
        LexicalFilter(kinds=frozenset({int(NodeKind.SEMANTIC)})),
        LexicalFilter(labels={"type": "drink"}),
        LexicalFilter(excluded_ids=frozenset({"b"})),
    ],
    ids=["kind", "label", "excluded id"],
)
async def test_a_filter_holds_for_related_memories_too(world: World, filter: LexicalFilter) -> None:
    await world.open(related_lookups=8)
    await world.remember("tea", "a", labels={"type": "drink"})
    await world.remember("cup", "b", kind=NodeKind.EPISODIC)
    await world.relate(RelationKind.RELATED_TO, "a", "b")
    assert await world.recall("tea") == ["a", "b"]
    assert await world.recall("tea", filter=filter) == ["a"]


async def test_a_superseded_memory_gives_way_to_the_new_one(world: World) -> None:
    await world.open()
    old = await world.remember("the office opens at 8", "a")
    await world.app.memories.supersede(
        world.request("SupersedeMemory"), Citation.of(old), "b", draft("the office opens at 9"), DEFAULTS
    )
    (hit,) = (await world.answer("office")).hits
    assert hit.node.node_id == "b"
    assert [(item.kind, item.node_id, item.status) for item in hit.relations] == [
        (RelationKind.SUPERSEDES, "a", NodeStatus.SUPERSEDED)
    ]
