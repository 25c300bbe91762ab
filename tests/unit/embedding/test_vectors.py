"""The boundary: what becomes of what a provider answered."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from durable_memory.adapters.embedding.vectors import MAX_DIMENSION, mean_vector, unit_vectors
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from tests.fixture_embedder import floats


def _failure(rows, *, count=None, dimension=None) -> EmbeddingFailure:
    with pytest.raises(EmbeddingError) as failed:
        unit_vectors(rows, count=len(rows) if count is None else count, dimension=dimension)
    return failed.value.failure


def test_rows_become_float32_of_length_one_in_their_order():
    first, second = unit_vectors([[3.0, 4.0], [0, -2]], count=2, dimension=2)
    assert floats(first).tolist() == [np.float32(0.6), np.float32(0.8)]
    assert floats(second).tolist() == [0.0, -1.0]


def test_an_array_of_rows_is_as_good_as_a_list():
    rows = [[1.0, 2.0], [3.0, 4.0]]
    assert unit_vectors(np.array(rows, dtype=np.float32), count=2, dimension=2) == unit_vectors(
        rows, count=2, dimension=2
    )


def test_no_texts_have_no_vectors():
    assert unit_vectors([], count=0, dimension=8) == []


@pytest.mark.parametrize("rows", [[], [[1.0, 2.0]], [[1.0, 2.0]] * 3])
def test_more_or_fewer_rows_than_texts_are_refused(rows):
    assert _failure(rows, count=2) is EmbeddingFailure.WRONG_COUNT


@pytest.mark.parametrize("rows", [[[1.0]], [[1.0, 2.0, 3.0]], [[]]])
def test_another_dimension_is_refused(rows):
    assert _failure(rows, dimension=2) is EmbeddingFailure.WRONG_DIMENSION


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [1.0]], [[]], [[1.0] * (MAX_DIMENSION + 1)]])
def test_rows_of_several_lengths_of_none_or_of_an_absurd_one_have_no_dimension(rows):
    assert _failure(rows) is EmbeddingFailure.WRONG_DIMENSION


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 10**400])
def test_what_is_not_finite_is_refused(bad):
    assert _failure([[1.0, 2.0], [bad, 2.0]]) is EmbeddingFailure.NOT_FINITE


def test_a_zero_vector_is_refused():
    assert _failure([[1.0, 2.0], [0.0, -0.0]]) is EmbeddingFailure.ZERO_VECTOR


def test_what_is_no_number_is_refused():
    assert _failure([["a", "b"]]) is EmbeddingFailure.UNREADABLE
    assert _failure([[[1.0], [2.0]]]) is EmbeddingFailure.UNREADABLE


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=16).filter(any))
def test_whatever_is_finite_and_not_zero_has_length_one_afterwards(row):
    (vector,) = unit_vectors([row], count=1, dimension=None)
    assert np.linalg.norm(floats(vector).astype(np.float64)) == pytest.approx(1.0, abs=1e-6)


def test_the_middle_of_vectors_has_length_one_and_leans_to_the_heavier():
    one, other = unit_vectors([[1.0, 0.0], [0.0, 1.0]], count=2, dimension=2)
    np.testing.assert_allclose(floats(mean_vector([one, other], [3, 4])), [0.6, 0.8], atol=1e-7)
    assert mean_vector([one], [5]) == one


def test_vectors_that_cancel_each_other_out_have_no_middle():
    one, opposite = unit_vectors([[1.0, 0.0], [-1.0, 0.0]], count=2, dimension=2)
    with pytest.raises(EmbeddingError) as failed:
        mean_vector([one, opposite], [1, 1])
    assert failed.value.failure is EmbeddingFailure.ZERO_VECTOR
