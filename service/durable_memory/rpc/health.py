"""grpc.health.v1 for the whole server and for each of its services.

The library's own servicer holds a lock while it writes to a watcher, and takes it to change a status: one peer that
takes nothing would stop health for everybody, and the drain. Here telling never waits for whoever is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

SERVICE_NAME: Final[str] = health.SERVICE_NAME
SEMANTIC_SERVICE: Final = "durablememory.v1.SemanticService"
_WHOLE_SERVER: Final = ""

_Context = grpc.aio.ServicerContext[Any, Any]
_Status = health_pb2.HealthCheckResponse
_messages: Any = health_pb2  # the published types do not know List yet


class HealthReporter(health_pb2_grpc.HealthServicer):
    """Says SERVING or NOT_SERVING, for every service alike, because all need the store. Starts as NOT_SERVING.

    SemanticService needs more: it may be NOT_SERVING while the others, and the server as a whole, are SERVING, because
    recall goes on by words.
    """

    def __init__(self, services: Sequence[str]) -> None:
        self._services = frozenset({_WHOLE_SERVER, *services})
        self._serving = False
        self._stopped = False
        self._impaired: frozenset[str] = frozenset()
        self._changed = asyncio.Event()

    def report(self, *, serving: bool) -> None:
        """Tell probes and watchers; without effect after `stop`."""
        self._serving = serving
        self._tell()

    def report_impaired(self, services: Collection[str]) -> None:
        """These are NOT_SERVING even while the store answers; all others follow the store again."""
        self._impaired = frozenset(services)
        self._tell()

    def stop(self) -> None:
        """NOT_SERVING for good."""
        self._stopped = True
        self._tell()

    async def Check(self, request: health_pb2.HealthCheckRequest, context: _Context) -> _Status:
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")
        return _Status(status=self._status(request.service))

    async def List(self, request: object, context: _Context) -> Any:
        return _messages.HealthListResponse(
            statuses={service: _Status(status=self._status(service)) for service in self._services}
        )

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: _Context) -> AsyncIterator[_Status]:
        told = None
        while True:
            changed = self._changed
            status = self._status(request.service)
            if status == told:
                await changed.wait()
            else:
                yield _Status(status=status)  # what changes while this is written is told next
                told = status

    def _status(self, service: str) -> int:
        if service not in self._services:
            return _Status.SERVICE_UNKNOWN
        serves = self._serving and not self._stopped and service not in self._impaired
        return _Status.SERVING if serves else _Status.NOT_SERVING

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
