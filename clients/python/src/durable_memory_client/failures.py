"""How a failed call becomes an exception: the reason decides the class, the attempts decide what is definite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, cast

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from durable_memory_client.errors import BY_REASON, DeadlineExceededError, Reason
from durable_memory_client.reasons import DOMAIN, PREFIX, reason_rows
from durable_memory_client.service_error import MemoryServiceError, MemoryUnavailableError
from durablememory.v1 import error_reason_pb2, item_error_pb2

_DETAILS_KEY: Final = "grpc-status-details-bin"
_PROXY_ATTEMPTS_KEY: Final = "x-envoy-attempt-count"

# A call that fails on this side of the wire carries no reason. This status has only one.
_LOCAL_REASONS: Final = {grpc.StatusCode.DEADLINE_EXCEEDED: Reason.DEADLINE_EXCEEDED}

# CANCELLED: a server that stops ends in this way what has reached it; the caller's own wish never comes as a status.
# INTERNAL: a proxy whose server is gone resets what was being answered. The service itself gives its reason for both.
_LOST: Final = frozenset({grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL})

CALL_FAILURES: Final = (grpc.RpcError, DecodeError)
"""What a transport raises for a call that failed, or whose answer could not be read."""

Metadata = Iterable[tuple[str, str | bytes]]


class FailedCall(Protocol):
    """What both of grpc's error types offer."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def initial_metadata(self) -> Metadata | None: ...
    def trailing_metadata(self) -> Metadata | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """What was tried. `request_id` is None for a call that changes nothing; `attempts` counts from 1."""

    method: str
    request_id: str | None
    attempts: int


def error_of_call(error: grpc.RpcError | DecodeError, attempted: Attempted) -> MemoryServiceError:
    """The exception for a failed call."""
    if isinstance(error, DecodeError):
        # The service can answer, and whatever was asked has been done: no outage, and nothing to repeat.
        return MemoryServiceError(
            f"the answer cannot be decoded: {error}",
            code=grpc.StatusCode.INTERNAL,
            method=attempted.method,
            request_id=attempted.request_id,
            definite=attempted.request_id is None,
            attempts=attempted.attempts,
        )
    failed = cast(FailedCall, error)
    code = failed.code()
    headers = [*(failed.initial_metadata() or ()), *(failed.trailing_metadata() or ())]
    info, retry_after = _rich_details(headers)
    if info is None and code in _LOST:
        code = grpc.StatusCode.UNAVAILABLE
    if info is None:
        reason, metadata = _LOCAL_REASONS.get(code), {}
    else:
        reason, metadata = info.reason.removeprefix(PREFIX), dict(info.metadata)
    row = reason_rows().get(reason) if reason is not None else None
    attempts = max(attempted.attempts, _attempts_of_proxy(headers))
    # An answer speaks of its own attempt: what an attempt before it did, it does not know.
    definite = attempted.request_id is None or (row is not None and row.definite is True and attempts == 1)
    kind = BY_REASON.get(reason) if reason is not None else None
    if kind is None:
        kind = MemoryUnavailableError if code is grpc.StatusCode.UNAVAILABLE else MemoryServiceError
    return kind(
        failed.details() or code.name,
        code=code,
        reason=reason,
        metadata=metadata,
        method=attempted.method,
        request_id=attempted.request_id,
        definite=definite,
        attempts=attempts,
        retry_after=retry_after,
    )


def error_of_unsent() -> DeadlineExceededError:
    """The exception for a call whose time was over before it was sent."""
    return DeadlineExceededError(
        "the time was over before the call was sent",
        code=grpc.StatusCode.DEADLINE_EXCEEDED,
        definite=True,
        attempts=0,
    )


def error_of_item(item: item_error_pb2.ItemError) -> MemoryServiceError:
    """The exception for one refused item of a batch, as if it had been a call of its own."""
    value = error_reason_pb2.ErrorReason.DESCRIPTOR.values_by_number.get(item.reason)
    reason = f"UNKNOWN_{item.reason}" if value is None else value.name.removeprefix(PREFIX)
    row = reason_rows().get(reason)
    return BY_REASON.get(reason, MemoryServiceError)(
        item.message,
        code=grpc.StatusCode.UNKNOWN if row is None else grpc.StatusCode[row.code],
        reason=reason,
        metadata=dict(item.metadata),
        # The others went on, this item did not: the answer itself says so.
        definite=True,
    )


def _rich_details(headers: Metadata) -> tuple[error_details_pb2.ErrorInfo | None, float | None]:
    info: error_details_pb2.ErrorInfo | None = None
    retry_after: float | None = None
    for detail in _status(headers).details:
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            candidate = error_details_pb2.ErrorInfo()
            # A proxy may add details of its own domain; its reasons are not ours.
            if detail.Unpack(candidate) and candidate.domain == DOMAIN:
                info = candidate
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            retry = error_details_pb2.RetryInfo()
            if detail.Unpack(retry):
                retry_after = retry.retry_delay.ToMilliseconds() / 1_000
    return info, retry_after


def _status(headers: Metadata) -> status_pb2.Status:
    for name, value in headers:
        if name == _DETAILS_KEY and isinstance(value, bytes):
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                break
    return status_pb2.Status()


def _attempts_of_proxy(headers: Metadata) -> int:
    counts = (str(value) for name, value in headers if name == _PROXY_ATTEMPTS_KEY)
    return max((int(count) for count in counts if count.isascii() and count.isdigit()), default=1)
