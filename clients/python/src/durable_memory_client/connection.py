"""Where the service is, and with which credential and in which namespace to call it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import grpc

from durable_memory_client.environment import setting
from durable_memory_client.tracing import trace_headers
from durable_memory_client.values.namespace import Namespace

DEFAULT_ADDRESS: Final = "127.0.0.1:7447"
VERSION: Final = "0.1.0"

Token: TypeAlias = str | Callable[[], str]
"""A bearer token, or a function that returns the current one; it is asked for every attempt and must not block.

White space around it is not sent; nor is an empty one that a function returns.
"""

_CHANNEL_OPTIONS: Final[tuple[tuple[str, Any], ...]] = (
    ("grpc.primary_user_agent", f"durable-memory-python/{VERSION}"),
    # Retries are counted and made by the client; a service config from DNS must not add more.
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    # The server bounds what it sends (ServerLimits.max_response_bytes), and may be configured to send more.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A peer that vanished without a word is noticed on open streams. Servers allow one ping a minute beside data.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A restarted server is found again at the pace of the retries.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM bytes. Without `root_certificates` the system's are trusted; `certificate_chain` and `private_key` are the
    client's own, for mutual TLS. `server_name` replaces the name that the server's certificate is checked against.
    """

    root_certificates: bytes | None = None
    certificate_chain: bytes | None = None
    private_key: bytes | None = field(default=None, repr=False)
    server_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Everything that a channel and its calls need. Never prints the token."""

    target: str
    token: Token | None = field(default=None, repr=False)
    tls: Tls | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def channel_options(self) -> list[tuple[str, Any]]:
        options = [*_CHANNEL_OPTIONS]
        if _is_loopback(self.target):
            # The machine's proxy is not for its own services.
            options.append(("grpc.enable_http_proxy", 0))
        if self.tls is not None and self.tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        return [*options, *self.options]

    def credentials(self) -> grpc.ChannelCredentials | None:
        if self.tls is None:
            return None
        return grpc.ssl_channel_credentials(
            root_certificates=self.tls.root_certificates,
            private_key=self.tls.private_key,
            certificate_chain=self.tls.certificate_chain,
        )

    def headers(self) -> tuple[tuple[str, str | bytes], ...]:
        """The headers of one attempt.

        Raises: ValueError for a token that cannot be sent, without quoting it; what the function `token` raises.
        """
        headers: list[tuple[str, str | bytes]] = [*trace_headers()]
        if self.token is not None:
            token = self.token if isinstance(self.token, str) else self.token()
            if token:
                headers.append(("authorization", f"Bearer {_sendable(token)}"))
        return tuple(headers)


def resolve_connection(
    address: str | None,
    token: Token | None,
    tls: bool | Tls | None,
    options: Sequence[tuple[str, Any]],
) -> Connection:
    """The connection that the arguments, then DURABLE_MEMORY_ADDRESS and DURABLE_MEMORY_TOKEN, then defaults give.

    An address is `host:port`, or a URL: `https://host:port` is TLS, `http://host:port` is not.

    Raises: ValueError for contradictions, for a token that no header can carry, for one that would travel in clear text
    to another machine although nobody said so with `tls=False` or `http://`, and for variables that are misspelt.
    """
    stated = setting("ADDRESS", address) or DEFAULT_ADDRESS
    token = setting("TOKEN", token)
    if isinstance(token, str):
        token = _sendable(token)
    scheme, separator, rest = stated.partition("://")
    by_scheme: bool | None = None
    target = stated
    if separator and scheme in ("http", "https"):
        by_scheme = scheme == "https"
        target = rest.rstrip("/")
        if tls is not None and bool(tls) is not by_scheme:
            raise ValueError(f"tls={tls!r} contradicts the address {stated!r}")
    if not target or target != target.strip():
        raise ValueError(f"{stated!r} is not an address; expected host:port")
    secure = bool(tls) if tls is not None else by_scheme
    if secure is None and token is not None and not _is_loopback(target):
        raise ValueError(
            f"the token would travel to {target} in clear text: use tls=True or https://, or say tls=False or http://"
        )
    chosen = tls if isinstance(tls, Tls) else Tls() if secure else None
    return Connection(target=target, token=token, tls=chosen, options=tuple(options))


def resolve_namespace(tenant: str | None, principal: str | None, scope: str | None) -> Namespace:
    """The namespace that the arguments, then DURABLE_MEMORY_TENANT, _PRINCIPAL and _SCOPE give.

    A part that neither gives stays open: the server fills it in if the credential allows exactly one value.

    Raises: ValueError for variables that are misspelt.
    """
    return Namespace(
        setting("TENANT", tenant),
        setting("PRINCIPAL", principal),
        setting("SCOPE", scope),
    )


def _sendable(token: str) -> str:
    """The token without the white space of the file it came from; checked here, as grpc's own error would quote it."""
    trimmed = token.strip()
    if not trimmed or not all("!" <= character <= "~" for character in trimmed):
        raise ValueError("the token has characters that a header cannot carry")
    return trimmed


def _is_loopback(target: str) -> bool:
    if target.startswith("unix:"):
        return True
    host = target.rsplit("/", 1)[-1].rsplit(":", 1)[0].strip("[]").removeprefix("ipv4:").removeprefix("ipv6:")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
