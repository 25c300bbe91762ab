"""Who calls: the hook for credentials, and the identity of a call while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Final, Protocol

from durable_memory.domain.caller import Caller, Role
from durable_memory.domain.errors import DomainError, Reason

Metadata = Iterable[tuple[str, str | bytes]]
"""The request's headers, in order."""

_SCHEME: Final = "bearer"
_CALLER: Final[ContextVar[Caller]] = ContextVar("durable_memory_caller")


class Authenticator(Protocol):
    """Turns a call's headers into a caller. Implementations are free of I/O or answer from memory."""

    def authenticate(self, metadata: Metadata) -> Caller:
        """Raises: CREDENTIALS_INVALID if there is no credential, or one that is not valid; it never says which."""
        ...


class TokenVerifier(Protocol):
    """Who owns a bearer token."""

    def verify(self, token: str) -> Caller | None:
        """The caller, or None for a token that nobody has."""
        ...


class DevelopmentAuthenticator:
    """Everybody may do everything. For a server that only its own machine can reach."""

    _CALLER: Final = Caller(name="development", roles=frozenset(Role))

    def authenticate(self, metadata: Metadata) -> Caller:
        return self._CALLER


class BearerAuthenticator:
    """Expects exactly one header `authorization: Bearer TOKEN`."""

    def __init__(self, tokens: TokenVerifier) -> None:
        self._tokens = tokens

    def authenticate(self, metadata: Metadata) -> Caller:
        values = [value for name, value in metadata if name == "authorization"]
        if len(values) == 1 and isinstance(values[0], str):
            scheme, _, token = values[0].partition(" ")
            if scheme.lower() == _SCHEME and token and (caller := self._tokens.verify(token)) is not None:
                return caller
        raise DomainError(Reason.CREDENTIALS_INVALID, "the call carries no valid credential")


def current_caller() -> Caller:
    """The authenticated caller of the call that is being served."""
    return _CALLER.get()


def set_caller(caller: Caller) -> None:
    """Make `caller` the current one, for the rest of the task that serves the call."""
    _CALLER.set(caller)
