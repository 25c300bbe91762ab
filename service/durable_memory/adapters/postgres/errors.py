"""What the driver and the server raise, as the domain's errors. Messages name no host, user or statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg

from durable_memory.adapters.postgres.tls import tls_problem
from durable_memory.domain.errors import DomainError, Reason, dependency_unavailable, not_serving

LOST: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # No host is the primary; or the server said farewell between two statements, which the driver does not expect.
    asyncpg.InternalClientError,
)
"""The connection is gone, or cannot be made. Whether a statement under way was executed cannot be told from these."""

CONTENDED: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
"""The server rolled the transaction back in favour of another; the same one may pass the next time."""

_UNUSABLE: Final = (
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,
)
_DAMAGED: Final = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError)
_OTHER_SCHEMA: Final = (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError, asyncpg.InvalidSchemaNameError)


def is_lost(error: BaseException) -> bool:
    """Whether the same call could pass on another connection, because this one is gone."""
    if _is_misuse(error) or isinstance(error, asyncpg.QueryCanceledError | TimeoutError):
        return False
    return isinstance(error, LOST)


def is_away(error: BaseException) -> bool:
    """Whether a connection that failed so says that the database is away: not that a URL or a schema is wrong."""
    if isinstance(error, DomainError):
        return error.reason is Reason.DEPENDENCY_UNAVAILABLE
    return isinstance(error, (*LOST, *_UNUSABLE)) and not isinstance(error, asyncpg.ClientConfigurationError)


def translated(error: Exception) -> Exception:
    """The domain error for what was raised before a commit was sent; a programming error stays what it is."""
    if isinstance(error, asyncpg.LockNotAvailableError):
        return overloaded("another call holds what this one needs")
    if isinstance(error, asyncpg.QueryCanceledError):
        return dependency_unavailable("the database did not answer in time")
    if isinstance(error, CONTENDED):
        return overloaded("too many calls change the same things at once")
    if isinstance(error, _DAMAGED):
        return DomainError(Reason.DATA_CORRUPTED, "the database reports damaged data", what="database")
    if isinstance(error, _OTHER_SCHEMA):
        return not_serving("schema", "the database does not have the schema that this version needs")
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return DomainError(
            Reason.INTERNAL, "the decision breaks an invariant of the store", constraint=error.constraint_name
        )
    if _is_misuse(error):
        return error
    if (problem := tls_problem(error) or tls_problem(error.__cause__)) is not None:
        return dependency_unavailable(problem)
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        return dependency_unavailable("the database refuses the user: its server's log says why")
    if isinstance(error, (*LOST, *_UNUSABLE)):
        return dependency_unavailable("the database cannot be used now")
    return error


def _is_misuse(error: BaseException) -> bool:
    """Whether the driver was given what does not fit. A certificate that does not is a ValueError too, and none."""
    return isinstance(error, ValueError) and not isinstance(error, OSError)


def problem_of(error: BaseException) -> str:
    """Why a connection could not be made, for the log."""
    told = translated(error) if isinstance(error, Exception) else error
    return told.message if isinstance(told, DomainError) else type(told).__name__


@contextmanager
def domain_errors() -> Iterator[None]:
    """Raise what happens inside as a domain error."""
    try:
        yield
    except DomainError:
        raise
    except (asyncpg.PostgresError, *LOST) as error:
        raise translated(error) from error


def overloaded(problem: str) -> DomainError:
    """OVERLOADED: nothing was written; the same call may pass a little later."""
    return DomainError(Reason.OVERLOADED, problem, dependency="store")
