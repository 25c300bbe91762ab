"""What traffic writes and asks: sentences of nobody else, which words and meaning tell apart.

A text has a word of its own, by which words alone find it, and says something of its own, by which a model does. It
also has the word that all texts and questions of a run share, so that content that leaks is found, and is nowhere
else: neither reports nor logs of the harness ever hold one of these texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

SHARED_WORD = "tea"
"""Of every text: what it finds is the whole namespace."""

_WHO = (
    *("gardener", "pilot", "violinist", "plumber", "librarian", "surgeon", "baker", "fisherman", "astronomer"),
    *("carpenter", "lawyer", "shepherd", "dentist", "welder", "journalist", "beekeeper", "chemist", "tailor"),
    *("sailor", "miner", "translator", "jockey", "butcher", "sculptor"),
)
_DID = (
    *("repaired", "sold", "painted", "lost", "photographed", "inherited", "measured", "buried", "stole", "cleaned"),
    *("borrowed", "weighed", "burned", "described", "polished", "ordered", "returned", "hid", "copied", "won"),
)
_WHAT = (
    *("a bicycle", "an old map", "the telescope", "seven lemons", "a wooden boat", "the silver coin", "a grand piano"),
    *("the tax report", "a goose", "the church bell", "frozen bread", "a diamond ring", "the garden fence"),
    *("a tractor", "the passport", "three umbrellas", "a snake", "the radio", "a bag of cement", "the wedding dress"),
    *("a microscope", "the elevator", "some cheese", "a broken clock", "the football", "an insurance policy"),
)
_WHERE = (
    *("in Lisbon", "at the harbour", "near the volcano", "in the hospital", "behind the school", "on the ferry"),
    *("in the desert", "at the airport", "under the bridge", "in Helsinki", "beside the lake", "in the cellar"),
    *("at the stadium", "in the museum", "on the mountain", "in the supermarket", "at the prison", "in Nairobi"),
)
_WHEN = (
    *("on Monday", "in winter", "at midnight", "before breakfast", "during the strike", "after the earthquake"),
    *("in 1987", "last summer", "on her birthday", "while it snowed", "at dawn", "during the election"),
    *("in November", "after the concert", "on the holiday", "before the flood"),
)

PIECES = tuple(f"{did} {what}" for did in _DID for what in _WHAT)
"""Each text has one of them, and nothing else that a machine writes has any."""


def word_of(request_id: str) -> str:
    """A word that only the text of this request has. No rule of a language changes its form."""
    digits = hashlib.sha256(f"word {request_id}".encode()).hexdigest()[:10]
    return "q" + digits.translate(str.maketrans("0123456789abcdef", "bcdfghjklmnpqrtv")) + "x"


def text_of(request_id: str, canary: str = "") -> str:
    """What a request writes: always the same."""
    chosen = int.from_bytes(hashlib.sha256(f"text {request_id}".encode()).digest(), "big")
    parts = []
    for words in (_WHO, _DID, _WHAT, _WHERE, _WHEN):
        chosen, place = divmod(chosen, len(words))
        parts.append(words[place])
    return " ".join([word_of(request_id), *filter(None, [canary]), f"{SHARED_WORD}:", "the", *parts])


def digest_of(text: str) -> str:
    """Stands for a text in histories and reports: 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def phrases() -> Collection[str]:
    """What each text ends with, so that a piece of one that leaked is found although its canary was cut off."""
    return [f"{where} {when}" for where in _WHERE for when in _WHEN]
