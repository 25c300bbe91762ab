"""URLs of Redis: one server, the primary that Sentinels know, or a Cluster; with a second `s` in `rediss` for TLS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode

from durable_memory.certificate_files import list_faults, pair_faults

_TLS_FILES: Final = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
_TLS_CHOICES: Final = {"ssl_cert_reqs": ("required", "optional", "none"), "ssl_check_hostname": ("true", "false")}
_TLS_OPTIONS: Final = _TLS_FILES | _TLS_CHOICES.keys()
_SENTINEL_OPTIONS: Final = frozenset({"sentinel_username", "sentinel_password"})
_FORMS: Final = (
    "redis://user:password@host:6379/0, redis+sentinel://user:password@host:26379,host:26379/primary-name/0 or "
    "redis+cluster://user:password@host:6379,host:6379; rediss instead of redis for TLS"
)
_REDIS_PORT: Final = 6_379
_SENTINEL_PORT: Final = 26_379
_PORT_MAX: Final = 65_535

_URL: Final = re.compile(
    r"(?P<scheme>[a-z+]+)://(?:(?P<user>[^/?#]*)@)?(?P<hosts>[^/?#@]+)(?:/(?P<path>[^?#]*))?(?:\?(?P<query>[^#]*))?",
    re.ASCII | re.IGNORECASE,
)
_HOST: Final = re.compile(
    r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[^\s\[\]:,]+))(?::(?P<port>[0-9]{1,5}))?", re.IGNORECASE
)


class Address(NamedTuple):
    """Where a server is."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class RedisKind(Enum):
    """What the addresses of a URL are of."""

    SERVER = ""
    SENTINEL = "+sentinel"
    CLUSTER = "+cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisUrl:
    """Where servers are, and who one is to them. `str` shows neither password nor options."""

    text: str = field(repr=False)
    kind: RedisKind
    tls: bool
    addresses: tuple[Address, ...]
    """The server, the sentinels, or some servers of the cluster."""
    primary_name: str = ""
    """What the sentinels call it."""
    database: str = ""
    user: str = field(default="", repr=False)
    """With the password, as it is in the URL."""
    sentinel_user: str = field(default="", repr=False)
    options: str = field(default="", repr=False)
    """Of TLS, as a query."""

    def __str__(self) -> str:
        user = self.user.partition(":")[0]
        hosts = ",".join(map(str, self.addresses))
        path = "".join(f"/{part}" for part in (quote(self.primary_name, safe=""), self.database) if part)
        return f"{self._scheme}{self.kind.value}://{f'{user}@' if user else ''}{hosts}{path}"

    def of_server(self, address: Address) -> str:
        """The URL of one server that keeps the data, with the password."""
        return self._of(address, self.user, self.database)

    def of_sentinel(self, address: Address) -> str:
        """The URL of one sentinel, with its password."""
        return self._of(address, self.sentinel_user, "")

    def tls_file_faults(self) -> Iterator[str]:
        """What is wrong with the files that the options name. They are read at each connection."""
        named = dict(parse_qsl(self.options))
        if authorities := named.get("ssl_ca_certs"):
            yield from list_faults("ssl_ca_certs", authorities)
        if certificate := named.get("ssl_certfile"):
            yield from pair_faults(("ssl_certfile", "ssl_keyfile"), certificate, named.get("ssl_keyfile"))
        elif "ssl_keyfile" in named:
            yield "has ssl_keyfile without ssl_certfile"

    @property
    def _scheme(self) -> str:
        return "rediss" if self.tls else "redis"

    def _of(self, address: Address, user: str, database: str) -> str:
        query = f"?{self.options}" if self.options else ""
        return f"{self._scheme}://{f'{user}@' if user else ''}{address}/{database}{query}"


def parse_redis_url(text: str) -> RedisUrl:
    """Raises: ValueError, which says what is wrong and never quotes the text: it may hold a password."""
    refusal = ValueError(f"is no Redis URL: give {_FORMS}")
    parts = _URL.fullmatch(text)
    if parts is None:
        raise refusal
    scheme, plus, kind_name = parts["scheme"].lower().partition("+")
    try:
        kind = RedisKind(plus + kind_name)
        query = parse_qs(parts["query"], keep_blank_values=True, strict_parsing=True) if parts["query"] else {}
    except ValueError:
        raise refusal from None
    default_port = _SENTINEL_PORT if kind is RedisKind.SENTINEL else _REDIS_PORT
    addresses = [_address(host, default_port) for host in parts["hosts"].split(",")]
    known = [address for address in addresses if address is not None]
    if scheme not in ("redis", "rediss") or len(known) < len(addresses):
        raise refusal
    if kind is RedisKind.SERVER and len(addresses) > 1:
        raise ValueError(f"names several servers and not what they are: give {_FORMS}")
    tls = scheme == "rediss"
    options = {name: values[0] for name, values in query.items()}
    _require_known(options, kind, tls=tls)
    _require_complete(options)
    primary_name, database = _path(parts["path"] or "", kind)
    return RedisUrl(
        text=text,
        kind=kind,
        tls=tls,
        addresses=tuple(dict.fromkeys(known)),
        primary_name=primary_name,
        database=database,
        user=parts["user"] or "",
        sentinel_user=_user(options.get("sentinel_username", ""), options.get("sentinel_password", "")),
        options=urlencode({name: value for name, value in options.items() if name in _TLS_OPTIONS}, quote_via=quote),
    )


def _address(text: str, default_port: int) -> Address | None:
    parts = _HOST.fullmatch(text)
    if parts is None:
        return None
    port = default_port if parts["port"] is None else int(parts["port"])
    return Address(parts["v6"] or parts["name"], port) if 0 < port <= _PORT_MAX else None


def _path(path: str, kind: RedisKind) -> tuple[str, str]:
    """(name of the primary, database)."""
    if "@" in path:
        # The rest of a password that has a / in it, which nobody would take for a secret here.
        raise ValueError("has an @ in its path: what is special in a password or a name has to be percent-encoded")
    if kind is RedisKind.SENTINEL:
        name, _, database = path.partition("/")
        name = unquote(name)
        if not name or not name.isprintable():
            raise ValueError(f"does not say what the sentinels call the primary: give {_FORMS}")
    else:
        name, database = "", path
    if database and not (database.isascii() and database.isdecimal()):
        raise ValueError("names a database that is not a number")
    if kind is RedisKind.CLUSTER and int(database or 0):
        raise ValueError("names a database, and a cluster has none but 0")
    return name, database


def _require_known(options: Iterable[str], kind: RedisKind, *, tls: bool) -> None:
    known = (_TLS_OPTIONS if tls else frozenset()) | (_SENTINEL_OPTIONS if kind is RedisKind.SENTINEL else frozenset())
    if not known.issuperset(options):
        raise ValueError(
            f"has options that are not known here; rediss:// takes {', '.join(sorted(_TLS_OPTIONS))}, and the form "
            f"with +sentinel takes {' and '.join(sorted(_SENTINEL_OPTIONS))}"
        )


def _require_complete(options: Mapping[str, str]) -> None:
    """What the driver passes over, or takes for something else, would protect less than it says."""
    for name in sorted(_TLS_FILES & options.keys()):
        if not options[name]:
            raise ValueError(f"has the option {name} without a value")
    for name, values in _TLS_CHOICES.items():
        if options.get(name, values[0]) not in values:
            raise ValueError(f"has an option {name} that is none of {', '.join(values)}")
    if options.get("ssl_cert_reqs") == "none" and (
        "ssl_ca_certs" in options or options.get("ssl_check_hostname") == "true"
    ):
        raise ValueError(
            "says with ssl_cert_reqs=none that no certificate is checked, and with another option that it is"
        )


def _user(name: str, password: str) -> str:
    if not (name or password):
        return ""
    return f"{quote(name, safe='')}:{quote(password, safe='')}"
