"""What every use case is told about the call that it serves."""

from __future__ import annotations

from dataclasses import dataclass

from durable_memory.domain.caller import Caller, Role
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.staging import Actor
from durable_memory.ports.store import RequestKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An authorised call: the namespace is one that the caller's credential covers.

    `ends_at` is when it is cancelled at the latest, by the event loop's clock; `None` if that is not known.
    """

    caller: Caller
    namespace: Namespace
    ends_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation(Call):
    """A call that writes; `request` makes its repeats return the first result."""

    request: RequestKey

    @property
    def actor(self) -> Actor:
        """What the kernel records of whoever made this change."""
        return Actor(
            caller=self.caller.name,
            may_activate=Role.ACTIVATOR in self.caller.roles,
            method=self.request.method,
            request_id=self.request.key,
        )
