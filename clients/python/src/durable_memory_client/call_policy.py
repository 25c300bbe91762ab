"""How long a call may take and when it is repeated, from the service config that all languages share.

The policy is executed here and not by gRPC: its Python library repeats calls too, but does not say how often, and
whether an error is definite hangs on that.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import grpc

from durable_memory_client.reasons import reason_rows
from durable_memory_client.service_error import MemoryServiceError

_JITTER: Final = 0.2
_RETRY_INFO_GROWTH: Final = 1.5
_RETRY_INFO_MAX_SECONDS: Final = 5.0
_MOST_GROWTHS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """A gRPC retry policy. Times are in seconds; `max_attempts` includes the first."""

    max_attempts: int
    initial_backoff: float
    max_backoff: float
    backoff_multiplier: float
    codes: frozenset[grpc.StatusCode]

    def backoff(self, attempt: int) -> float:
        """Seconds to wait after the failed attempt number `attempt`, from 1."""
        exact = min(self.max_backoff, self.initial_backoff * self.backoff_multiplier ** (attempt - 1))
        return _spread(exact)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPolicy:
    """`timeout`: the default deadline of the whole call, all attempts together, in seconds; None for streams."""

    timeout: float | None
    retry: RetryPolicy | None

    def delay(self, error: MemoryServiceError, attempt: int, max_attempts: int | None = None) -> float | None:
        """Seconds to wait before the next attempt, or None if there is to be none.

        UNAVAILABLE waits by the retry policy; a reason with RetryInfo waits as the service says, as often as the
        deadline allows. Nothing else is ever repeated, nor is what has a RetryInfo without a time. `max_attempts`
        bounds both from above.
        """
        if self.retry is None or (max_attempts is not None and attempt >= max_attempts):
            return None
        if error.code in self.retry.codes:
            return self.retry.backoff(attempt) if attempt < self.retry.max_attempts else None
        row = reason_rows().get(error.reason or "")
        if row is None or row.retry != "retry_info" or not error.retry_after:
            return None
        growth: float = _RETRY_INFO_GROWTH ** min(attempt - 1, _MOST_GROWTHS)
        return _spread(min(_RETRY_INFO_MAX_SECONDS, error.retry_after * growth))


class Limit:
    """Until when all steps of one call may try, together: opening, beginning, waiting for their turn, and the call.

    `attempts` is how often each of them may; None: as often as its policy says. `waited` is whether one of them had to
    wait for another call.
    """

    def __init__(self, timeout: float | None, attempts: int | None = None) -> None:
        self._ends_at = None if timeout is None else time.monotonic() + timeout
        self.attempts = attempts
        self.waited = False

    @classmethod
    def usual(cls, timeout: float | None) -> Limit:
        """The stated timeout, in seconds, or the one that a call has by default."""
        return cls(call_policy("", "").timeout if timeout is None else timeout)

    @property
    def left(self) -> float | None:
        """Seconds from now, at least 0; None without end."""
        return None if self._ends_at is None else max(0.0, self._ends_at - time.monotonic())

    def outlasts(self, seconds: float) -> bool:
        """Whether there is time for an attempt after so many seconds."""
        return self._ends_at is None or time.monotonic() + seconds < self._ends_at


def call_policy(service: str, method: str) -> CallPolicy:
    """The policy of one RPC, by full service name and bare method name: the most specific entry alone counts."""
    policies = _policies()
    for name in ((service, method), (service, ""), ("", "")):
        if name in policies:
            return policies[name]
    return CallPolicy(timeout=None, retry=None)


@cache
def _policies() -> Mapping[tuple[str, str], CallPolicy]:
    config = json.loads(files("durable_memory_client").joinpath("service_config.json").read_text("utf-8"))
    policies = {}
    for entry in config["methodConfig"]:
        policy = CallPolicy(
            timeout=_seconds(entry["timeout"]) if "timeout" in entry else None,
            retry=_retry(entry["retryPolicy"]) if "retryPolicy" in entry else None,
        )
        for name in entry["name"]:
            policies[name.get("service", ""), name.get("method", "")] = policy
    return policies


def _retry(policy: Mapping[str, Any]) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=policy["maxAttempts"],
        initial_backoff=_seconds(policy["initialBackoff"]),
        max_backoff=_seconds(policy["maxBackoff"]),
        backoff_multiplier=policy["backoffMultiplier"],
        codes=frozenset(grpc.StatusCode[name] for name in policy["retryableStatusCodes"]),
    )


def _seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))


def _spread(seconds: float) -> float:
    # Callers that failed together must not come back together.
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)
