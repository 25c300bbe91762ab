"""The compatible profile gives exactly what its own project publishes. Runs where that data is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from durable_memory.app.views.index import LexicalIndex
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.lexical.profiles import COVERAGE_PROFILE

FIXTURES = Path(__file__).parents[4] / "shared" / "data" / "a3s"

pytestmark = pytest.mark.skipif(not FIXTURES.is_dir(), reason="../shared/data/a3s is not there")


def load(name: str) -> tuple[dict[str, Any], LexicalIndex]:
    fixture = json.loads((FIXTURES / name).read_text(encoding="utf-8"))
    index = LexicalIndex.build(
        IndexedDocument(
            node_id=node["id"],
            revision=1,
            kind=1,
            content=node["content"],
            updated_at=datetime(2024, 1, 1, tzinfo=UTC),
        )
        for node in fixture["nodes"]
        if node["status"] == "active"
    )
    return fixture, index


def found(index: LexicalIndex, policy: dict[str, Any], query: str) -> list[str]:
    hits = index.search(query, COVERAGE_PROFILE, limit=policy["max_results"], min_score=policy["min_lexical_score"])
    return [hit.node_id for hit in hits]


def test_retrieval_v1_finds_exactly_the_published_ids() -> None:
    fixture, index = load("retrieval-v1.json")
    for query in fixture["queries"]:
        assert found(index, fixture["policy"], query["query"]) == query["expected_lexical_ids"], query["id"]
    for query in fixture["negative_queries"]:
        hits = found(index, fixture["policy"], query["query"])
        assert not set(hits) & set(query["forbidden_node_ids"]), query["id"]


def test_multilingual_v1_finds_exactly_one_node_for_each_query_and_none_for_the_negatives() -> None:
    fixture, index = load("multilingual-v1.json")
    for query in fixture["queries"]:
        assert found(index, fixture["policy"], query["query"]) == [query["relevant_node_id"]], query["id"]
    for query in fixture["negative_queries"]:
        assert found(index, fixture["policy"], query["query"]) == [], query["id"]
