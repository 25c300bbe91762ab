"""The client: one connection, one default namespace, and views of others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from durable_memory_client.aio.calls import Calls, OnUnavailable
from durable_memory_client.aio.namespace import MemoryNamespace
from durable_memory_client.aio.transport import Transport, sleep
from durable_memory_client.connection import Tls, Token, resolve_connection, resolve_namespace
from durable_memory_client.errors import MemoryUnavailableError
from durable_memory_client.values.namespace import Namespace
from durable_memory_client.values.session import ServerInfo
from durablememory.v1 import session_service_pb2

_READY_POLL_SECONDS: Final = 0.1


class MemoryClient(MemoryNamespace):
    """A connection to the service, and a view of its default namespace.

        async with MemoryClient(tenant="acme", principal="user-1", scope="project-a") as memory:
            await memory.remember("The office opens at 8.")

    `address`: `host:port`, or a URL, where `https://` means TLS; default: DURABLE_MEMORY_ADDRESS, else
    127.0.0.1:7447. `token`: a bearer token or a function that returns one; default: DURABLE_MEMORY_TOKEN.
    `tenant`, `principal`, `scope`: the default namespace; default: DURABLE_MEMORY_TENANT, _PRINCIPAL, _SCOPE, else
    what the credential implies. `tls`: True for the system's certificates, or a `Tls`. `on_unavailable`: whether
    recalls in an outage raise MemoryUnavailableError or come back empty and marked. `channel_options`: further gRPC
    channel arguments.

    It connects with the first call. Close it, or use it as a block.
    """

    def __init__(
        self,
        address: str | None = None,
        token: Token | None = None,
        *,
        tenant: str | None = None,
        principal: str | None = None,
        scope: str | None = None,
        tls: bool | Tls | None = None,
        on_unavailable: OnUnavailable = "raise",
        channel_options: Sequence[tuple[str, Any]] = (),
    ) -> None:
        connection = resolve_connection(address, token, tls, channel_options)
        self._transport = Transport(connection)
        super().__init__(Calls(self._transport, on_unavailable), resolve_namespace(tenant, principal, scope))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Calls that are running fail; later ones raise RuntimeError."""
        await self._transport.close()

    def namespace(
        self, tenant: str | None = None, principal: str | None = None, scope: str | None = None
    ) -> MemoryNamespace:
        """A view of another namespace over the same connection; a part that is left out is the client's own."""
        stated = {"tenant": tenant, "principal": principal, "scope": scope}
        named: Namespace = replace(self._namespace, **{part: name for part, name in stated.items() if name is not None})
        return MemoryNamespace(self._calls, named)

    async def server_info(self, *, timeout: float | None = None) -> ServerInfo:
        """What the server is and can do: profiles, generations, limits, defaults; and who it takes the caller for."""
        response = await self._calls.unary(
            session_service_pb2.GetServerInfoRequest(), session_service_pb2.GetServerInfoResponse, timeout=timeout
        )
        return ServerInfo.from_proto(response)

    async def wait_until_ready(self, timeout: float = 30.0) -> ServerInfo:
        """Wait, up to `timeout` seconds, for the service to answer. Raises: MemoryUnavailableError."""
        ends_at = time.monotonic() + timeout
        while True:
            try:
                return await self.server_info(timeout=max(0.05, min(2.0, ends_at - time.monotonic())))
            except MemoryUnavailableError:
                if time.monotonic() + _READY_POLL_SECONDS >= ends_at:
                    raise
            await sleep(_READY_POLL_SECONDS)
