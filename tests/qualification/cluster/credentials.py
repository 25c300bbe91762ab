"""The tokens of one run: random, in a file of their hashes for the servers, and known for the scan of what is left."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROLES: Final = ("reader", "writer", "activator", "operator", "administrator")
ISOLATED_TENANTS: Final = ("iso-a", "iso-b")
"""Tenants that have a token of their own, which is good for no other."""


class Credentials:
    """Tokens, and the file that servers read: `path`, written once, for its owner alone.

    `everything` may do all in every tenant; `of_role` one thing in every tenant; `of_tenant` all in one of
    `ISOLATED_TENANTS`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.everything = _new_token()
        self.of_role: Mapping[str, str] = {role: _new_token() for role in ROLES}
        self.of_tenant: Mapping[str, str] = {tenant: _new_token() for tenant in ISOLATED_TENANTS}
        entries = [
            _entry("qualification", self.everything, ROLES),
            *(_entry(f"qualification-{role}", token, [role]) for role, token in self.of_role.items()),
            *(
                {**_entry(f"qualification-{tenant}", token, ROLES), "tenants": [tenant]}
                for tenant, token in self.of_tenant.items()
            ),
        ]
        path.touch(mode=0o600)
        path.write_text(json.dumps(entries, indent=2))

    @property
    def secrets(self) -> list[str]:
        """All that must be found nowhere."""
        return [self.everything, *self.of_role.values(), *self.of_tenant.values()]


def _new_token() -> str:
    return secrets.token_urlsafe(32)


def _entry(name: str, token: str, roles: Any) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(token.encode()).hexdigest(), "name": name, "roles": list(roles)}
