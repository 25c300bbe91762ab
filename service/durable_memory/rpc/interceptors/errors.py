"""Turns whatever a call raises into the status of the error table."""

from __future__ import annotations

import asyncio
from collections import Counter
from math import inf
from typing import Any, Final

import grpc
import structlog
from grpc import StatusCode

from durable_memory.app.defects import exception_types, frames
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.rpc.errors import abort, row_of
from durable_memory.rpc.interceptors.call import IncomingCall, Proceed

_INCIDENT_BYTES: Final = 8
# Not the caller's doing: an operator wants to see these without asking every caller. The server itself tells when it
# does not serve, once and not once per call.
_LOGGED: Final = frozenset({StatusCode.UNAVAILABLE, StatusCode.DATA_LOSS})
# While a store is away every call fails, some thousand a second: one line in so much time for a method and reason.
_PAUSE_SECONDS: Final = 10.0

_log = structlog.stdlib.get_logger(__name__)


class ErrorLayer:
    """DomainError becomes its row; anything unexpected INTERNAL with an incident id.

    The caller never sees the text of an exception. The log gets its type and where it was raised; its text only
    with `log_exception_text`, because database errors quote the values they are about.
    """

    def __init__(self, clock: Clock, ids: Ids, *, log_exception_text: bool = False) -> None:
        self._clock = clock
        self._ids = ids
        self._log_exception_text = log_exception_text
        self._told: dict[tuple[str, Reason], float] = {}
        self._untold: Counter[tuple[str, Reason]] = Counter()

    async def around(self, call: IncomingCall, proceed: Proceed) -> Any:
        try:
            return await proceed()
        except DomainError as error:
            await self._answer(call, error)
        except TimeoutError:
            await self._answer(call, DomainError(Reason.DEADLINE_EXCEEDED, "the deadline passed"))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                # Not this call was cancelled but something that it waited for. Left alone, the library would end
                # the task without a word, and the caller would wait until its deadline.
                await self._answer(call, self._incident(call, error))
            # The caller is gone, or the drain has run out of time: the library ends the call.
            call.status = StatusCode.CANCELLED
            raise
        except grpc.aio.AbortError:
            # Health and reflection end calls by themselves.
            call.status = _decided(call)
            raise
        except Exception as error:  # noqa: BLE001 - the last resort: recorded as an incident, and the caller is told
            await self._answer(call, self._incident(call, error))

    async def _answer(self, call: IncomingCall, error: DomainError) -> None:
        call.status = row_of(error).status
        if call.status in _LOGGED and error.reason is not Reason.NOT_SERVING:
            self._tell(call.method, error)
        await abort(call.context, error)

    def _tell(self, method: str, error: DomainError) -> None:
        kind = method, error.reason
        self._untold[kind] += 1
        now = self._clock.monotonic()
        if error.reason is not Reason.DATA_CORRUPTED and now < self._told.get(kind, -inf) + _PAUSE_SECONDS:
            return
        self._told[kind] = now
        times = self._untold.pop(kind)
        _log.warning("call_failed", method=method, reason=error.reason.value, times=times, **_prefixed(error.metadata))

    def _incident(self, call: IncomingCall, error: BaseException) -> DomainError:
        incident_id = self._ids.random_hex(_INCIDENT_BYTES)
        _log.error(
            "incident",
            incident_id=incident_id,
            method=call.method,
            exceptions=exception_types(error),
            frames=frames(error),
            **({"text": str(error)} if self._log_exception_text else {}),
        )
        return DomainError(
            Reason.INTERNAL,
            f"the server failed; its log has the details under incident {incident_id}",
            incident_id=incident_id,
        )


def _decided(call: IncomingCall) -> StatusCode:
    # The library keeps what `abort` was given, as a number or as a StatusCode.
    code = call.context.code()
    return next((status for status in StatusCode if code in (status, status.value[0])), StatusCode.UNKNOWN)


def _prefixed(metadata: dict[str, str]) -> dict[str, str]:
    return {f"error.{name}": value for name, value in metadata.items()}
