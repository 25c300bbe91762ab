"""The scores of both profiles. The golden file is the definition: a difference is another profile."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from durable_memory.app.views.index import LexicalIndex
from durable_memory.domain.lexical.bm25f import inverse_document_frequency
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.lexical.profiles import (
    BM25F_PROFILE,
    COVERAGE_PROFILE,
    DEFAULT_LEXICAL_PROFILE,
    LEXICAL_PROFILES,
    lexical_profile,
)
from durable_memory.domain.lexical.query import LexicalFilter
from durable_memory.domain.lexical.reference import reference_search

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "scores.json").read_text(encoding="utf-8"))
NOON = datetime(2024, 5, 7, 12, tzinfo=UTC)


def golden_document(row: dict[str, Any]) -> IndexedDocument:
    return IndexedDocument(
        node_id=row["node_id"],
        revision=1,
        kind=1,
        content=row["content"],
        author=row["author"],
        surroundings=tuple(row["surroundings"]),
        occurred_at=row["occurred_at"] and datetime.fromisoformat(row["occurred_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
    )


def document(node_id: str, content: str, **fields: Any) -> IndexedDocument:
    values: dict[str, Any] = {"revision": 1, "kind": 1, "updated_at": NOON} | fields
    return IndexedDocument(node_id=node_id, content=content, **values)


@pytest.mark.parametrize(
    "search",
    GOLDEN["searches"],
    ids=[f"{row['profile'][:3]}-{number}" for number, row in enumerate(GOLDEN["searches"])],
)
def test_scores_are_those_of_the_golden_file(search: dict[str, Any]) -> None:
    documents = [golden_document(row) for row in GOLDEN["documents"]]
    hits = reference_search(documents, search["query"], search["profile"], limit=20)
    assert [[hit.node_id, list(hit.matched_terms)] for hit in hits] == [
        [node_id, terms] for node_id, _, _, terms in search["hits"]
    ]
    for hit, (_, score, share, _) in zip(hits, search["hits"], strict=True):
        # The logarithm of another C library may differ in the last bit; everything else is exact.
        assert hit.score == pytest.approx(score, rel=1e-14, abs=0)
        assert hit.matched_share == pytest.approx(share, rel=1e-14, abs=0)
    assert LexicalIndex.build(documents).search(search["query"], search["profile"], limit=20) == hits


def test_bm25f_is_the_formula_of_its_definition() -> None:
    documents = [
        document("a", "river river stone", surroundings=("river stone", "river")),
        document("b", "harbour"),
        document("c", "stone", surroundings=("meadow harbour river lantern",)),
    ]
    hits = {hit.node_id: hit for hit in reference_search(documents, "river", BM25F_PROFILE, limit=5)}
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))  # one document has it in its own text
    own_average, near_average, far_average = (3 + 1 + 1) / 3, (2 + 4) / 2, 1 / 1
    tf_a = (
        2 / (0.6 + 0.4 * 3 / own_average)
        + 0.5 * 1 / (0.6 + 0.4 * 2 / near_average)
        + 0.25 * 1 / (0.6 + 0.4 * 1 / far_average)
    )
    tf_c = 0.5 * 1 / (0.6 + 0.4 * 4 / near_average)
    assert hits["a"].score == pytest.approx(idf * tf_a * 1.9 / (tf_a + 0.9), rel=1e-12)
    assert hits["c"].score == pytest.approx(idf * tf_c * 1.9 / (tf_c + 0.9), rel=1e-12)
    assert set(hits) == {"a", "c"}


def test_a_term_that_stands_in_surroundings_only_counts_by_these() -> None:
    documents = [document(f"n{number}", "stone", surroundings=("lantern",)) for number in range(3)]
    documents.append(document("other", "stone"))
    hit = reference_search(documents, "lantern", BM25F_PROFILE, limit=1)[0]
    tf = 0.5
    assert hit.score == pytest.approx(inverse_document_frequency(4, 3) * tf * 1.9 / (tf + 0.9))


def test_the_nearer_a_surrounding_the_more_it_counts() -> None:
    fillers = ["stone", "meadow", "harbour", "bridge"]

    def around(place: int) -> tuple[str, ...]:
        return (*fillers[:place], "lantern", *fillers[place + 1 :])

    documents = [document(f"n{place}", "stone", surroundings=around(place)) for place in range(4)]
    hits = reference_search(documents, "lantern", BM25F_PROFILE, limit=5)
    assert [hit.node_id for hit in hits] == ["n0", "n1", "n2", "n3"]
    assert len({hit.score for hit in hits}) == 4


def test_author_and_day_find_a_memory_by_bm25f_and_the_day_not_by_coverage() -> None:
    documents = [
        document("said", "Yes, next Friday.", author="user-7", occurred_at=datetime(2023, 5, 8, tzinfo=UTC)),
        document("other", "Something else.", author="user-8", occurred_at=datetime(2022, 1, 1, tzinfo=UTC)),
    ]

    def first(query: str, profile: str) -> str | None:
        hits = reference_search(documents, query, profile, limit=1, min_score=0.6)
        return hits[0].node_id if hits else None

    assert first("8 May 2023", BM25F_PROFILE) == first("user-7", BM25F_PROFILE) == "said"
    assert first("user-7", COVERAGE_PROFILE) == "said"
    assert first("8 May 2023", COVERAGE_PROFILE) is None


def test_coverage_is_exactly_the_matched_share_and_its_floor_is_inclusive() -> None:
    documents = [document("a", "one two"), document("b", "one")]
    hits = reference_search(documents, "one two three four five", COVERAGE_PROFILE, limit=5, min_score=0.4)
    assert [(hit.node_id, hit.score) for hit in hits] == [("a", 0.4)]


def test_floors_follow_the_filter_and_the_relative_one_follows_the_absolute() -> None:
    documents = [
        document("best", "river lantern", kind=2),
        document("good", "river lantern and more words"),
        document("weak", "river and many many other words that follow here"),
    ]

    def found(**arguments: Any) -> list[str]:
        hits = reference_search(documents, "river lantern", BM25F_PROFILE, limit=5, **arguments)
        return [hit.node_id for hit in hits]

    assert found() == ["best", "good", "weak"]
    assert found(min_score=1.0) == ["best", "good"]
    assert found(min_relative_score=1.0) == ["best"]
    assert found(min_relative_score=1.0, filter=LexicalFilter(kinds=frozenset({1}))) == ["good"]


def test_equal_scores_go_to_the_newer_and_then_by_id() -> None:
    documents = [
        document("b", "river"),
        document("a", "river"),
        document("old", "river", updated_at=NOON - timedelta(days=1)),
        document("new", "river", updated_at=NOON + timedelta(microseconds=1)),
    ]
    for profile in LEXICAL_PROFILES:
        hits = reference_search(documents, "river", profile, limit=5)
        assert [hit.node_id for hit in hits] == ["new", "a", "b", "old"]


def test_profiles_are_known_by_their_ids() -> None:
    assert DEFAULT_LEXICAL_PROFILE == "dm.lexical.bm25f.v1"
    assert set(LEXICAL_PROFILES) == {"dm.lexical.bm25f.v1", "a3s.memory.lexical.word-cjk-bigram.v1"}
    assert all(lexical_profile(name) is profile for name, profile in LEXICAL_PROFILES.items())
    assert lexical_profile("a3s.memory.lexical.word.v1") is None
    assert all(profile.default_min_score == 0.0 for profile in LEXICAL_PROFILES.values())
