"""Counting what embedding costs."""

from __future__ import annotations

from collections.abc import Sequence

from durable_memory.ports.embedder import EmbeddingFailure, EmbeddingUsage, counting_calls


class Meter:
    """Counts real calls, and failures whether or not a call was made."""

    def __init__(self) -> None:
        self.usage = EmbeddingUsage()

    def called(self, texts: Sequence[str]) -> None:
        """A call with these inputs goes out."""
        self.usage.calls += 1
        self.usage.inputs += len(texts)
        self.usage.input_bytes += sum(len(text.encode()) for text in texts)
        count = counting_calls.get()
        if count is not None:
            count.calls += 1

    def billed(self, tokens: int) -> None:
        """The provider says what a call has cost."""
        self.usage.input_tokens += tokens

    def failed(self, failure: EmbeddingFailure) -> None:
        self.usage.failures[failure] = self.usage.failures.get(failure, 0) + 1
