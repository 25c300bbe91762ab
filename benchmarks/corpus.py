"""Made-up text with the statistics of real text: word frequencies by Zipf's law, from a seed."""

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
