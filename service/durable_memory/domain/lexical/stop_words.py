"""Words that say nothing about what a query looks for. They leave queries only; documents keep theirs."""

from __future__ import annotations

from typing import Final

_ARTICLES_AND_CONJUNCTIONS: Final = """
    a an the and or but nor so yet if then else than because as while until though although whether
"""
_PREPOSITIONS: Final = """
    of at by for with about against between into through during to from in on onto upon off over under out up down
    within without per via
"""
_PRONOUNS: Final = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves this that these those there here one
    someone anyone everyone something anything everything
"""
_AUXILIARIES: Final = """
    am is are was were be been being have has had having do does did doing done can could will would shall should
    must might ought
"""
_QUESTIONS: Final = """
    what which who whom whose when where why how
"""
_ADVERBS: Final = """
    not no only own same such too very just also ever any some all both each few more most other again once further
"""
_CONTRACTION_PIECES: Final = """
    s t d m ll re ve y o ain aren couldn didn doesn don hadn hasn haven isn mightn mustn needn shan shouldn wasn
    weren won wouldn cannot
"""

STOP_WORDS: Final = frozenset(
    " ".join(
        (
            _ARTICLES_AND_CONJUNCTIONS,
            _PREPOSITIONS,
            _PRONOUNS,
            _AUXILIARIES,
            _QUESTIONS,
            _ADVERBS,
            _CONTRACTION_PIECES,
        )
    ).split()
)
"""English words and pieces of contractions, folded, as the tokeniser cuts them. Without `may`: it is a month."""
