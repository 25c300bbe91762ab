"""The lexical index returns what the reference returns, bit for bit, whatever changes led to it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durable_memory.app.views.explanation import LexicalCut
from durable_memory.app.views.index import LexicalIndex, Search
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE
from durable_memory.domain.lexical.query import ANY_DOCUMENT, LexicalFilter
from durable_memory.domain.lexical.reference import reference_search
from durable_memory.domain.limits import QUERY_MAX_BYTES
from tests.unit.work import memory_of, steps_of

START = datetime(2024, 1, 1, tzinfo=UTC)
PROFILES = (BM25F_PROFILE, COVERAGE_PROFILE)
WORDS = ("river", "rivers", "harbour", "lantern", "running", "数据库", "库", "the", "what", "may", "!")
profiles = pytest.mark.parametrize("profile", PROFILES)

phrases = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
moments = st.integers(0, 3).map(lambda days: START + timedelta(days=40 * days))
node_ids = st.sampled_from([f"node-{number}" for number in range(12)] + ["é", "z", "日"])


def document(node_id: str, content: str = "text", **fields: Any) -> IndexedDocument:
    values: dict[str, Any] = {"revision": 1, "kind": 1, "updated_at": START} | fields
    return IndexedDocument(node_id=node_id, content=content, **values)


documents = st.builds(
    IndexedDocument,
    node_id=node_ids,
    revision=st.integers(1, 9),
    kind=st.integers(1, 3),
    content=phrases,
    author=st.sampled_from(["", "river", "user-1"]),
    surroundings=st.lists(phrases, max_size=4).map(tuple),
    occurred_at=st.none() | moments,
    updated_at=moments,
    labels=st.dictionaries(st.sampled_from(["team", "type"]), st.sampled_from(["a", "b"]), max_size=2),
)
steps = st.tuples(
    st.lists(documents, max_size=5, unique_by=lambda item: item.node_id),
    st.sets(node_ids, max_size=3),
    st.sampled_from(["", "", "", "begin", "adopt"]),
)
filters = st.just(ANY_DOCUMENT) | st.builds(
    LexicalFilter,
    kinds=st.frozensets(st.integers(1, 3), max_size=2),
    labels=st.dictionaries(st.sampled_from(["team", "type"]), st.sampled_from(["a", "c"]), max_size=1),
    occurred_from=st.none() | moments,
    occurred_until=st.none() | moments,
    updated_from=st.none() | moments,
    updated_until=st.none() | moments,
    excluded_ids=st.frozensets(node_ids, max_size=3),
)
floors = st.sampled_from([0.0, 0.0, 0.25, 0.5, 0.9, 1.0])
searches = st.fixed_dictionaries(
    {
        "query": st.lists(st.sampled_from((*WORDS, "absent", "2024", "may 2024")), min_size=1, max_size=6).map(
            " ".join
        ),
        "limit": st.sampled_from([1, 2, 5, 100]),
        "filter": filters,
        "min_score": floors,
        "min_relative_score": floors,
    }
)


def check(index: LexicalIndex, held: Sequence[IndexedDocument], search: dict[str, Any]) -> None:
    arguments = {name: value for name, value in search.items() if name != "query"}
    for profile in PROFILES:
        expected = reference_search(held, search["query"], profile, **arguments)
        assert index.search(search["query"], profile, **arguments) == expected
        hits = {hit.node_id: hit for hit in expected}
        for node_id in [item.node_id for item in held][:4]:
            explained = index.explain(search["query"], profile, node_id, **arguments)
            assert (explained.cut is None) == (node_id in hits)
            if node_id in hits:
                hit = hits[node_id]
                assert (explained.score, explained.matched_share) == (hit.score, hit.matched_share)
                assert tuple(term.term for term in explained.terms if term.contribution) == hit.matched_terms


@settings(max_examples=150, deadline=None)
@given(st.lists(documents, max_size=12, unique_by=lambda item: item.node_id), st.lists(steps, max_size=8), searches)
def test_every_way_to_a_state_gives_the_reference_s_hits(
    first: list[IndexedDocument],
    changes: list[tuple[list[IndexedDocument], set[str], str]],
    search: dict[str, Any],
) -> None:
    index = LexicalIndex.build(first)
    held = {item.node_id: item for item in first}
    begun = None
    check(index, list(held.values()), search)
    for changed, removed, maintenance in changes:
        changed_ids = {item.node_id for item in changed}
        index = index.apply(changed, removed - changed_ids)
        held = {node_id: item for node_id, item in held.items() if node_id not in removed | changed_ids} | {
            item.node_id: item for item in changed
        }
        if maintenance == "begin":
            index, work = index.begin_compaction()
            begun = (work, work.run())
        elif maintenance == "adopt" and begun is not None:
            index = index.adopt(*begun)
        assert len(index) == len(held)
        assert index.count(search["filter"]) == sum(search["filter"].refusal(item) is None for item in held.values())
        check(index, list(held.values()), search)


def test_hundreds_of_single_changes_equal_one_build() -> None:
    chance = random.Random(7)
    index = LexicalIndex.build([])
    held: dict[str, IndexedDocument] = {}
    for number in range(700):
        item = document(
            f"n{chance.randrange(400):03}",
            " ".join(chance.choices(WORDS, k=5)),
            surroundings=tuple(" ".join(chance.choices(WORDS, k=3)) for _ in range(chance.randrange(4))),
            updated_at=START + timedelta(days=number % 3),
        )
        gone = chance.sample(sorted(held), k=1) if number % 5 == 4 else []
        index = index.apply([item], [node_id for node_id in gone if node_id != item.node_id])
        for node_id in gone:
            held.pop(node_id)
        held[item.node_id] = item
        if index.needs_compaction and number % 3 == 0:
            index, work = index.begin_compaction()
            index = index.adopt(work, work.run())
    whole = LexicalIndex.build(held.values())
    for query in ("river lantern", "数据库 running", "what"):
        for profile in PROFILES:
            hits = index.search(query, profile, limit=50)
            assert hits == whole.search(query, profile, limit=50)
            assert hits == reference_search(list(held.values()), query, profile, limit=50)


def test_an_index_is_never_changed_by_the_next() -> None:
    before = LexicalIndex.build([document("a", "river"), document("b", "river harbour")])
    hits = before.search("river", BM25F_PROFILE, limit=10)
    after = before.apply([document("c", "river", revision=2)], ["a"])
    assert before.search("river", BM25F_PROFILE, limit=10) == hits
    assert [hit.node_id for hit in after.search("river", BM25F_PROFILE, limit=10)] == ["c", "b"]
    assert "a" in before
    assert "a" not in after


def test_changes_during_a_compaction_are_in_the_adopted_index() -> None:
    index = LexicalIndex.build(document(f"n{number:02}", "river") for number in range(10))
    index = index.apply([document("young", "river")])
    index, work = index.begin_compaction()
    index = index.apply([document("n03", "harbour", revision=2), document("new", "river")], ["n04", "young"])
    adopted = index.adopt(work, work.run())
    found = {hit.node_id for hit in adopted.search("river", BM25F_PROFILE, limit=20)}
    assert found == {f"n{number:02}" for number in range(10)} - {"n03", "n04"} | {"new"}
    assert adopted.search("harbour", BM25F_PROFILE, limit=5) == index.search("harbour", BM25F_PROFILE, limit=5)


def test_a_compaction_that_came_too_late_changes_nothing() -> None:
    index, work = LexicalIndex.build([document("a", "river")]).begin_compaction()
    segment = work.run()
    other = LexicalIndex.build([document("b", "river")])
    assert [hit.node_id for hit in other.adopt(work, segment).search("river", BM25F_PROFILE, limit=5)] == ["b"]
    once = index.adopt(work, segment)
    assert len(once.adopt(work, segment)) == 1


def test_many_changes_ask_for_a_compaction_and_one_settles_it() -> None:
    index = LexicalIndex.build(document(f"n{number:04}", f"river {number}") for number in range(400))
    assert not index.needs_compaction
    for number in range(130):
        index = index.apply([document(f"n{number:04}", f"harbour {number}", revision=2)])
    assert index.needs_compaction
    index, work = index.begin_compaction()
    index = index.adopt(work, work.run())
    assert not index.needs_compaction
    assert index.count() == 400


def test_a_change_costs_the_same_in_a_small_and_in_a_large_namespace() -> None:
    text = " ".join(WORDS)

    def costs(size: int) -> list[tuple[int, int]]:
        index = LexicalIndex.build(document(f"n{number:05}", f"{text} {number}") for number in range(size))
        found = []
        for number in range(30):
            change = partial(index.apply, [document(f"n{number:05}", f"{text} changed {number}")])
            found.append((steps_of(change), memory_of(change)))
            index = change()
        return found

    for (small_steps, small_memory), (large_steps, large_memory) in zip(costs(500), costs(8_000), strict=True):
        assert large_steps < 1.2 * small_steps
        assert large_memory < 1.2 * small_memory


@profiles
def test_thousands_of_ties_go_to_the_newer_and_then_by_id(profile: str) -> None:
    index = of_ties(6_000)
    hits = index.search("river", profile, limit=4)
    assert [hit.node_id for hit in hits] == ["m", "n00002", "n00005", "n00008"]
    assert len({hit.score for hit in hits}) == 1
    assert [hit.rank for hit in hits] == [1, 2, 3, 4]


@profiles
def test_ties_that_are_no_hits_cost_no_steps_of_their_own(profile: str) -> None:
    few, many = (steps_of(partial(of_ties(count).search, "river", profile, limit=4)) for count in (1_500, 6_000))
    assert many < few + 100


def of_ties(count: int) -> LexicalIndex:
    items = [
        document(f"n{number:05}", "river", updated_at=START + timedelta(days=number % 3)) for number in range(count)
    ]
    random.Random(1).shuffle(items)
    return LexicalIndex.build(items).apply([document("m", "river", updated_at=START + timedelta(days=2))])


@profiles
def test_ids_tie_in_the_order_of_their_utf_8_bytes(profile: str) -> None:
    ids = ["Z", "a", "é", "日", "\U00020bb7", "\uffee"]
    index = LexicalIndex.build(document(node_id, "river") for node_id in ids[::2])
    index = index.apply([document(node_id, "river") for node_id in ids[1::2]])
    found = [hit.node_id for hit in index.search("river", profile, limit=10)]
    assert found == sorted(ids, key=lambda node_id: node_id.encode())


@profiles
def test_as_many_of_the_best_hits_as_asked_tell_what_they_matched(profile: str) -> None:
    index = LexicalIndex.build([document("a", "river"), document("b", "river lantern"), document("c", "lantern")])
    whole = index.search("river lantern absent", profile, limit=3)
    assert all(hit.matched_terms and 0.0 < hit.matched_share < 1.0 for hit in whole)
    for count in range(5):
        (hits,) = index.search_all([Search(query="river lantern absent", profile=profile, limit=3, with_terms=count)])
        assert hits[:count] == whole[:count]
        assert hits[count:] == [hit._replace(matched_terms=(), matched_share=0.0) for hit in whole[count:]]


@profiles
def test_an_empty_index_finds_nothing(profile: str) -> None:
    index = LexicalIndex.build([])
    assert index.search("river", profile, limit=5) == []
    assert index.explain("river", profile, "a", limit=5).cut is LexicalCut.NOT_INDEXED
    emptied = LexicalIndex.build([document("a", "river")]).apply([], ["a"])
    assert emptied.search("river", profile, limit=5) == []
    assert len(emptied) == 0


def test_a_profile_that_the_index_was_not_built_for_is_refused() -> None:
    index = LexicalIndex.build([document("a", "river")], profiles=[COVERAGE_PROFILE])
    assert index.search("river", COVERAGE_PROFILE, limit=5)
    assert len(index.apply([document("b", "river")]).search("river", COVERAGE_PROFILE, limit=5)) == 2
    with pytest.raises(KeyError):
        index.search("river", BM25F_PROFILE, limit=5)


@profiles
def test_a_query_of_the_largest_size_costs_no_more_than_its_size(profile: str) -> None:
    chance = random.Random(3)
    vocabulary = [f"word{number}" for number in range(3_000)]
    index = LexicalIndex.build(
        document(f"n{number:04}", " ".join(chance.choices(vocabulary, k=30))) for number in range(1_000)
    )
    query = " ".join(chance.choices(vocabulary, k=120_000))[:QUERY_MAX_BYTES]
    hits = index.search(query, profile, limit=100)
    assert len(hits) == 100
    assert all(len(hit.matched_terms) <= 256 for hit in hits)

    whole = steps_of(partial(index.search, query, profile, limit=100))
    half = steps_of(partial(index.search, query[: len(query) // 2], profile, limit=100))
    assert whole < 2.2 * half


def test_threads_that_share_an_index_get_equal_answers() -> None:
    chance = random.Random(5)
    index = LexicalIndex.build(document(f"n{number:03}", " ".join(chance.choices(WORDS, k=6))) for number in range(300))
    queries = [" ".join(chance.choices(WORDS[:7], k=3)) for _ in range(40)]
    expected = [index.search(query, BM25F_PROFILE, limit=5) for query in queries]
    fresh = index.apply([], [])
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda query: fresh.search(query, BM25F_PROFILE, limit=5), queries * 8)
        assert list(answers) == expected * 8


def test_a_typical_node_takes_less_than_one_and_a_half_kilobytes() -> None:
    chance = random.Random(2)
    vocabulary = [f"{chance.randrange(10**6):x}" for _ in range(8_000)]
    texts = [" ".join(chance.choices(vocabulary, k=30)) for _ in range(2_000)]
    index = LexicalIndex.build(
        document(
            f"0190f3c8-{number:020}",
            text,
            surroundings=tuple(texts[max(0, number - 2) : number]),
            labels={"type": "fact"},
        )
        for number, text in enumerate(texts)
    )
    assert 500 < index.nbytes / len(index) < 1_536


def test_memory_does_not_grow_when_a_node_is_changed_again_and_again() -> None:
    index = LexicalIndex.build(document(f"n{number:03}", f"river {number}") for number in range(200))
    before = index.nbytes
    for number in range(600):
        index = index.apply([document("n007", f"harbour {number}", revision=number + 2)])
    assert index.nbytes < 4 * before
    assert [hit.revision for hit in index.search("harbour", BM25F_PROFILE, limit=5)] == [601]


EXPLAINED = [
    document("best", "river lantern", kind=1, labels={"team": "a"}, occurred_at=START),
    document("other", "river harbour", kind=2, labels={"team": "b"}, occurred_at=START + timedelta(days=9)),
    document("weak", "a long text of many words with one river in it and nothing else at all", labels={"team": "a"}),
    document("around", "yes", surroundings=("river lantern",), updated_at=START + timedelta(days=1)),
    document("unrelated", "harbour"),
]


@pytest.mark.parametrize(
    ("node_id", "arguments", "cut"),
    [
        ("best", {}, None),
        ("absent", {}, LexicalCut.NOT_INDEXED),
        ("unrelated", {}, LexicalCut.NO_MATCH),
        ("unrelated", {"filter": LexicalFilter(kinds=frozenset({2}))}, LexicalCut.KIND),
        ("best", {"filter": LexicalFilter(kinds=frozenset({2}))}, LexicalCut.KIND),
        ("best", {"filter": LexicalFilter(labels={"team": "b"})}, LexicalCut.LABEL),
        ("best", {"filter": LexicalFilter(occurred_from=START + timedelta(days=1))}, LexicalCut.OCCURRED_AT),
        ("weak", {"filter": LexicalFilter(occurred_until=START + timedelta(days=1))}, LexicalCut.OCCURRED_AT),
        ("best", {"filter": LexicalFilter(updated_from=START + timedelta(days=1))}, LexicalCut.UPDATED_AT),
        ("best", {"filter": LexicalFilter(excluded_ids=frozenset({"best"}))}, LexicalCut.EXCLUDED_ID),
        ("other", {"min_score": 0.9}, LexicalCut.MIN_SCORE),
        ("other", {"min_relative_score": 0.9}, LexicalCut.MIN_RELATIVE_SCORE),
        ("other", {"limit": 1}, LexicalCut.LIMIT),
    ],
)
def test_an_explanation_names_what_cut_a_document(
    node_id: str, arguments: dict[str, Any], cut: LexicalCut | None
) -> None:
    index = LexicalIndex.build(EXPLAINED)
    explained = index.explain("lantern river", BM25F_PROFILE, node_id, **{"limit": 10} | arguments)
    assert explained.cut == cut
    hits = index.search("lantern river", BM25F_PROFILE, **{"limit": 10} | arguments)
    assert (cut is None) == (node_id in {hit.node_id for hit in hits})


def test_an_explanation_shows_each_term_and_where_it_stands() -> None:
    index = LexicalIndex.build(EXPLAINED)
    explained = index.explain("lantern river absent", BM25F_PROFILE, "around", limit=10)
    absent, lantern, river = explained.terms
    assert [term.term for term in explained.terms] == ["absent", "lantern", "river"]
    assert (absent.document_count, absent.counts, absent.contribution) == (0, (0, 0), 0.0)
    assert (lantern.document_count, lantern.counts) == (1, (0, 1))
    assert river.document_count == 3
    assert absent.weight > lantern.weight > river.weight > 0
    assert explained.score == lantern.contribution + river.contribution
    assert (
        explained.rank
        == [hit.node_id for hit in index.search("lantern river absent", BM25F_PROFILE, limit=10)].index("around") + 1
    )


def test_the_rank_of_an_explanation_leaves_out_what_the_filter_refuses() -> None:
    index = LexicalIndex.build(EXPLAINED)
    every = index.explain("river", BM25F_PROFILE, "weak", limit=1)
    filtered = index.explain("river", BM25F_PROFILE, "weak", limit=1, filter=LexicalFilter(labels={"team": "a"}))
    assert (every.rank, filtered.rank) == (3, 2)


def test_a_corrected_node_is_found_by_its_new_words_only() -> None:
    index = LexicalIndex.build(EXPLAINED)
    index = index.apply([replace(EXPLAINED[0], content="meadow", revision=2)])
    assert [hit.revision for hit in index.search("meadow", BM25F_PROFILE, limit=5)] == [2]
    assert "best" not in {hit.node_id for hit in index.search("lantern", BM25F_PROFILE, limit=5)}
