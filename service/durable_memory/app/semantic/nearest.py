"""The records nearest to a question, by dot products that come out the same however many questions were multiplied.

A float32 matrix product has other last digits in company than alone. So it only says which records can be among the
best; these are scored again in float64, summed in one fixed order, and ranked by that.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from durable_memory.app.semantic.products import rounding_error
from durable_memory.app.semantic.vector_view import VectorView

_ROWS_AT_ONCE: Final = 1_024

_GROUP: Final = 16
"""Records whose highest score stands for all of them. Any number is right."""

_INLINE_NUMBERS: Final = 400_000
"""Up to which records are scored again within three milliseconds: a hundred of them take a tenth of that."""


class Nearest(NamedTuple):
    """`numbers` intp and `similarities` float64, both [found], the most similar first."""

    numbers: NDArray[np.intp]
    similarities: NDArray[np.float64]


def nearest(
    vectors: VectorView,
    question: NDArray[np.float32],
    scores: NDArray[np.float32],
    admitted: NDArray[np.bool_],
    count: int,
    least: float,
) -> Nearest:
    """The `count` best of the `admitted` records with at least the similarity `least`, and all that equal the last.

    Args:
        scores: float32 [records], exact to within `rounding_error`.
        admitted: bool [records].
        count: 1 or more.
    """
    return _best(vectors, question, _contenders(question, scores, admitted, count, least), count, least)


async def nearest_of_any(
    vectors: VectorView,
    question: NDArray[np.float32],
    scores: NDArray[np.float32],
    admitted: NDArray[np.bool_],
    count: int,
    least: float,
) -> Nearest:
    """As `nearest`; by another thread where very many records are about as near, as those of one and the same text."""
    contenders = _contenders(question, scores, admitted, count, least)
    if len(contenders) * len(question) <= _INLINE_NUMBERS:
        return _best(vectors, question, contenders, count, least)
    return await asyncio.to_thread(_best, vectors, question, contenders, count, least)


def _contenders(
    question: NDArray[np.float32],
    scores: NDArray[np.float32],
    admitted: NDArray[np.bool_],
    count: int,
    least: float,
) -> NDArray[np.intp]:
    """The numbers of those that can be among the best, ascending."""
    error = rounding_error(len(question))
    if least > -1.0:
        admitted = admitted & (scores >= least - error)
    # Most of a large partition is ruled out by what is cheaper to find than the score of rank `count`.
    sure = _reached_by(np.where(admitted, scores, -np.inf), count)
    numbers = np.flatnonzero(admitted & (scores >= sure - 2 * error))
    if len(numbers) > count:
        reached = scores[numbers]
        # The best by true value are within an error of theirs, and so is the last of the best by `scores`.
        last = float(np.partition(reached, len(reached) - count)[len(reached) - count])
        numbers = numbers[reached >= last - 2 * error]
    return numbers


def _reached_by(scores: NDArray[np.float32], count: int) -> float:
    """A score that at least `count` of them reach: each of so many groups has one that does."""
    groups = len(scores) // _GROUP
    if groups < count:
        return -np.inf
    highest = scores[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
    return float(np.partition(highest, groups - count)[groups - count])


def _best(
    vectors: VectorView, question: NDArray[np.float32], numbers: NDArray[np.intp], count: int, least: float
) -> Nearest:
    similarities = exact_similarities(vectors, question, numbers)
    passing = similarities >= least
    numbers, similarities = numbers[passing], similarities[passing]
    order = np.argsort(-similarities, kind="stable")
    numbers, similarities = numbers[order], similarities[order]
    if len(numbers) > count:
        kept = int(np.searchsorted(-similarities, -similarities[count - 1], side="right"))
        numbers, similarities = numbers[:kept], similarities[:kept]
    return Nearest(numbers, similarities)


def exact_similarities(
    vectors: VectorView, question: NDArray[np.float32], numbers: NDArray[np.intp]
) -> NDArray[np.float64]:
    """float64 [numbers]: the dot products with those records, `numbers` ascending."""
    rows = np.empty((len(numbers), len(question)), dtype=np.float32)
    start = 0
    for block in vectors.blocks:
        first, last = numbers.searchsorted((start, start + len(block.records))).tolist()
        if first < last:
            rows[first:last] = block.matrix[numbers[first:last] - start]
        start += len(block.records)
    factors = question.astype(np.float64)[:, np.newaxis]
    parts = [
        _summed(np.multiply(rows[begin : begin + _ROWS_AT_ONCE].T, factors, order="C"))
        for begin in range(0, len(rows), _ROWS_AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.float64)


def _summed(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of each column, by halves: additions of rows, whose order no library, machine or company changes.

    `products` is overwritten; with records side by side, each addition is one of numbers that lie side by side.
    Products of float32 are exact in float64, so that this order is all there is to fix.
    """
    height = len(products)
    while height > 1:
        half = (height + 1) // 2
        products[: height - half] += products[half:height]
        height = half
    total: NDArray[np.float64] = products[0]
    return total
