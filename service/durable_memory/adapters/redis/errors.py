"""What the driver and the server raise, as the domain's errors. Messages name no host, key or command."""

from __future__ import annotations

import ssl
from typing import Final

from redis import exceptions

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.tls_failure import tls_failure

LOST: Final = (exceptions.ConnectionError, exceptions.TimeoutError, TimeoutError, OSError)
"""The connection is gone, cannot be made or stays silent. Whether a call was executed cannot be told from these."""

_REFUSED: Final = (
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
    exceptions.BusyLoadingError,
    exceptions.NoPermissionError,
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    exceptions.TryAgainError,
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.AskError,  # also MOVED: another server of its cluster has the key
)
"""The server answered that it will not: what was asked for did not happen."""

_PASSING: Final = (exceptions.BusyLoadingError, exceptions.TryAgainError, exceptions.ClusterDownError)

_REFUSED_CODES: Final = ("NOREPLICAS", "MISCONF", "BUSY", "UNKILLABLE", "NOAUTH", "DENIED")
"""Words that open an answer and have no exception of their own in the driver."""


def is_unanswered(error: Exception) -> bool:
    """Whether the call may have been executed all the same."""
    return isinstance(error, LOST) and not isinstance(error, (exceptions.MaxConnectionsError, *_REFUSED))


def is_answer(error: Exception) -> bool:
    """Whether the server itself has spoken. A call that got no connection was not made, and tells nothing about it."""
    return not isinstance(error, LOST) or isinstance(error, _REFUSED)


def is_silence(error: Exception) -> bool:
    """Whether all the time of the attempt has passed without a word."""
    return isinstance(error, TimeoutError | exceptions.TimeoutError)


def is_passing(error: Exception) -> bool:
    """Whether another attempt a moment later is worth making."""
    return is_unanswered(error) or isinstance(error, _PASSING)


def translated(error: Exception) -> DomainError:
    """The domain error for what a call raised after its last attempt."""
    if isinstance(error, exceptions.OutOfMemoryError):
        return index_unavailable("the index server has no memory left")
    if isinstance(error, exceptions.ReadOnlyError):
        return index_unavailable("the index server is a replica")
    if isinstance(error, _REFUSED) or _code(error) in _REFUSED_CODES:
        return index_unavailable("the index server refuses calls now")
    if isinstance(error, exceptions.MaxConnectionsError):
        return index_unavailable("all connections to the index server are in use")
    if (problem := tls_problem(error)) is not None:
        return index_unavailable(f"the index server cannot be reached: {problem}")
    if isinstance(error, LOST):
        return index_unavailable("the index server cannot be reached, or did not answer in time")
    return DomainError(Reason.INTERNAL, "the index server refused a command")


def tls_problem(error: BaseException) -> str | None:
    """Why there is no TLS, without the host's name; None if it is something else."""
    # The driver wraps what it meets.
    met = error if isinstance(error, ssl.SSLError) else error.__cause__ or error.__context__
    return tls_failure(met, "its")


def _code(error: Exception) -> str:
    return str(error).partition(" ")[0]


def index_unavailable(problem: str) -> DomainError:
    """DEPENDENCY_UNAVAILABLE of the index."""
    return DomainError(Reason.DEPENDENCY_UNAVAILABLE, problem, dependency="index")


def not_answering() -> DomainError:
    """DEPENDENCY_UNAVAILABLE of an index that is left alone for now; the call was not made."""
    return index_unavailable("the index server has failed to answer several times, and is left alone until it does")


def outcome_unknown() -> DomainError:
    """OUTCOME_UNKNOWN: the call may have happened; repeating it with the same nonce settles it."""
    return DomainError(Reason.OUTCOME_UNKNOWN, "the index server did not say whether it made the change")
