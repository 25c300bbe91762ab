"""The boundary: what a provider answered becomes unit vectors, or an error that says what was wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure, Vector

MAX_DIMENSION: Final = 8_192
"""No embedding model of today makes vectors as long; segments and answers are bounded by it."""


def unit_vectors(rows: Sequence[Sequence[float]] | NDArray[Any], *, count: int, dimension: int | None) -> list[Vector]:
    """One vector for each of `count` rows of `dimension` numbers, in their order, normalised in float64.

    `dimension` None: whatever the rows have, if all have the same.

    Raises: EmbeddingError with WRONG_COUNT, WRONG_DIMENSION, NOT_FINITE or ZERO_VECTOR; UNREADABLE for what is no
    number.
    """
    if len(rows) != count:
        raise EmbeddingError(EmbeddingFailure.WRONG_COUNT, retryable=True)
    if not count:
        return []
    width = len(rows[0]) if dimension is None else dimension
    if not 0 < width <= MAX_DIMENSION or any(len(row) != width for row in rows):
        # The model behind the name is another one, and stays so.
        received = next((len(row) for row in rows if len(row) != width), width)
        raise EmbeddingError(EmbeddingFailure.WRONG_DIMENSION, retryable=False, dimensions=(width, received))
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except OverflowError as error:  # an integer beyond every float
        raise EmbeddingError(EmbeddingFailure.NOT_FINITE, retryable=True) from error
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape != (count, width):
        raise EmbeddingError(EmbeddingFailure.UNREADABLE, retryable=True)
    if not np.isfinite(matrix).all():
        raise EmbeddingError(EmbeddingFailure.NOT_FINITE, retryable=True)
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    if not largest.all():
        raise EmbeddingError(EmbeddingFailure.ZERO_VECTOR, retryable=True)
    # Scaled first, so that squares of very large and very small numbers neither overflow nor vanish.
    matrix = matrix / largest
    matrix /= np.sqrt(np.square(matrix).sum(axis=1, keepdims=True))
    return [row.tobytes() for row in matrix.astype("<f4")]


def mean_vector(vectors: Sequence[Vector], weights: Sequence[float]) -> Vector:
    """The unit vector in the middle of others, each counted by its weight.

    Raises: EmbeddingError (ZERO_VECTOR) where they cancel each other out.
    """
    if len(vectors) == 1:
        return vectors[0]
    matrix = np.stack([np.frombuffer(vector, dtype="<f4") for vector in vectors]).astype(np.float64)
    mean = (matrix * np.asarray(weights, dtype=np.float64)[:, None]).sum(axis=0)
    (vector,) = unit_vectors([mean], count=1, dimension=None)
    return vector
