"""Reading an answer of the embeddings endpoint: nothing in it is taken for granted."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure

_FLOAT_BYTES: Final = 4
_MOST_TOKENS: Final = 2**40


@dataclass(frozen=True, slots=True)
class Answer:
    """`rows` in the order of the inputs, whatever order they came in. `model` as the answer names it, "" if not.

    `tokens` is what the provider says that the inputs were, 0 if it does not.
    """

    rows: list[Sequence[float]]
    model: str
    tokens: int


def read_answer(body: bytes, *, count: int) -> Answer:
    """The answer to a call with `count` inputs.

    Raises: EmbeddingError with UNREADABLE, WRONG_COUNT, WRONG_ORDER, or NOT_FINITE for a null in a vector.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise _unreadable()
    if len(data) != count:
        raise EmbeddingError(EmbeddingFailure.WRONG_COUNT, retryable=True)
    by_index = {item.get("index"): item.get("embedding") for item in data if type(item.get("index")) is int}
    if by_index.keys() != set(range(count)):
        raise EmbeddingError(EmbeddingFailure.WRONG_ORDER, retryable=True)
    model = document.get("model")
    rows = [_row(by_index[index]) for index in range(count)]
    return Answer(rows, model if isinstance(model, str) else "", _tokens(document.get("usage")))


def _tokens(usage: Any) -> int:
    """What is said of the cost is not worth failing for: anything but a count is none."""
    said = usage.get("prompt_tokens", usage.get("total_tokens")) if isinstance(usage, dict) else None
    return said if type(said) is int and 0 < said < _MOST_TOKENS else 0


def _row(embedding: Any) -> Sequence[float]:
    if isinstance(embedding, str):
        try:
            packed = base64.b64decode(embedding, validate=True)
        except ValueError:
            packed = b""
        if not packed or len(packed) % _FLOAT_BYTES:
            raise _unreadable()
        floats: Sequence[float] = np.frombuffer(packed, dtype="<f4")  # type: ignore[assignment]
        return floats
    if not isinstance(embedding, list):
        raise _unreadable()
    kinds = set(map(type, embedding))
    if type(None) in kinds:  # what a NaN is in JSON
        raise EmbeddingError(EmbeddingFailure.NOT_FINITE, retryable=True)
    if not kinds <= {int, float}:
        raise _unreadable()
    return embedding


def _unreadable() -> EmbeddingError:
    return EmbeddingError(EmbeddingFailure.UNREADABLE, retryable=True)
