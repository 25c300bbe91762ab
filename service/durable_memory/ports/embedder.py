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


class ConnectionTrouble(StrEnum):
    """What kept a provider from being reached; a closed list."""

    NAME_NOT_RESOLVED = "NAME_NOT_RESOLVED"
    CONNECTION_REFUSED = "CONNECTION_REFUSED"
    TLS_FAILED = "TLS_FAILED"
    """The certificate is not trusted or of another host, or no TLS is spoken there."""
    HOST_UNREACHABLE = "HOST_UNREACHABLE"
    CONNECTION_LOST = "CONNECTION_LOST"
    """It ended before an answer came, or did not come about for another reason."""


_ABOUT_THE_INPUT: Final = frozenset({None, 400, 413, 422})
"""How a provider answers what it will not embed, whoever asks; `None`: it was not even sent."""


class EmbeddingError(Exception):
    """A call that gave no vectors. `retryable`: another attempt later may do.

    `status` is that of an answer over HTTP, `trouble` why there was none. `dimensions`: (expected, received) of vectors
    that differ. `after`: what a provider that is left alone had failed with. `retry_after_seconds`: how long the
    provider asked to be left alone, if it did. `endpoint` is the provider's host and port, where it has one: for the
    log alone, because callers have no business there.
    """

    def __init__(
        self,
        failure: EmbeddingFailure,
        *,
        retryable: bool,
        status: int | None = None,
        trouble: ConnectionTrouble | None = None,
        dimensions: tuple[int, int] | None = None,
        after: EmbeddingError | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.failure = failure
        self.retryable = retryable
        self.status = status
        self.trouble = trouble
        self.dimensions = dimensions
        self.after = after
        self.retry_after_seconds = retry_after_seconds
        self.endpoint = ""
        super().__init__(self.words)

    def bare(self) -> EmbeddingError:
        """The same without its traceback, whose frames hold texts: for whoever keeps it."""
        bare = EmbeddingError(
            self.failure, retryable=self.retryable, status=self.status, trouble=self.trouble, dimensions=self.dimensions
        )
        bare.endpoint = self.endpoint
        return bare

    @property
    def facts(self) -> dict[str, str]:
        """What may be told to everybody, by name: out of closed lists, and numbers."""
        facts = {"failure": self.failure.value}
        told = self
        if self.after is not None:
            told = self.after
            facts["after"] = told.failure.value
        if told.status is not None:
            facts["status"] = str(told.status)
        if told.trouble is not None:
            facts["trouble"] = told.trouble.value
        if told.dimensions is not None:
            facts["expected_dimension"], facts["received_dimension"] = map(str, told.dimensions)
        return facts

    @property
    def for_log(self) -> dict[str, str]:
        """`facts`, and which endpoint it was."""
        return {**self.facts, "endpoint": self.endpoint} if self.endpoint else self.facts

    @property
    def words(self) -> str:
        """`facts` as one phrase, for example `REFUSED (status 401)`."""
        failure, *rest = self.facts.items()
        details = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in rest)
        return f"{failure[1]} ({details})" if details else failure[1]

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
    """What calls have cost since the start of the process. `input_tokens`: as the provider counts, if it does."""

    calls: int = 0
    inputs: int = 0
    input_bytes: int = 0
    input_tokens: int = 0
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
