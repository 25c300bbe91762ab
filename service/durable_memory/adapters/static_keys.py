"""Bearer tokens from a file of their SHA-256 hashes.

The file is a JSON array. Each entry names a token by its hash and says what its bearer may do:

    [{"sha256": "<64 hexadecimal digits>", "name": "support-agent", "roles": ["reader", "writer"],
      "tenants": ["acme"], "principals": ["user-1"], "scopes": ["default"]}]

`tenants`, `principals` and `scopes` are optional: an absent one allows every name. Tokens are random, so a plain hash
keeps them; a file that others may write would let them add their own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from durable_memory.domain.caller import Caller, Role
from durable_memory.domain.errors import DomainError
from durable_memory.domain.text import check_name

_REQUIRED: Final = frozenset({"sha256", "name", "roles"})
_NAMES: Final = ("tenants", "principals", "scopes")
_ROLES: Final = frozenset(role.value for role in Role)
_HASH_HEX_DIGITS: Final = 64


class InvalidKeysError(Exception):
    """All that is wrong with a credentials file, one line each. Hashes are not quoted."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults: Final = tuple(faults)


class StaticKeys:
    """Knows the callers of a fixed set of tokens."""

    def __init__(self, callers: dict[bytes, Caller]) -> None:
        """`callers` by the SHA-256 of their token, 32 bytes each."""
        self._callers = tuple(callers.items())

    def __len__(self) -> int:
        return len(self._callers)

    def verify(self, token: str) -> Caller | None:
        """The caller of `token`, or None. Takes as long whichever key fits, or none."""
        given = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = None
        for known, caller in self._callers:
            if hmac.compare_digest(known, given):
                found = caller
        return found

    @classmethod
    def load(cls, path: Path) -> StaticKeys:
        """Raises: InvalidKeysError with every fault of the file."""
        try:
            mode = path.stat().st_mode
            content = path.read_bytes()
        except OSError as error:
            raise InvalidKeysError([f"{path} cannot be read: {error.strerror}"]) from error
        faults = []
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            faults.append(f"{path} can be written by others than its owner (chmod go-w)")
        try:
            entries = json.loads(content, object_pairs_hook=_without_repeats)
        except ValueError as error:
            raise InvalidKeysError([*faults, f"{path} is not JSON: {_place(error)}"]) from error
        if not isinstance(entries, list) or not entries:
            raise InvalidKeysError([*faults, f"{path} is not an array with at least one key"])
        callers: dict[bytes, Caller] = {}
        for index, entry in enumerate(entries):
            problems = list(_problems(entry))
            faults += [f"key {index}: {problem}" for problem in problems]
            if problems:
                continue
            digest = bytes.fromhex(entry["sha256"])
            if digest in callers:
                faults.append(f"key {index}: the same token as another key")
            callers[digest] = _caller(entry)
        if faults:
            raise InvalidKeysError(faults)
        return cls(callers)


def _problems(entry: Any) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield "is not an object"
        return
    for name in sorted(_REQUIRED - entry.keys()):
        yield f"{name} is missing"
    for name in sorted(entry.keys() - _REQUIRED - set(_NAMES)):
        yield f"{name!r} is no field of a key"
    if "sha256" in entry and not _is_hash(entry["sha256"]):
        yield f"sha256 is not {_HASH_HEX_DIGITS} hexadecimal digits"
    if "name" in entry:
        yield from _name_problems("name", entry["name"])
    if "roles" in entry:
        yield from _role_problems(entry["roles"])
    for field in _NAMES:
        if field not in entry:
            continue
        if not _is_text_list(entry[field]):
            yield f"{field} is not a list of at least one name; leave it out to allow all"
        else:
            for name in entry[field]:
                yield from _name_problems(field, name)


def _role_problems(roles: Any) -> Iterator[str]:
    if not _is_text_list(roles):
        yield "roles is not a list of at least one role"
        return
    for role in roles:
        if role not in _ROLES:
            yield f"{role!r} is no role; there are {', '.join(sorted(_ROLES))}"


def _name_problems(field: str, name: Any) -> Iterator[str]:
    if not isinstance(name, str):
        yield f"{field} is not text"
        return
    try:
        check_name(field, name)
    except DomainError as error:
        yield error.message


def _is_hash(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) == _HASH_HEX_DIGITS
        and all(character in "0123456789abcdefABCDEF" for character in value)
    )


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _caller(entry: dict[str, Any]) -> Caller:
    allowed = {field: frozenset(entry[field]) if field in entry else None for field in _NAMES}
    return Caller(name=entry["name"], roles=frozenset(Role(role) for role in entry["roles"]), **allowed)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is given twice in one object")
    return dict(pairs)


def _place(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} in line {error.lineno}"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return str(error)
