"""Namespaces: the unit of isolation, ordering and partitioning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from durable_memory.domain.canonical import digest_bytes
from durable_memory.domain.text import check_name


@dataclass(frozen=True, slots=True)
class Namespace:
    """Tenant, principal and scope, compared byte for byte.

    Raises: INVALID_FIELD, LIMIT_EXCEEDED, with the field `namespace.tenant_id` and so on.
    """

    tenant_id: str
    principal_id: str
    scope_id: str

    def __post_init__(self) -> None:
        check_name("namespace.tenant_id", self.tenant_id)
        check_name("namespace.principal_id", self.principal_id)
        check_name("namespace.scope_id", self.scope_id)

    @property
    def key(self) -> bytes:
        """32 bytes that stand for this namespace in every store, cache and cursor; see `namespace_key`."""
        return namespace_key(self.tenant_id, self.principal_id, self.scope_id)

    @property
    def label(self) -> str:
        """The first 16 hexadecimal digits of the key: what logs, metrics and spans may show of a namespace."""
        return self.key[:8].hex()


@lru_cache(maxsize=65_536)
def namespace_key(tenant_id: str, principal_id: str, scope_id: str) -> bytes:
    """SHA-256 over the three parts, each with its length before it: `("a:b", "c")` and `("a", "b:c")` differ."""
    return digest_bytes("namespace/v1", tenant_id.encode(), principal_id.encode(), scope_id.encode())
