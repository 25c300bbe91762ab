"""Embedding providers.

Promises that every adapter keeps: vectors come back in the order of the texts, one each, of the identity's dimension,
finite, non-zero and L2-normalised, or the call fails as a whole. Nothing is skipped, padded or replaced by zeros. Texts
go to the configured provider and nowhere else, and into no log or error. Every call has a deadline of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from durable_memory.domain.semantic.generation import Generation

Vector = bytes
"""`dimension` little-endian float32, L2-normalised."""


class EmbeddingFailure(StrEnum):
    """Why a provider gave no usable vectors; a closed list, so that it can be counted and shown."""

    UNREACHABLE = "UNREACHABLE"
    """No connection, or an answer that says the provider is not able to (408, 425, 5xx)."""
    TIMEOUT = "TIMEOUT"
    RATE_LIMITED = "RATE_LIMITED"
    REFUSED = "REFUSED"
    """The provider answered that it will not: credential, model name, content."""
    WRONG_COUNT = "WRONG_COUNT"
    WRONG_ORDER = "WRONG_ORDER"
    WRONG_DIMENSION = "WRONG_DIMENSION"
    WRONG_MODEL = "WRONG_MODEL"
    """The answer names another model than the one that was probed: its vectors would not compare."""
    NOT_FINITE = "NOT_FINITE"
    ZERO_VECTOR = "ZERO_VECTOR"
    UNREADABLE = "UNREADABLE"
    CIRCUIT_OPEN = "CIRCUIT_OPEN"


_ABOUT_THE_INPUT: Final = frozenset({None, 400, 413, 422})
"""How a provider answers what it will not embed, whoever asks; `None`: it was not even sent."""


class EmbeddingError(Exception):
    """A call that gave no vectors. `retryable`: another attempt later may do.

    `retry_after_seconds`: how long the provider asked to be left alone, if it did.
    """

    def __init__(
        self,
        failure: EmbeddingFailure,
        *,
        retryable: bool,
        status: int | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(failure.value if status is None else f"{failure.value} ({status})")
        self.failure = failure
        self.retryable = retryable
        self.status = status
        self.retry_after_seconds = retry_after_seconds

    @property
    def about_input(self) -> bool:
        """Whether it is a text of the call that is refused, and the others alone may be taken."""
        return self.failure is EmbeddingFailure.REFUSED and self.status in _ABOUT_THE_INPUT


@dataclass(slots=True)
class CallCount:
    """Provider calls on somebody's behalf, retries included."""

    calls: int = 0


counting_calls: Final[ContextVar[CallCount | None]] = ContextVar("counting_calls", default=None)
"""Adapters count here what the calls of the current task cost, whatever else the process asks the provider for."""


@dataclass(slots=True)
class EmbeddingUsage:
    """What calls have cost since the start of the process."""

    calls: int = 0
    inputs: int = 0
    input_bytes: int = 0
    failures: dict[EmbeddingFailure, int] = field(default_factory=dict)
    circuit_open: bool = False
    """Whether the provider has failed so often that it is left alone, and has not answered since."""


class Embedder(Protocol):
    """One model of one provider."""

    @property
    def configuration_digest(self) -> str:
        """Of all that the configuration says of what is made, and by whom: 64 hexadecimal digits, known before `open`.

        Another provider, address, model or form of the texts is another one; credentials and bounds of calls are not.
        """
        ...

    @property
    def usage(self) -> EmbeddingUsage:
        """Counts of real provider calls, retries included."""
        ...

    async def open(self) -> Generation:
        """Probe the provider and say what it makes: the served dimension is measured, never assumed.

        May be called again after a failure. Raises: EmbeddingError.
        """
        ...

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of what is to be found. Any number of texts; the adapter cuts batches.

        Raises: EmbeddingError.
        """
        ...

    async def embed_query(self, text: str) -> Vector:
        """The vector of a question. Raises: EmbeddingError."""
        ...

    async def close(self) -> None:
        """Let go of connections and models. Idempotent."""
        ...
