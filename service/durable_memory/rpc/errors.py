"""The error table: the one place where a reason becomes a gRPC status.

Server, tests and documentation read it; `durablememory.v1.ErrorReason` says the same in words, and a test keeps the
two together. *Definite* speaks of one attempt: whether the change certainly did not happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import grpc
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc import StatusCode

from durable_memory.domain.errors import DomainError, Reason

DOMAIN: Final = "durablememory.dev"
REASON_PREFIX: Final = "ERROR_REASON_"
DETAILS_KEY: Final = "grpc-status-details-bin"

_CODES: Final[Mapping[StatusCode, int]] = {
    code: code_pb2.Code.Value("OK" if code is StatusCode.OK else code.name) for code in StatusCode
}

# Peers refuse more than 8 KiB of headers, and a status travels in them twice: as text and in its details.
_MESSAGE_MAX_CHARACTERS: Final = 320
_METADATA_MAX_CHARACTERS: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """What a reason means on the wire.

    `definite`: True, the change did not happen; False, it may have; None, there was nothing to change.
    `retry_after_ms`: how long clients wait before they repeat the call by themselves; None, no RetryInfo is sent.
    """

    status: StatusCode
    definite: bool | None
    retry_after_ms: int | None = None

    @property
    def retryable(self) -> bool:
        """Whether a client repeats the call by itself, with the same request id."""
        return self.retry_after_ms is not None or self.status is StatusCode.UNAVAILABLE


def _row(status: StatusCode, definite: bool | None = True, retry_after_ms: int | None = None) -> ErrorRow:
    return ErrorRow(status=status, definite=definite, retry_after_ms=retry_after_ms)


ERROR_TABLE: Final[Mapping[Reason, ErrorRow]] = MappingProxyType(
    {
        Reason.INVALID_FIELD: _row(StatusCode.INVALID_ARGUMENT),
        Reason.INVALID_PAGE_TOKEN: _row(StatusCode.INVALID_ARGUMENT),
        Reason.LIMIT_EXCEEDED: _row(StatusCode.INVALID_ARGUMENT),
        Reason.DIMENSION_MISMATCH: _row(StatusCode.INVALID_ARGUMENT),
        Reason.CREDENTIALS_INVALID: _row(StatusCode.UNAUTHENTICATED),
        Reason.PERMISSION_DENIED: _row(StatusCode.PERMISSION_DENIED),
        Reason.NODE_NOT_FOUND: _row(StatusCode.NOT_FOUND),
        Reason.SESSION_NOT_FOUND: _row(StatusCode.NOT_FOUND),
        Reason.REVISION_NOT_FOUND: _row(StatusCode.NOT_FOUND),
        Reason.RUN_NOT_FOUND: _row(StatusCode.NOT_FOUND),
        Reason.CONTENT_ERASED: _row(StatusCode.NOT_FOUND, definite=None),
        Reason.NODE_ALREADY_EXISTS: _row(StatusCode.ALREADY_EXISTS),
        Reason.REVISION_CONFLICT: _row(StatusCode.ABORTED),
        Reason.REQUEST_IN_PROGRESS: _row(StatusCode.ABORTED, definite=False, retry_after_ms=100),
        Reason.RUN_IDENTITY_CONFLICT: _row(StatusCode.ABORTED),
        Reason.INDEX_REVISION_CONFLICT: _row(StatusCode.ABORTED),
        Reason.LEASE_HELD: _row(StatusCode.ABORTED),
        Reason.LEASE_FENCED: _row(StatusCode.ABORTED),
        Reason.SOURCE_DRIFT: _row(StatusCode.ABORTED),
        Reason.SESSION_CLOSED: _row(StatusCode.FAILED_PRECONDITION),
        Reason.RUN_ENDED: _row(StatusCode.FAILED_PRECONDITION),
        Reason.NODE_FROZEN: _row(StatusCode.FAILED_PRECONDITION),
        Reason.CHANGE_SET_EMPTY: _row(StatusCode.FAILED_PRECONDITION),
        Reason.EVENT_ID_REUSED: _row(StatusCode.FAILED_PRECONDITION),
        Reason.NAMESPACE_TOO_LARGE: _row(StatusCode.FAILED_PRECONDITION),
        Reason.IDEMPOTENCY_KEY_REUSED: _row(StatusCode.FAILED_PRECONDITION),
        Reason.EVIDENCE_REQUIRED: _row(StatusCode.FAILED_PRECONDITION),
        Reason.INVALID_TRANSITION: _row(StatusCode.FAILED_PRECONDITION),
        Reason.RELATION_INVALID: _row(StatusCode.FAILED_PRECONDITION),
        Reason.BINDING_DRIFT: _row(StatusCode.FAILED_PRECONDITION),
        Reason.CONSISTENCY_UNSUPPORTED: _row(StatusCode.FAILED_PRECONDITION),
        Reason.HISTORY_CHANGED: _row(StatusCode.FAILED_PRECONDITION),
        Reason.SEMANTIC_UNAVAILABLE: _row(StatusCode.FAILED_PRECONDITION, definite=None),
        Reason.HISTORY_COMPACTED: _row(StatusCode.OUT_OF_RANGE, definite=None),
        Reason.QUOTA_EXCEEDED: _row(StatusCode.RESOURCE_EXHAUSTED),
        Reason.RATE_LIMITED: _row(StatusCode.RESOURCE_EXHAUSTED, retry_after_ms=250),
        Reason.OVERLOADED: _row(StatusCode.RESOURCE_EXHAUSTED, retry_after_ms=250),
        Reason.SNAPSHOT_TOO_LARGE: _row(StatusCode.RESOURCE_EXHAUSTED),
        Reason.NOT_SERVING: _row(StatusCode.UNAVAILABLE),
        Reason.DEPENDENCY_UNAVAILABLE: _row(StatusCode.UNAVAILABLE),
        Reason.OUTCOME_UNKNOWN: _row(StatusCode.UNAVAILABLE, definite=False),
        Reason.DEADLINE_EXCEEDED: _row(StatusCode.DEADLINE_EXCEEDED, definite=False),
        Reason.CANCELLED: _row(StatusCode.CANCELLED, definite=False),
        Reason.DATA_CORRUPTED: _row(StatusCode.DATA_LOSS, definite=None),
        Reason.INTERNAL: _row(StatusCode.INTERNAL, definite=False),
    }
)

_SEMANTIC_OUTAGE: Final = _row(StatusCode.UNAVAILABLE, definite=None)
_NOT_CONFIGURED: Final = "SEMANTIC_NOT_CONFIGURED"
_NO_GENERATION: Final = frozenset({_NOT_CONFIGURED, "GENERATION_NOT_SERVED"})


def row_of(error: DomainError) -> ErrorRow:
    """The row of an error: its reason's, but for SEMANTIC_UNAVAILABLE, whose cause decides.

    A session without a generation of this server can never be answered semantically; one with it may be, later.
    """
    cause = error.metadata.get("cause", _NOT_CONFIGURED)
    if error.reason is Reason.SEMANTIC_UNAVAILABLE and cause not in _NO_GENERATION:
        return _SEMANTIC_OUTAGE
    return ERROR_TABLE[error.reason]


def reason_name(reason: Reason) -> str:
    """The full name of the reason in `durablememory.v1.ErrorReason`."""
    return REASON_PREFIX + reason.value


def rich_status(error: DomainError) -> status_pb2.Status:
    """The error as google.rpc.Status: exactly one ErrorInfo, and RetryInfo where clients should wait."""
    row = row_of(error)
    status = status_pb2.Status(code=_CODES[row.status], message=_cut(error.message, _MESSAGE_MAX_CHARACTERS))
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(
            reason=reason_name(error.reason),
            domain=DOMAIN,
            metadata={name: _cut(value, _METADATA_MAX_CHARACTERS) for name, value in error.metadata.items()},
        )
    )
    if row.retry_after_ms is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(row.retry_after_ms)
        status.details.add().Pack(retry)
    return status


async def abort(context: grpc.aio.ServicerContext[object, object], error: DomainError) -> None:
    """End the call with the error's status. Never returns normally: grpc raises to leave the handler."""
    status = rich_status(error)
    await context.abort(
        row_of(error).status,
        status.message,
        trailing_metadata=((DETAILS_KEY, status.SerializeToString()),),
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
