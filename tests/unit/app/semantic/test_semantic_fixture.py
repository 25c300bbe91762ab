"""The published cross-language fixture, through the whole application.

It is no part of the project: where it is not, these tests are left out and say so.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from durable_memory.app.access import AccessOutcome
from durable_memory.app.recall_result import RecallChannel
from durable_memory.domain.change_set import Create
from durable_memory.domain.lexical.profiles import COVERAGE_PROFILE
from durable_memory.domain.node import NodeStatus
from durable_memory.domain.semantic.fusion import RRF_PROFILE
from durable_memory.domain.session import RecallMode
from tests.unit.app.semantic.semantic_world import Backing, GatedEmbedder, SemanticWorld, found_ids, semantic_process
from tests.unit.app.world import OTHER_NAMESPACE, decision, draft

FIXTURE = Path(__file__).parents[5] / "shared" / "data" / "a3s" / "semantic-v1.json"

pytestmark = pytest.mark.skipif(
    not FIXTURE.is_file(), reason="the published fixture (../shared/data/a3s/semantic-v1.json) is not here"
)


@pytest.fixture
def fixture() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FIXTURE.read_text(encoding="utf-8"))
    return loaded


@pytest.fixture
async def filled(fixture: dict[str, Any], backing: Backing) -> AsyncIterator[SemanticWorld]:
    """All of it indexed, and one memory changed after that; the session has the published policy."""
    stale = fixture["stale_node"]
    told = [*fixture["nodes"], fixture["candidate_node"], fixture["foreign_node"]]
    asked = [*fixture["queries"], *fixture["negative_queries"]]
    vectors = {item["content"]: item["embedding"] for item in told}
    vectors |= {item["query"]: item["embedding"] for item in asked}
    vectors[stale["indexed_content"]] = stale["embedding"]
    made_by = fixture["embedding"]
    embedder = GatedEmbedder(
        vectors,
        dimension=made_by["dimension"],
        model=made_by["model"],
        revision=made_by["revision"],
        only_given=True,
    )
    async with semantic_process(backing, "a", embedder) as world:
        neighbour = elsewhere(world)
        for one in (world, neighbour):
            await one.open(
                lexical_profile=COVERAGE_PROFILE,
                fusion_profile=RRF_PROFILE,
                candidate_limit=fixture["semantic_policy"]["candidate_limit"],
                min_similarity=fixture["semantic_policy"]["min_score"],
                max_results=fixture["recall_policy"]["max_results"],
                min_score=fixture["recall_policy"]["min_lexical_score"],
                related_lookups=fixture["recall_policy"]["max_related_lookups"],
            )
        candidate, foreign = fixture["candidate_node"], fixture["foreign_node"]
        for node in fixture["nodes"]:
            await world.remember(node["content"], node["id"])
        await world.remember(stale["indexed_content"], stale["id"])
        await world.apply(
            Create(
                node_id=candidate["id"],
                status=NodeStatus.CANDIDATE,
                draft=draft(candidate["content"], evidence=(decision("offered"),)),
            )
        )
        await neighbour.remember(foreign["content"], foreign["id"])
        for one in (world, neighbour):
            await one.refresh()
        await world.put(stale["id"], stale["current_content"])
        yield world


def elsewhere(world: SemanticWorld) -> SemanticWorld:
    other = world.at(OTHER_NAMESPACE)
    assert isinstance(other, SemanticWorld)
    return other


async def test_every_query_finds_its_memory_across_languages_and_nothing_else(
    fixture: dict[str, Any], filled: SemanticWorld
) -> None:
    assert fixture["fusion_profile"] == RRF_PROFILE
    thresholds = fixture["thresholds"]
    found = [await filled.answer(query["query"]) for query in fixture["queries"]]
    firsts = [found_ids(answer)[:1] for answer in found]
    right = sum(ids == [query["relevant_node_id"]] for ids, query in zip(firsts, fixture["queries"], strict=True))
    assert right / len(found) >= thresholds["minimum_semantic_recall_at_1"]
    assert max(len(answer.hits) for answer in found) <= thresholds["maximum_context_nodes_per_query"]
    assert {(answer.mode, answer.degradation) for answer in found} == {(RecallMode.HYBRID, None)}
    assert {hit.channel for answer in found for hit in answer.hits} == {RecallChannel.SEMANTIC}


async def test_what_is_offered_foreign_or_stale_is_never_found(fixture: dict[str, Any], filled: SemanticWorld) -> None:
    hits = 0
    for mode in (RecallMode.HYBRID, RecallMode.SEMANTIC):
        for query in fixture["negative_queries"]:
            answer = await filled.answer(query["query"], mode=mode)
            assert answer.degradation is None
            hits += len(answer.hits)
    assert hits <= fixture["thresholds"]["maximum_negative_hits"]
    own = await elsewhere(filled).answer("別のテナントの復旧フレーズは何ですか")
    assert found_ids(own) == [fixture["foreign_node"]["id"]]


async def test_each_found_memory_is_admitted_once(fixture: dict[str, Any], filled: SemanticWorld) -> None:
    context_id = (await filled.begin()).run.context_id
    admissions: list[AccessOutcome] = []
    for query in [*fixture["queries"], *fixture["negative_queries"]]:
        recalled = await filled.app.recall.active_admitted(
            filled.request("ActiveRecall"), "assistant", context_id, query["query"]
        )
        admissions += recalled.admissions
        context_id = recalled.next_context_id or context_id
    assert all(outcome.error is None for outcome in admissions)
    assert len(admissions) == fixture["thresholds"]["expected_admissions"]
