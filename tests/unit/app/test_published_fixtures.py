"""The compatible profile, through sessions, relations and admission status, gives exactly what is published for it.

The fixtures are not part of the project: where they are not, these tests are left out and say so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from durable_memory.domain.change_set import Create, Operation
from durable_memory.domain.lexical.profiles import COVERAGE_PROFILE
from durable_memory.domain.node import NodeKind, NodeStatus, Relation, RelationKind
from tests.unit.app.world import OTHER_NAMESPACE, World, decision, draft

FIXTURES = Path(__file__).parents[4] / "shared" / "data" / "a3s"

pytestmark = pytest.mark.skipif(
    not FIXTURES.is_dir(), reason="the published fixtures (../shared/data/a3s) are not here"
)


def load(name: str) -> dict[str, Any]:
    fixture: dict[str, Any] = json.loads((FIXTURES / name).read_text(encoding="utf-8"))
    return fixture


def creation(node: Mapping[str, Any], linked: Mapping[tuple[str, str], RelationKind]) -> Operation:
    status = NodeStatus[node["status"].upper()]
    relations = tuple(Relation(kind, other) for (one, other), kind in linked.items() if one == node["id"])
    return Create(
        node_id=node["id"],
        status=status,
        draft=draft(
            node["content"],
            kind=NodeKind[node["kind"].upper()],
            evidence=(decision(node["id"]),) if status is NodeStatus.ACTIVE else (),
            relations=relations,
        ),
    )


async def fill(world: World, nodes: Sequence[Mapping[str, Any]]) -> None:
    linked: dict[tuple[str, str], RelationKind] = {}
    for node in nodes:
        for field, kind in (("related_to", RelationKind.RELATED_TO), ("conflicts_with", RelationKind.CONFLICTS_WITH)):
            for other in node.get(field, ()):
                linked[node["id"], other] = linked[other, node["id"]] = kind
    await world.apply(*(creation(node, linked) for node in nodes))


async def open_with(world: World, policy: Mapping[str, Any], session_id: str, lookups: int) -> None:
    await world.open(
        session_id,
        lexical_profile=COVERAGE_PROFILE,
        max_results=policy["max_results"],
        min_score=policy["min_lexical_score"],
        related_lookups=lookups,
    )


def figures(found: Sequence[Sequence[str]], relevant: Sequence[set[str]], cut: int) -> tuple[float, float]:
    """(Recall at `cut`, mean reciprocal rank)."""
    recall = reciprocal = 0.0
    for ids, wanted in zip(found, relevant, strict=True):
        recall += len(wanted.intersection(ids[:cut])) / len(wanted)
        reciprocal += next((1 / rank for rank, node_id in enumerate(ids, start=1) if node_id in wanted), 0.0)
    return recall / len(found), reciprocal / len(found)


@pytest.mark.parametrize(("kind", "lookups"), [("lexical", 0), ("relation", None)])
async def test_retrieval_v1_gives_the_published_ids_and_figures(world: World, kind: str, lookups: int | None) -> None:
    fixture = load("retrieval-v1.json")
    policy = fixture["policy"]
    await fill(world, fixture["nodes"])
    await open_with(world, policy, kind, policy["max_related_lookups"] if lookups is None else lookups)
    found = []
    for query in fixture["queries"]:
        found.append(await world.recall(query["query"], kind))
        assert found[-1] == query[f"expected_{kind}_ids"], query["id"]
    recall, reciprocal = figures(found, [set(query["relevant_node_ids"]) for query in fixture["queries"]], 5)
    summary = fixture["expected_summary"][kind]
    assert recall == pytest.approx(summary["recall_at_5"])
    assert reciprocal == pytest.approx(summary["mean_reciprocal_rank"])
    for query in fixture["negative_queries"]:
        assert not set(query["forbidden_node_ids"]).intersection(await world.recall(query["query"], kind)), query["id"]


async def test_multilingual_v1_gives_one_node_for_each_query_and_none_for_the_negatives(world: World) -> None:
    fixture = load("multilingual-v1.json")
    await fill(world, fixture["nodes"])
    foreign = world.at(OTHER_NAMESPACE)
    await fill(foreign, [fixture["foreign_node"]])
    for one in (world, foreign):
        await open_with(one, fixture["policy"], "assistant", fixture["policy"]["max_related_lookups"])
    found = [await world.recall(query["query"]) for query in fixture["queries"]]
    recall, reciprocal = figures(found, [{query["relevant_node_id"]} for query in fixture["queries"]], 3)
    thresholds = fixture["thresholds"]
    assert (recall, reciprocal) == (thresholds["minimum_recall_at_3"], thresholds["minimum_mean_reciprocal_rank"])
    assert max(map(len, found)) <= thresholds["maximum_context_nodes_per_query"]
    for query in fixture["negative_queries"]:
        assert await world.recall(query["query"]) == [], query["id"]
    assert await foreign.recall(fixture["foreign_node"]["content"]) == [fixture["foreign_node"]["id"]]
