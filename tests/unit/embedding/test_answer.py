"""Reading answers of the embeddings endpoint."""

import base64
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.adapters.openai.answer import read_answer
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure


def _body(*embeddings, **others) -> bytes:
    data = [{"index": index, "embedding": embedding} for index, embedding in enumerate(embeddings)]
    return json.dumps({"data": data, **others}).encode()


def _failure(body: bytes, count: int = 1) -> EmbeddingFailure:
    with pytest.raises(EmbeddingError) as failed:
        read_answer(body, count=count)
    assert failed.value.__context__ is None
    return failed.value.failure


def test_rows_are_in_the_order_of_their_indices():
    body = json.dumps(
        {"data": [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1]}], "model": "served"}
    ).encode()
    answer = read_answer(body, count=2)
    assert [list(row) for row in answer.rows] == [[1], [2.0]]
    assert answer.model == "served"


def test_numbers_may_be_packed():
    packed = base64.b64encode(struct.pack("<2f", 0.5, -2.0)).decode()
    (row,) = read_answer(_body(packed), count=1).rows
    assert list(row) == [0.5, -2.0]


def test_an_answer_need_not_name_its_model():
    assert read_answer(_body([1.0]), count=1).model == ""
    assert read_answer(_body([1.0], model=7), count=1).model == ""


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 7, "total_tokens": 9}, 7),
        ({"total_tokens": 9}, 9),
        (None, 0),
        ([], 0),
        ({"prompt_tokens": "7"}, 0),
        ({"prompt_tokens": True}, 0),
        ({"prompt_tokens": -1}, 0),
        ({"prompt_tokens": 2**63}, 0),
    ],
)
def test_what_is_said_of_the_cost_counts_if_it_is_a_count(usage, tokens):
    assert read_answer(_body([1.0], usage=usage), count=1).tokens == tokens


@pytest.mark.parametrize("count", [0, 2])
def test_another_number_of_vectors_is_a_wrong_count(count):
    assert _failure(_body([1.0]), count) is EmbeddingFailure.WRONG_COUNT


@pytest.mark.parametrize("indices", [[0, 0], [1, 2], [0, -1], [0, None], [0, "1"], [0, True], [0, 1.0]])
def test_indices_that_do_not_say_which_vector_is_whose_are_a_wrong_order(indices):
    data = [{"index": index, "embedding": [1.0]} for index in indices]
    assert _failure(json.dumps({"data": data}).encode(), 2) is EmbeddingFailure.WRONG_ORDER


def test_a_null_in_a_vector_is_not_finite():
    assert _failure(_body([1.0, None])) is EmbeddingFailure.NOT_FINITE


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>bad gateway</html>",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"error": {"message": "no"}}',
        b'{"data": {}}',
        b'{"data": [[1.0]]}',
        b"[" * 100_000,
        b'{"data": [{"index": 0, "embedding": [' + b"9" * 10_000 + b"]}]}",
        _body("not base64!"),
        _body(base64.b64encode(b"12345").decode()),
        _body("é"),
        _body(None),
        _body({"0": 1.0}),
        _body([1.0, "2.0"]),
        _body([1.0, True]),
        _body([[1.0]]),
    ],
)
def test_what_is_no_list_of_vectors_is_unreadable(body):
    assert _failure(body) is EmbeddingFailure.UNREADABLE


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["data", "index", "embedding", "model"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_json)
def test_no_document_whatever_ends_in_anything_but_an_answer_or_an_embedding_error(document):
    try:
        answer = read_answer(json.dumps({"data": [document]} if document else document).encode(), count=1)
    except EmbeddingError:
        return
    assert len(answer.rows) == 1
