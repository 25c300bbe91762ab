"""One call as its layers see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import grpc
from grpc import StatusCode

from durable_memory.domain.caller import Caller

Context = grpc.aio.ServicerContext[Any, Any]

PRODUCT_PREFIX: Final = "/durablememory."
ENDLESS_METHODS: Final = frozenset(
    {
        "/durablememory.v1.RepositoryService/WatchNamespace",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    }
)
"""Streams that only their client ends: a drain does not wait for them, and a restarted client takes them up again."""


@dataclass(slots=True, kw_only=True)
class IncomingCall:
    """A call while it is served; layers leave here what the ones around them need."""

    method: str
    """The full name, `/package.Service/Method`."""

    streaming: bool
    """Whether requests or responses are a stream."""

    context: Context
    uploading: bool = False
    """Whether requests are a stream and the answer is one message: such a call is over when it is answered."""

    status: StatusCode = StatusCode.OK
    """What the caller is told, as far as it is decided."""

    caller: Caller | None = None
    ends_at: float | None = None
    """When it is cancelled at the latest, by the event loop's clock; set by the deadline's layer."""

    degradations: list[str] = field(default_factory=list)
    """Names of what the answer had to do without."""

    @property
    def endless(self) -> bool:
        return self.method in ENDLESS_METHODS


Proceed = Callable[[], Awaitable[Any]]
"""Takes the call one layer further in, and returns with its answer (None for a stream, which is written by then)."""


class Layer(Protocol):
    """One concern. A layer that refuses a call raises a DomainError; the error layer makes it a status."""

    async def around(self, call: IncomingCall, proceed: Proceed) -> Any:
        """Await `proceed()` at most once and return what it returns; all of it in the task that serves the call."""
        ...


_CURRENT: Final[ContextVar[IncomingCall]] = ContextVar("durable_memory_call")


def enter(call: IncomingCall) -> None:
    """Make `call` the one that `note_degradation` speaks of, for the rest of the task that serves it."""
    _CURRENT.set(call)


def note_degradation(reason: str) -> None:
    """Count an answer that had to do without something; `reason` is out of a closed list of the contract."""
    call = _CURRENT.get(None)
    if call is not None:
        call.degradations.append(reason)


def current_end() -> float | None:
    """When the call that the current task serves is cancelled at the latest, by the event loop's clock."""
    call = _CURRENT.get(None)
    return None if call is None else call.ends_at
