"""Settings that nobody states in the program: DURABLE_MEMORY_ADDRESS, _TOKEN, _TENANT, _PRINCIPAL and _SCOPE."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, TypeVar

T = TypeVar("T")

_PREFIX: Final = "DURABLE_MEMORY_"
_SETTINGS: Final = tuple(_PREFIX + name for name in ("ADDRESS", "TOKEN", "TENANT", "PRINCIPAL", "SCOPE"))
_OF_SERVERS: Final = f"{_PREFIX}SERVER_"
_OF_COMMANDS: Final = f"{_PREFIX}TOKEN_FILE"


def setting(name: str, stated: T | None) -> T | str | None:
    """What is stated; else the variable DURABLE_MEMORY_`name`, unless it is empty.

    Raises: ValueError where that is looked up beside a variable which no client, command or server reads: it would have
    been meant for this one or another, whose default is somebody else's memory.
    """
    if stated:
        return stated
    unknown = _unknown(os.environ)
    if unknown:
        *others, last = _SETTINGS
        raise ValueError(
            f"{', '.join(unknown)}: no such setting of a client; there are {', '.join(others)} and {last} "
            f"(and {_OF_COMMANDS} for commands)"
        )
    return os.environ.get(_PREFIX + name) or None


def _unknown(variables: Iterable[str]) -> list[str]:
    names = [name for name in variables if name.startswith(_PREFIX)]
    known = {*_SETTINGS, _OF_COMMANDS, *_service_links(names)}
    return sorted(name for name in names if name not in known and not name.startswith(_OF_SERVERS))


def _service_links(names: list[str]) -> list[str]:
    """Those that Kubernetes sets in every container for a Service that is called like this one."""
    services = [name.removesuffix("_SERVICE_HOST") for name in names if name.endswith("_SERVICE_HOST")]
    return [
        name
        for name in names
        for service in services
        if name == f"{service}_PORT" or name.startswith((f"{service}_SERVICE_", f"{service}_PORT_"))
    ]
