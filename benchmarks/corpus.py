"""Made-up text with the statistics of real text, from a seed.

A word's frequency falls with its rank as 1 / (rank + 10). That is how often words occur in the conversations of LoCoMo
once the stop words are left out, which leave queries anyway: within a factor of two down to rank 1,000, the most
frequent word at 1.3 % (there 1.6 %). With a flatter law frequent words would be rarer and recall faster. Without the
10, which is Zipf's law for all words, every seventh word of a query would be a stop word.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Final

_SYLLABLES: Final = tuple(
    "".join(letters) for letters in itertools.product("bdfgklmnprstvz", "aeiou", ("", "n", "r", "l", "s"))
)
_VOCABULARY_SIZE: Final = 20_000


class Corpus:
    """Texts and queries; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        words: dict[str, None] = {}
        while len(words) < _VOCABULARY_SIZE:
            words["".join(self._random.choices(_SYLLABLES, k=self._random.choice((1, 2, 2, 3))))] = None
        self._words = list(words)
        self._weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(_VOCABULARY_SIZE)))

    def text(self, words: int) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=words))

    def texts(self, count: int, words: int) -> Iterator[str]:
        for _ in range(count):
            yield self.text(words)

    def query(self, about: str, words: int) -> str:
        """Half of its words are out of `about`, the rest is chance."""
        own = self._random.sample(about.split(), words // 2)
        mixed = [*own, *self.text(words - len(own)).split()]
        self._random.shuffle(mixed)
        return " ".join(mixed)
