"""The tokens of both profiles. The golden file is the definition: a difference is another profile."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.domain.lexical.bm25f_tokens import bm25f_query_tokens, bm25f_tokens, fold, stem
from durable_memory.domain.lexical.characters import (
    CJK,
    COVERAGE_CJK,
    IGNORABLE,
    MARKS,
    OTHER_ALPHABETIC,
    ranges,
)
from durable_memory.domain.lexical.coverage_tokens import coverage_tokens
from durable_memory.domain.lexical.stop_words import STOP_WORDS

GOLDEN: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "golden" / "tokens.json").read_text(encoding="utf-8")
)

any_text = st.text(max_size=60)


def code_points(table: str) -> set[int]:
    return {point for first, last in ranges(table) for point in range(first, last + 1)}


@pytest.mark.parametrize("row", GOLDEN, ids=[row["text"].encode("ascii", "replace").decode() for row in GOLDEN])
def test_tokens_are_those_of_the_golden_file(row: dict[str, Any]) -> None:
    assert sorted(coverage_tokens(row["text"])) == row["coverage"]
    assert bm25f_tokens(row["text"]) == row["bm25f"]
    assert sorted(bm25f_query_tokens(row["text"])) == row["bm25f_query"]


def test_the_tables_of_characters_do_not_overlap_where_a_run_or_a_word_must_be_chosen() -> None:
    assert not code_points(COVERAGE_CJK) & code_points(OTHER_ALPHABETIC)
    assert not code_points(CJK) & code_points(MARKS)
    assert not code_points(IGNORABLE) & (code_points(CJK) | code_points(MARKS))


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="a later Unicode assigns more marks")
def test_every_mark_of_unicode_14_is_in_exactly_one_table() -> None:
    marks = {point for point in range(0x110000) if unicodedata.category(chr(point)) in ("Mn", "Mc")}
    assert marks - code_points(CJK) - code_points(IGNORABLE) == code_points(MARKS)


@given(any_text)
def test_tokens_are_never_empty_and_hold_no_separator(text: str) -> None:
    for token in [*bm25f_tokens(text), *coverage_tokens(text)]:
        assert token
        assert not re.search(r"[\s_'’.,;:!?|<>{}@-]", token)


@given(any_text)
def test_folding_is_done_once_and_for_all(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(any_text, any_text)
def test_text_behind_a_separator_does_not_change_the_tokens_before_it(left: str, right: str) -> None:
    assert bm25f_tokens(f"{left}\n{right}") == bm25f_tokens(left) + bm25f_tokens(right)
    assert coverage_tokens(f"{left}\n{right}") == coverage_tokens(left) | coverage_tokens(right)


@given(any_text)
def test_composed_and_decomposed_text_have_equal_bm25f_tokens(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert bm25f_tokens(composed) == bm25f_tokens(decomposed)


@given(any_text)
def test_a_query_looks_for_tokens_that_its_own_text_has(text: str) -> None:
    assert bm25f_query_tokens(text) <= set(bm25f_tokens(text))
    assert bool(bm25f_query_tokens(text)) == bool(bm25f_tokens(text))


def test_stop_words_leave_a_query_unless_nothing_else_is_left() -> None:
    assert bm25f_query_tokens("When did they move to the lake?") == {"move", "lake"}
    assert bm25f_query_tokens("what is it") == {"what", "is", "it"}


def test_stop_words_are_written_as_the_tokeniser_cuts_them() -> None:
    assert all(re.fullmatch("[a-z]+", word) for word in STOP_WORDS)
    assert "may" not in STOP_WORDS


def test_only_words_of_ascii_letters_are_stemmed() -> None:
    assert [stem(word) for word in ("memories", "k8s", "naïvely", "память")] == [
        "memori",
        "k8s",
        "naïvely",
        "память",
    ]
    assert stem("run" + "s" * 60_000)  # past the memo, in time
