"""The circuit breaker: a provider that keeps failing is left alone for a while, then tried with a single call.

What many texts at once show is how slow a provider is, not that it is away: one that is given batches too large for its
pace may answer a question in time all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from durable_memory.ports.embedder import EmbeddingError, EmbeddingFailure
from durable_memory.ports.runtime import Clock

_TOO_LATE: Final = frozenset({408, 504})
"""How a gateway answers for a provider that did not answer in time."""


class CircuitBreaker:
    """Opens after `failures` calls in a row have failed; `open_seconds` later one call is let through.

    If that one fails as well the circuit stays open for twice as long, up to `max_open_seconds`. A provider that
    limits the rate, or refuses one input, is well.
    """

    def __init__(
        self, clock: Clock, *, failures: int = 5, open_seconds: float = 10.0, max_open_seconds: float = 30.0
    ) -> None:
        self._clock = clock
        self._allowed = failures
        self._first_open_seconds = open_seconds
        self._max_open_seconds = max_open_seconds
        self._failed = 0
        self._open_seconds = open_seconds
        self._open_until: float | None = None
        self._trying = False
        self._last: EmbeddingError | None = None

    @property
    def is_open(self) -> bool:
        """Whether the last that was heard of the provider is that it fails."""
        return self._open_until is not None

    @contextmanager
    def call(self, *, telling: bool = True) -> Iterator[None]:
        """Around one real call. Raises: EmbeddingError (CIRCUIT_OPEN) instead of letting it begin.

        `telling`: a provider that is well would answer it in time. That another one took too long is no failure, and
        no such call is the one that tries.
        """
        trial = self._admit(telling=telling)
        try:
            yield
        except EmbeddingError as error:
            if _is_too_late(error) and not telling:
                raise  # nothing was learnt
            if _tells_of_illness(error):
                self._last = error.bare()
                self._fail(trial)
            else:
                self._succeed()
            raise
        except BaseException:  # cancelled: nothing was learnt, and the next call may try
            self._trying = self._trying and not trial
            raise
        self._succeed()

    def _admit(self, *, telling: bool) -> bool:
        if self._open_until is None:
            return False
        left = self._open_until - self._clock.monotonic()
        if left > 0 or self._trying or not telling:
            raise EmbeddingError(
                EmbeddingFailure.CIRCUIT_OPEN,
                retryable=True,
                after=self._last,
                retry_after_seconds=left if left > 0 else None,
            )
        self._trying = True
        return True

    def _succeed(self) -> None:
        self._failed = 0
        self._open_seconds = self._first_open_seconds
        self._open_until = None
        self._trying = False

    def _fail(self, trial: bool) -> None:
        if trial:
            self._trying = False
            self._open_seconds = min(2 * self._open_seconds, self._max_open_seconds)
        elif self._open_until is not None:
            return  # began before the circuit opened
        else:
            self._failed += 1
            if self._failed < self._allowed:
                return
        self._open_until = self._clock.monotonic() + self._open_seconds


def _tells_of_illness(error: EmbeddingError) -> bool:
    if error.failure is EmbeddingFailure.REFUSED:
        return not error.about_input
    return error.failure is not EmbeddingFailure.RATE_LIMITED


def _is_too_late(error: EmbeddingError) -> bool:
    return error.failure is EmbeddingFailure.TIMEOUT or error.status in _TOO_LATE
