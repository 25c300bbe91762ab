"""The arithmetic of `dm.lexical.bm25f.v1`: constants, and the expressions that every implementation evaluates.

A score must not depend on who computes it. So counts and lengths are integers until the expressions below, each is
evaluated in float64 in the order in which it is written, and sums run over fields in order and over terms in sorted
order. NumPy's elementwise float64 arithmetic gives the same bits.
"""

from __future__ import annotations

import math
from typing import Final

OWN_WEIGHT: Final = 1.0
SURROUNDING_WEIGHTS: Final = (0.5, 0.25, 0.125, 0.0625)
FIELD_WEIGHTS: Final = (OWN_WEIGHT, *SURROUNDING_WEIGHTS)
FIELD_COUNT: Final = len(FIELD_WEIGHTS)

LENGTH_SLOPE: Final = 0.4
"""How much of a field's weight depends on its length (b)."""

LENGTH_BASE: Final = 1.0 - LENGTH_SLOPE

SATURATION: Final = 0.9
"""k1: the weighted frequency at which a term has half of what it can give."""

SATURATION_SCALE: Final = SATURATION + 1.0


def inverse_document_frequency(documents: int, frequency: int) -> float:
    """ln(1 + (N - n + .5) / (n + .5)); positive for every 0 <= n <= N."""
    return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def weighted_frequency(field: int, count: int, length: int, average_length: float) -> float:
    """What `count` occurrences in a field of `length` tokens add to a term's weighted frequency."""
    return FIELD_WEIGHTS[field] * count / (LENGTH_BASE + LENGTH_SLOPE * length / average_length)


def term_score(idf: float, frequency: float) -> float:
    """What one query term adds to the score of a document in which it has this weighted frequency."""
    return idf * frequency * SATURATION_SCALE / (frequency + SATURATION)
