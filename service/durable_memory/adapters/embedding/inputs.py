"""What goes in: the text that a model is given for a passage or a question, and batches of bounded size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from durable_memory.domain.semantic.embedded_text import EMBEDDED_TEXT_MAX_BYTES, cut
from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure

_PREFIX_DIGEST_HEX_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class InputForm:
    """How a text is made fit for the model: stripped, cut at a character, then the model's own prefix before it."""

    passage_prefix: str = ""
    query_prefix: str = ""
    passage_max_bytes: int = EMBEDDED_TEXT_MAX_BYTES
    query_max_bytes: int = EMBEDDED_TEXT_MAX_BYTES

    @property
    def label(self) -> str:
        """Part of a generation's revision: another form makes vectors that do not compare with these."""
        parts = [f"passage={self.passage_max_bytes}", f"query={self.query_max_bytes}"]
        if self.passage_prefix or self.query_prefix:
            prefixes = f"{len(self.passage_prefix)}:{self.passage_prefix}{self.query_prefix}"
            digest = hashlib.sha256(prefixes.encode()).hexdigest()
            parts.append(f"prefixes={digest[:_PREFIX_DIGEST_HEX_DIGITS]}")
        return ";".join(parts)

    def passage(self, text: str) -> str:
        """Raises: EmbeddingError (REFUSED), as `query`."""
        return self.passage_prefix + _fit(text, self.passage_max_bytes)

    def query(self, text: str) -> str:
        """Raises: EmbeddingError (REFUSED): blank, with a NUL, or no Unicode text; no model sees it."""
        return self.query_prefix + _fit(text, self.query_max_bytes)


def _fit(text: str, max_bytes: int) -> str:
    # A NUL ends a text silently in models written in C, and the vector of nothing is as good as any other.
    try:
        fitted = cut(text.strip(), max_bytes)
    except UnicodeEncodeError:
        fitted = ""
    if not fitted or "\0" in fitted:
        raise EmbeddingError(EmbeddingFailure.REFUSED, retryable=False)
    return fitted


def windows(text: str, max_bytes: int) -> list[str]:
    """`text` in pieces of at most `max_bytes` of UTF-8 (4 or more), whole characters; none is nothing but space."""
    pieces = []
    while text:
        piece = cut(text, max_bytes)
        text = text[len(piece) :]
        if piece.strip():
            pieces.append(piece)
    return pieces


def batches(texts: Sequence[str], *, max_texts: int, max_bytes: int) -> Iterator[Sequence[str]]:
    """`texts` in order, in runs of at most `max_texts` and `max_bytes` of UTF-8; a longer text is a run of its own."""
    start = size = 0
    for index, text in enumerate(texts):
        nbytes = len(text.encode())
        if index > start and (index - start == max_texts or size + nbytes > max_bytes):
            yield texts[start:index]
            start, size = index, 0
        size += nbytes
    if start < len(texts):
        yield texts[start:]
