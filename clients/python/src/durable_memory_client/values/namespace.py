"""Namespaces and points in their history."""

from __future__ import annotations

from dataclasses import dataclass

from durable_memory_client.values.wire import stated
from durablememory.v1 import change_token_pb2, namespace_pb2


@dataclass(frozen=True, slots=True)
class Namespace:
    """The unit of isolation: whose memory it is, and which part of it.

    A part that is None is left to the server, which fills it in if the credential allows exactly one value.
    """

    tenant: str | None
    principal: str | None
    scope: str | None

    @classmethod
    def from_proto(cls, message: namespace_pb2.NamespaceRef) -> Namespace:
        return cls(
            message.tenant_id if message.HasField("tenant_id") else None,
            message.principal_id if message.HasField("principal_id") else None,
            message.scope_id if message.HasField("scope_id") else None,
        )

    def to_proto(self) -> namespace_pb2.NamespaceRef:
        return stated(
            namespace_pb2.NamespaceRef, tenant_id=self.tenant, principal_id=self.principal, scope_id=self.scope
        )


@dataclass(frozen=True, slots=True)
class ChangeToken:
    """A point in the history of one namespace. Equal tokens of a namespace mean equal node state.

    Revisions can be ordered only between tokens of the same history.
    """

    history_id: str
    namespace_revision: int

    @classmethod
    def from_proto(cls, message: change_token_pb2.ChangeToken) -> ChangeToken:
        return cls(message.history_id, message.namespace_revision)
