"""grpc.health.v1 for the whole server and for each of its services, and the probe that keeps it true."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

SERVICE_NAME: Final[str] = health.SERVICE_NAME
SEMANTIC_SERVICE: Final = "durablememory.v1.SemanticService"
_WHOLE_SERVER: Final = ""


class HealthReporter:
    """Says SERVING or NOT_SERVING, for every service alike, because all need the store. Starts as NOT_SERVING.

    SemanticService needs more: it may be NOT_SERVING while the others, and the server as a whole, are SERVING, because
    recall goes on by words.
    """

    def __init__(self, services: Sequence[str]) -> None:
        self._services = (_WHOLE_SERVER, *services)
        self._servicer = health.aio.HealthServicer()
        self._serving = False
        self._impaired: frozenset[str] = frozenset()

    async def add_to(self, server: grpc.aio.Server) -> None:
        """Register with the server, before it starts."""
        await self.report(serving=False)
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def report(self, *, serving: bool) -> None:
        """Tell probes and watchers; without effect after `stop`."""
        self._serving = serving
        await self._tell()

    async def report_impaired(self, services: Collection[str]) -> None:
        """These are NOT_SERVING even while the store answers; all others follow the store again."""
        self._impaired = frozenset(services)
        await self._tell()

    async def stop(self) -> None:
        """NOT_SERVING for good."""
        await self._servicer.enter_graceful_shutdown()

    async def _tell(self) -> None:
        for service in self._services:
            serves = self._serving and service not in self._impaired
            await self._servicer.set(service, _SERVING if serves else _NOT_SERVING)


_SERVING: Final = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
