"""What the gRPC server is told about its bounds; `config.py` says what they default to and from where they come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """Bounds of calls. `per_caller` ones count by the name of the credential; streams are counted apart."""

    default_deadline_seconds: float
    maximum_deadline_seconds: float
    maximum_upload_seconds: float
    max_calls: int
    max_calls_per_caller: int
    max_streams: int
    max_streams_per_caller: int
    max_request_bytes: int
    max_response_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """How connections are kept and ended. The library varies the age of each by a tenth, so they do not all go at
    once, and processes on one port come to share them."""

    max_age_seconds: float
    max_age_grace_seconds: float
    keepalive_interval_seconds: float
    keepalive_timeout_seconds: float
    reuse_port: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM of the server's certificate chain and of its private key."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Everything that the gRPC server needs besides its services."""

    address: str
    calls: CallOptions
    connections: ConnectionOptions
    tls: TlsFiles | None
    reflection: bool
    log_exception_text: bool
