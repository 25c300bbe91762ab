"""One server replica of a cluster, for a harness whose loop must keep turning while processes start and end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.processes.server import ServerProcess
from tests.qualification.cluster.to_the_end import in_thread_to_the_end
from tests.qualification.report.timeline import Event, Lane, Timeline

WHOLE_SERVER: Final = ""
SEMANTIC_SERVICE: Final = "durablememory.v1.SemanticService"
_HEALTH_SECONDS: Final = 2.0
_CHANNEL_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
)


class ServerNode:
    """A numbered `ServerProcess` whose lives are on the timeline. Address and log are the same for all of them."""

    def __init__(
        self,
        index: int,
        store: str,
        folder: Path,
        timeline: Timeline,
        *,
        settings: Mapping[str, object],
        service_root: Path | None = None,
    ) -> None:
        """`settings` by their name in lower case, as `embedding_model`."""
        self.index = index
        self.name = f"server-{index}"
        self.log = folder / f"{self.name}.log"
        self._timeline = timeline
        self._life: Event | None = None
        self._pause: Event | None = None
        self._channel: grpc.aio.Channel | None = None
        self._process = ServerProcess(
            store,
            self.log,
            env={
                **{f"DURABLE_MEMORY_SERVER_{name.upper()}": str(value) for name, value in settings.items()},
                "OTEL_RESOURCE_ATTRIBUTES": f"service.instance.id={self.name}",
                # A killed server takes along the spans that it has not sent.
                "OTEL_BSP_SCHEDULE_DELAY": "500",
                "OMP_NUM_THREADS": "1",
                # Whatever the machine's proxy is for, it is not for what listens on loopback.
                "NO_PROXY": "127.0.0.1,localhost",
                "no_proxy": "127.0.0.1,localhost",
            },
            service_root=service_root,
        )

    @property
    def address(self) -> str:
        """Its own, by no proxy."""
        return self._process.address

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def pid(self) -> int:
        """Raises: RuntimeError if it was ended."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    @property
    def is_paused(self) -> bool:
        return self._pause is not None

    @property
    def ended_by_itself(self) -> bool:
        """Whether it ended although nobody told it to."""
        return self._process.ended_by_itself

    def log_text(self) -> str:
        """What it has written in all its lives."""
        return self._process.log_text()

    async def start(self, timeout: float = 180.0) -> None:
        """Start it, and return when it says SERVING."""
        await self.launch()
        await asyncio.to_thread(self._process.wait_serving, timeout)

    async def launch(self) -> None:
        """Start it without waiting for anything."""
        await in_thread_to_the_end(self._process.launch)
        self._life = self._timeline.mark(Lane.PROCESS, "running", key=self.name)

    async def kill9(self) -> None:
        """SIGKILL; return when it is gone."""
        self._timeline.mark(Lane.PROCESS, "kill -9", key=self.name)
        self._end_marks()
        await in_thread_to_the_end(self._process.kill9)

    async def terminate(self, timeout: float = 120.0) -> int:
        """SIGTERM; return its exit code when it has drained and ended. One that does not end in time is killed.

        Raises: what the wait for its end raises.
        """
        with self._timeline.span(Lane.PROCESS, "drain", key=self.name):
            try:
                return await in_thread_to_the_end(self._process.terminate, timeout)
            finally:
                self._end_marks()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections, and does nothing."""
        os.kill(self.pid, signal.SIGSTOP)
        self._pause = self._timeline.mark(Lane.PROCESS, "paused", key=self.name)

    def wake(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)
        if self._pause is not None:
            self._pause.ended = time.monotonic()
            self._pause = None

    async def health(self, service: str = WHOLE_SERVER) -> str:
        """What it says of itself: SERVING, NOT_SERVING; or the status with which it does not answer."""
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self.address, options=_CHANNEL_OPTIONS)
        stub = health_pb2_grpc.HealthStub(self._channel)
        try:
            # The published types of the stub lack its calls.
            answer = await stub.Check(  # type: ignore[attr-defined]
                health_pb2.HealthCheckRequest(service=service), timeout=_HEALTH_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            return str(error.code().name)
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))

    async def close(self) -> None:
        """Leave no process behind."""
        if self._channel is not None:
            await self._channel.close()
        await in_thread_to_the_end(self._process.close)
        self._end_marks()

    def _end_marks(self) -> None:
        now = time.monotonic()
        for event in (self._life, self._pause):
            if event is not None:
                event.ended = now
        self._life = self._pause = None
