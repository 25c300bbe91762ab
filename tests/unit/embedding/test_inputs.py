"""What a model is given, and in which batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.adapters.embedding.inputs import InputForm, batches, windows
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure


@pytest.mark.parametrize("text", ["", " \n\t", "nul\0inside", "\0", "lone \ud800 surrogate"])
@pytest.mark.parametrize("kind", ["passage", "query"])
def test_what_a_model_would_misread_is_refused_before_it_sees_it(text, kind):
    with pytest.raises(EmbeddingError) as refused:
        getattr(InputForm(), kind)(text)
    assert refused.value.failure is EmbeddingFailure.REFUSED
    assert not refused.value.retryable
    assert text.strip() not in str(refused.value) or not text.strip()


def test_prefixes_come_before_the_text_and_do_not_count_against_its_cap():
    form = InputForm(passage_prefix="passage: ", query_prefix="query: ", passage_max_bytes=4, query_max_bytes=3)
    assert form.passage("abcdef") == "passage: abcd"
    assert form.query("abcdef") == "query: abc"


def test_a_text_is_cut_between_characters():
    assert InputForm(passage_max_bytes=7).passage("记忆力") == "记忆"


def test_space_around_a_text_is_no_part_of_it():
    assert InputForm(passage_max_bytes=4).passage("      text") == "text"


def test_whatever_changes_a_vector_changes_the_label():
    forms = [
        InputForm(),
        InputForm(passage_max_bytes=100),
        InputForm(query_max_bytes=100),
        InputForm(passage_prefix="a"),
        InputForm(query_prefix="a"),
        InputForm(passage_prefix="ab", query_prefix="c"),
        InputForm(passage_prefix="a", query_prefix="bc"),
    ]
    assert len({form.label for form in forms}) == len(forms)
    assert InputForm(passage_prefix="a").label == InputForm(passage_prefix="a").label


def test_a_batch_is_full_by_count_or_by_bytes_and_a_long_text_is_one_of_its_own():
    texts = ["aa", "bb", "cc", "dddddddd", "e"]
    assert [list(run) for run in batches(texts, max_texts=2, max_bytes=100)] == [
        ["aa", "bb"],
        ["cc", "dddddddd"],
        ["e"],
    ]
    assert [list(run) for run in batches(texts, max_texts=9, max_bytes=5)] == [
        ["aa", "bb"],
        ["cc"],
        ["dddddddd"],
        ["e"],
    ]
    assert list(batches([], max_texts=2, max_bytes=5)) == []


def test_a_long_text_is_cut_into_pieces_of_whole_characters_without_empty_ones():
    assert windows("记忆力 ab", 6) == ["记忆", "力 ab"]
    assert windows("a" + " " * 10 + "b", 4) == ["a   ", "   b"]
    assert windows("short", 100) == ["short"]


@given(st.text(max_size=40), st.integers(4, 20))
def test_pieces_hold_all_that_is_no_space_in_order_and_within_the_bound(text, max_bytes):
    pieces = windows(text, max_bytes)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece.strip() and len(piece.encode()) <= max_bytes for piece in pieces)


@given(st.lists(st.text(max_size=12)), st.integers(1, 5), st.integers(1, 30))
def test_batches_hold_every_text_once_in_order_and_within_both_bounds(texts, max_texts, max_bytes):
    runs = [list(run) for run in batches(texts, max_texts=max_texts, max_bytes=max_bytes)]
    assert [text for run in runs for text in run] == texts
    for run in runs:
        assert 1 <= len(run) <= max_texts
        assert len(run) == 1 or sum(len(text.encode()) for text in run) <= max_bytes
