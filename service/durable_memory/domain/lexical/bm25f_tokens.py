"""Tokens of `dm.lexical.bm25f.v1`: folded words, stemmed where they are ASCII, and bigrams of CJK runs."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

import Stemmer

from durable_memory.domain.lexical.characters import CJK, IGNORABLE, MARKS, character_class
from durable_memory.domain.lexical.stop_words import STOP_WORDS

_CJK: Final = character_class(CJK)
_CJK_RUN_OR_WORD: Final = re.compile(rf"([{_CJK}]+)|([^\W_{_CJK}](?:[^\W_{_CJK}]|[{character_class(MARKS)}])*)")
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
_IGNORABLE: Final = re.compile(f"[{character_class(IGNORABLE)}]+")
_MEMOISED_WORD_LENGTH: Final = 24

_english: Final = Stemmer.Stemmer("english", 0)  # a cache of 0 entries: `_memoised_stem` is the one cache


@lru_cache(maxsize=65_536)
def _memoised_stem(word: str) -> str:
    return str(_english.stemWord(word))


def stem(word: str) -> str:
    """The Snowball English stem of a folded word of ASCII letters; any other word as it is.

    A word with a digit is a name (`k8s`, `gpt4s`), not a form of another word.
    """
    if not (word.isascii() and word.isalpha()):
        return word
    if len(word) > _MEMOISED_WORD_LENGTH:  # hostile text must not fill the memo with what never comes again
        return str(_english.stemWord(word))
    return _memoised_stem(word)


def fold(text: str) -> str:
    """`text` in NFKC and case-folded, without what nobody sees in a word."""
    if text.isascii():
        return text.lower()
    seen = _IGNORABLE.sub("", unicodedata.normalize("NFKC", text).casefold())
    # Folding and leaving out can bring together what NFKC composes.
    return unicodedata.normalize("NFKC", seen)


def _run_tokens(run: str) -> list[str]:
    """The overlapping bigrams of a run, and the run itself unless that is its only bigram."""
    bigrams = [run[start : start + 2] for start in range(len(run) - 1)]
    return bigrams if len(run) == 2 else [*bigrams, run]


def bm25f_tokens(text: str) -> list[str]:
    """The tokens of a field, in order, repeated as often as they occur. Stop words stay: they are the query's."""
    folded = fold(text)
    if folded.isascii():
        return [stem(word) for word in _ASCII_WORD.findall(folded)]
    tokens: list[str] = []
    for run, word in _CJK_RUN_OR_WORD.findall(folded):
        if word:
            tokens.append(stem(word))
        else:
            tokens.extend(_run_tokens(run))
    return tokens


def bm25f_query_tokens(text: str) -> frozenset[str]:
    """The distinct tokens of a query without its stop words, or with them where nothing else is left."""
    folded = fold(text)
    if folded.isascii():
        words = _ASCII_WORD.findall(folded)
        return frozenset([stem(word) for word in words if word not in STOP_WORDS] or map(stem, words))
    every: set[str] = set()
    telling: set[str] = set()
    for run, word in _CJK_RUN_OR_WORD.findall(folded):
        if run:
            telling.update(_run_tokens(run))
        else:
            every.add(stem(word))
            if word not in STOP_WORDS:
                telling.add(stem(word))
    return frozenset(telling or every)
