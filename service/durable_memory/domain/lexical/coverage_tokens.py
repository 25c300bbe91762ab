"""Tokens of `a3s.memory.lexical.word-cjk-bigram.v1`: lower-cased words, CJK runs whole and as bigrams."""

from __future__ import annotations

import re
from typing import Final

from durable_memory.domain.lexical.characters import COVERAGE_CJK, OTHER_ALPHABETIC, character_class

_CJK: Final = character_class(COVERAGE_CJK)
_CJK_RUN_OR_WORD: Final = re.compile(rf"([{_CJK}]+)|((?:[^\W_{_CJK}]|[{character_class(OTHER_ALPHABETIC)}])+)")
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")


def coverage_tokens(text: str) -> frozenset[str]:
    """The distinct tokens of `text`.

    There is no normalisation but lower case, no stemming and no stop words: the profile is another project's, and
    its published results are part of it. A run of CJK ends a word and a word ends a run; a run of one character is
    its own token.
    """
    lowered = text.lower()
    if lowered.isascii():
        return frozenset(_ASCII_WORD.findall(lowered))
    tokens: set[str] = set()
    for run, word in _CJK_RUN_OR_WORD.findall(lowered):
        if word:
            tokens.add(word)
        else:
            tokens.add(run)
            tokens.update(run[start : start + 2] for start in range(len(run) - 1))
    return frozenset(tokens)
