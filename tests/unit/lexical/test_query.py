"""What a query may be, and which of its terms are used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from durable_memory.domain.lexical.bm25f_tokens import bm25f_query_tokens, bm25f_tokens
from durable_memory.domain.lexical.date_words import date_words
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.lexical.query import (
    QUERY_MAX_TERMS,
    LexicalFilter,
    has_searchable_text,
    most_selective_terms,
)
from durable_memory.domain.limits import QUERY_MAX_BYTES
from tests.unit.work import steps_of

NOON = datetime(2024, 5, 7, 12, tzinfo=UTC)


@pytest.mark.parametrize("query", ["a", "7", "库", "ー", "я", "हि", "٣", "²", "㍿", "Ⓐ", "  x  ", "<|endoftext|>"])
def test_a_letter_or_digit_of_any_script_makes_a_query(query: str) -> None:
    assert has_searchable_text(query)


@pytest.mark.parametrize("query", ["", " \n", "?!", "___", "👍🏽", "\u0301", "\u3164", "%$#", "・", "\u200d"])
def test_symbols_marks_and_what_nobody_sees_make_none(query: str) -> None:
    assert not has_searchable_text(query)


def test_the_rarest_terms_are_used_in_term_order() -> None:
    frequencies = {f"t{number:03}": 1 + number // 100 for number in range(300)}
    chosen = most_selective_terms(frequencies, frequencies.__getitem__)
    assert chosen == tuple(f"t{number:03}" for number in range(QUERY_MAX_TERMS))


def test_unknown_terms_never_push_a_known_one_out() -> None:
    known = {f"k{number:03}": 5 for number in range(200)}
    unknown = {f"a{number:03}": 0 for number in range(200)}
    chosen = most_selective_terms(known | unknown, (known | unknown).__getitem__)
    assert set(known) <= set(chosen)
    assert len(chosen) == QUERY_MAX_TERMS
    assert list(chosen) == sorted(chosen)


@pytest.mark.parametrize("text", ["a " * 32_768, "".join(chr(0x4E00 + n % 20_000) for n in range(21_845))])
def test_cutting_a_query_into_tokens_costs_no_more_than_its_size(text: str) -> None:
    whole = steps_of(lambda: bm25f_query_tokens(text))
    half = steps_of(lambda: bm25f_query_tokens(text[: len(text) // 2]))
    assert whole < 2.2 * half


def test_queries_of_the_largest_size_are_cut_into_tokens() -> None:
    """What took the square of their size would not end while anybody waits for it."""
    assert bm25f_query_tokens("a " * (QUERY_MAX_BYTES // 2)) == {"a"}
    assert len(bm25f_query_tokens("".join(chr(0x4E00 + n % 20_000) for n in range(21_845)))) > 20_000
    assert bm25f_query_tokens("x" * QUERY_MAX_BYTES)


def test_date_words_name_the_day_in_utc() -> None:
    evening_in_tokyo = datetime(2023, 5, 9, 1, 30, tzinfo=timezone(timedelta(hours=9)))
    assert date_words(evening_in_tokyo) == "8 may 2023 2023-05-08"


@pytest.mark.parametrize("query", ["May 2023", "8 May", "2023-05-08", "8 MAY 2023", "May 8, 2023"])
def test_a_day_is_found_as_people_write_it(query: str) -> None:
    assert bm25f_query_tokens(query) <= set(bm25f_tokens(date_words(datetime(2023, 5, 8, tzinfo=UTC))))


def document(**fields: Any) -> IndexedDocument:
    values: dict[str, Any] = {"node_id": "n", "revision": 1, "kind": 1, "content": "text", "updated_at": NOON} | fields
    return IndexedDocument(**values)


@pytest.mark.parametrize(
    ("filter", "refusal"),
    [
        (LexicalFilter(), None),
        (LexicalFilter(kinds=frozenset({1, 2})), None),
        (LexicalFilter(kinds=frozenset({2})), "kinds"),
        (LexicalFilter(labels={"team": "a"}), None),
        (LexicalFilter(labels={"team": "a", "type": "fact"}), "labels"),
        (LexicalFilter(labels={"team": "A"}), "labels"),
        (LexicalFilter(occurred_from=NOON), None),
        (LexicalFilter(occurred_until=NOON), "occurred_at"),
        (LexicalFilter(updated_from=NOON, updated_until=NOON + timedelta(microseconds=1)), None),
        (LexicalFilter(updated_from=NOON + timedelta(microseconds=1)), "updated_at"),
        (LexicalFilter(excluded_ids=frozenset({"n"})), "excluded_ids"),
    ],
)
def test_a_filter_names_what_it_refuses(filter: LexicalFilter, refusal: str | None) -> None:
    assert filter.refusal(document(labels={"team": "a"}, occurred_at=NOON)) == refusal


def test_a_document_without_an_occurrence_time_is_outside_every_range_of_it() -> None:
    assert LexicalFilter(occurred_from=NOON).refusal(document()) == "occurred_at"
    assert LexicalFilter().refusal(document()) is None
