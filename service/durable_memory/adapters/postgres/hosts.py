"""The servers that a database's URL names. Nothing here connects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, unquote

from durable_memory.adapters.postgres.tls import require_known_tls

_PARTS: Final = re.compile(r"(?P<scheme>\w+)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<options>[^#]*))?")
_BRACKETED: Final = re.compile(r"\[([^\]]+)\](?::(.*))?")
_PRIMARY_WILL_DO: Final = frozenset({"any", "primary", "read-write"})
"""The values of `target_session_attrs` that a primary satisfies. Whichever is given, nothing else is used."""


@dataclass(frozen=True, slots=True)
class Host:
    """One server: a name, an address, or the folder of a socket. Without a port it is the driver's default."""

    name: str
    port: int | None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port is None else f"{name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart: `dsn` names no server, so that it can be used with each of `hosts`.

    Where the URL leaves the server to the driver's defaults, `hosts` is empty. `options` are those behind the `?`.
    """

    dsn: str = field(repr=False)
    hosts: tuple[Host, ...]
    options: Mapping[str, str] = field(repr=False)


def parse_target(dsn: str) -> Target:
    """Raises: ValueError, which says what is wrong and never quotes the URL: it may hold a password."""
    parts = _PARTS.fullmatch(dsn)
    if parts is None:
        raise ValueError("is no URL: what is special in a user name or password has to be percent-encoded")
    credentials, at, authority = parts["authority"].rpartition("@")
    if "@" in credentials:
        raise ValueError("has an @ in its password that is not percent-encoded")
    if "@" in parts["path"]:  # behind a / in the password, what is before it would be taken for the host
        raise ValueError("has an @ behind a /: what is special in a user name or password has to be percent-encoded")
    options = _options(parts["options"] or "")
    require_known_tls(options)
    if (options.get("target_session_attrs") or "primary") not in _PRIMARY_WILL_DO:
        raise ValueError(
            "asks for another server than the primary: target_session_attrs can be primary, read-write or any"
        )
    listed: list[tuple[str, str]] = []
    if authority:  # taken apart first: what is encoded in a name is no port, and no folder either
        listed = [(unquote(name), unquote(port)) for name, port in map(_name_and_port, authority.split(","))]
    elif options.get("host"):  # decoded already, with all that is behind the ?
        listed = [_name_and_port(item) for item in options["host"].split(",")]
    ports: list[int | None] = [_port(port) for port in options["port"].split(",")] if options.get("port") else [None]
    if len(ports) == 1:
        ports *= len(listed)
    if len(ports) != len(listed):
        raise ValueError("has another number of ports than of hosts")
    hosts = tuple(_host(name, own_port, port) for (name, own_port), port in zip(listed, ports, strict=True))
    query = "" if parts["options"] is None else f"?{parts['options']}"
    return Target(dsn=f"{parts['scheme']}://{credentials}{at}{parts['path']}{query}", hosts=hosts, options=options)


def _options(text: str) -> dict[str, str]:
    try:
        return {
            name: values[-1]
            for name, values in parse_qs(text, keep_blank_values=True, strict_parsing=bool(text)).items()
        }
    except ValueError:
        raise ValueError("has options that are not of the form name=value&name=value") from None


def _name_and_port(item: str) -> tuple[str, str]:
    if item.startswith("/"):
        return item, ""
    if bracketed := _BRACKETED.fullmatch(item):
        return bracketed[1], bracketed[2] or ""
    name, _, port = item.partition(":")
    return name, port


def _host(name: str, own_port: str, port: int | None) -> Host:
    if not name:
        raise ValueError("has a host without a name")
    if not name.startswith("/"):
        _require_name(name)
    return Host(name, _port(own_port) if own_port else port)


def _require_name(name: str) -> None:
    """Raises: ValueError for what nobody can look up: whoever tried would meet an error that is none of the network."""
    try:
        name.encode("idna")
    except UnicodeError:
        raise ValueError(
            "has a host whose name cannot be looked up: between its dots are 1 to 63 characters that names may have"
        ) from None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65_536):
        raise ValueError("has a port that is no number from 1 to 65535; an IPv6 address belongs into brackets")
    return int(text)
