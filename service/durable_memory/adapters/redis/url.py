"""URLs of Redis servers: `redis://[[user]:password@]host[:port][/database]`, and `rediss://` for TLS."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, urlsplit

_TLS_OPTIONS: Final = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname"})
_FORMS: Final = "redis://user:password@host:6379/0, or rediss:// for TLS"


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """Where one server is. `str` shows neither password nor options."""

    text: str = field(repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.text)
        user = f"{parts.username}@" if parts.username else ""
        host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
        return f"{parts.scheme}://{user}{host}{port}{parts.path}"


def parse_redis_url(text: str) -> RedisUrl:
    """Raises: ValueError, which says what is wrong and never quotes the text: it may hold a password."""
    refusal = ValueError(f"is no Redis URL: give {_FORMS}")
    try:
        parts = urlsplit(text)
        options = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
        valid = parts.hostname is not None and (parts.port is None or parts.port > 0)
    except ValueError:
        raise refusal from None
    database = parts.path.removeprefix("/")
    if parts.scheme not in ("redis", "rediss") or not valid or parts.fragment:
        raise refusal
    if database and not (database.isascii() and database.isdecimal()):
        raise ValueError("names a database that is not a number")
    unknown = sorted(options.keys() - _TLS_OPTIONS)
    if unknown or (options and parts.scheme != "rediss"):
        raise ValueError(f"has options that are not known here; rediss:// takes {', '.join(sorted(_TLS_OPTIONS))}")
    return RedisUrl(text)
