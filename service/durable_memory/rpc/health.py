"""grpc.health.v1 for the whole server and for each of its services, and the probe that keeps it true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

SERVICE_NAME: Final[str] = health.SERVICE_NAME
_WHOLE_SERVER: Final = ""


class HealthReporter:
    """Says SERVING or NOT_SERVING for every service alike, because all need the store. Starts as NOT_SERVING."""

    def __init__(self, services: Sequence[str]) -> None:
        self._services = (_WHOLE_SERVER, *services)
        self._servicer = health.aio.HealthServicer()

    async def add_to(self, server: grpc.aio.Server) -> None:
        """Register with the server, before it starts."""
        await self.report(serving=False)
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def report(self, *, serving: bool) -> None:
        """Tell probes and watchers; without effect after `stop`."""
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in self._services:
            await self._servicer.set(service, status)

    async def stop(self) -> None:
        """NOT_SERVING for good."""
        await self._servicer.enter_graceful_shutdown()
