"""What every error of this client has in common. The classes by reason are in `errors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import grpc


class DurableMemoryError(Exception):
    """Anything that this client raises by itself; wrong arguments raise ValueError or TypeError instead."""


class IncompleteStreamError(DurableMemoryError):
    """What was answered is not the whole: a snapshot or an export without its footer or unlike it, a refresh without a
    receipt, a watch with a gap, an answer with another number of outcomes than was asked for. Nothing of it may be
    relied on.
    """


class MemoryServiceError(DurableMemoryError):
    """The service refused or failed a call. A subclass per reason is in `durable_memory_client.errors`.

    `reason`: the name in the contract's ErrorReason without its prefix, or None if the answer did not come from the
    service itself (a lost connection, a proxy). A reason that this version does not know is kept as it came.
    `code`: the gRPC status. `message`: one sentence for a person. `metadata`: every value that the message mentions.
    `method`: the RPC, as `Service.Method`.
    `request_id`: what identifies the call; give it to the same method again, with the same arguments, to learn or
    complete the first outcome. None for calls that change nothing.
    `definite`: True if the call certainly changed nothing. False if it may have: an error of a later attempt says
    nothing about the attempts before it.
    `attempts`: how often the call was sent, by this client and by proxies that say so; 0 if it was not.
    `retry_after`: seconds to wait before another attempt, if the service said so.
    """

    default_reason: ClassVar[str | None] = None

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode,
        reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
        method: str = "",
        request_id: str | None = None,
        definite: bool = False,
        attempts: int = 1,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason if reason is not None else self.default_reason
        self.metadata: Mapping[str, str] = dict(metadata or {})
        self.method = method
        self.request_id = request_id
        self.definite = definite
        self.attempts = attempts
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.reason or self.code.name}: {self.message}"

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.message!r}, code={self.code.name}, reason={self.reason}, "
            f"metadata={dict(self.metadata)!r}, method={self.method!r}, request_id={self.request_id!r}, "
            f"definite={self.definite}, attempts={self.attempts})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are rebuilt from their positional arguments alone; the rest travels as state.
        return (_rebuilt, (type(self), self.message, self.code), self.__dict__)


class MemoryUnavailableError(MemoryServiceError):
    """The service cannot answer now: it is down, starting, overloaded, too slow, or out of reach.

    The one class to catch for "carry on without memory". What the call would have changed may still have happened
    unless `definite` says otherwise.
    """


def _rebuilt(kind: type[MemoryServiceError], message: str, code: grpc.StatusCode) -> MemoryServiceError:
    return kind(message, code=code)
