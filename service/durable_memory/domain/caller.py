"""Who calls, and what the credential allows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from durable_memory.domain.errors import DomainError, Reason, invalid_field
from durable_memory.domain.namespace import Namespace


class Role(StrEnum):
    """What a credential lets its caller do; each is granted on its own, none includes another."""

    READER = "reader"
    WRITER = "writer"
    ACTIVATOR = "activator"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated identity. A set of names that is `None` allows every name; compared by exact value."""

    name: str
    roles: frozenset[Role]
    tenants: frozenset[str] | None = None
    principals: frozenset[str] | None = None
    scopes: frozenset[str] | None = None

    def require(self, role: Role) -> None:
        """Raises: PERMISSION_DENIED (required_role)."""
        if role not in self.roles:
            raise DomainError(
                Reason.PERMISSION_DENIED,
                f"this call needs the role {role.value}",
                required_role=role.value,
            )

    def resolve(self, tenant_id: str | None, principal_id: str | None, scope_id: str | None) -> Namespace:
        """The namespace that a request means: what it omits is filled where the credential allows exactly one name.

        Raises: PERMISSION_DENIED for a name that the credential does not cover, whether or not anything is there;
        INVALID_FIELD for an omitted one that is not determined, and for names out of form.
        """
        names = []
        for field, given, allowed in (
            ("tenant_id", tenant_id, self.tenants),
            ("principal_id", principal_id, self.principals),
            ("scope_id", scope_id, self.scopes),
        ):
            if given is None:
                if allowed is None or len(allowed) != 1:
                    raise invalid_field(f"namespace.{field}", "is missing, and the credential does not settle it")
                (given,) = allowed
            names.append((field, given, allowed))
        namespace = Namespace(*(given for _, given, _ in names))
        for field, given, allowed in names:
            if allowed is not None and given not in allowed:
                raise DomainError(
                    Reason.PERMISSION_DENIED,
                    "the credential does not cover this namespace",
                    field=f"namespace.{field}",
                )
        return namespace
