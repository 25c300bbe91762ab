"""A real Durable Memory server as a child of the tests, started as a user starts it."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.processes.child import Child
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until

_ROOT = Path(__file__).resolve().parents[2]
_SOURCE_ROOTS = (_ROOT / "service", _ROOT / "clients" / "python" / "src")

# Redial at once: the server is a child that is about to listen. The proxy of the machine is not for loopback.
_CHANNEL_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
)
_HEALTH_CALL_SECONDS = 1.0


class ServerProcess:
    """One ``durable-memory serve`` on a loopback port of its own.

    ``store`` is a store URL: ``memory:``, ``sqlite:///path/file.db`` or ``postgresql://...``. ``args`` are
    further flags of ``serve``; ``env`` adds to the environment, from which the caller's own DURABLE_MEMORY_*
    are taken out. It makes no vectors unless ``env`` names a provider. Address and store stay the same over
    kill9, terminate and restart; ``log`` collects the output of all of them. ``service_root`` is a folder with
    another package durable_memory, which is served instead of this checkout's.
    """

    def __init__(
        self,
        store: str,
        log: Path,
        *,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        service_root: Path | None = None,
    ) -> None:
        source_roots = (*([service_root] if service_root else []), *_SOURCE_ROOTS)
        self.address = f"127.0.0.1:{free_port()}"
        self.store = store
        self.log = log
        self._args = tuple(args)
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")},
            "PYTHONPATH": os.pathsep.join(map(str, source_roots)),
            "PYTHONUNBUFFERED": "1",
            "DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER": "none",
            **(env or {}),
        }
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._owned().pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; what it answered if it ended without being told by this object."""
        return self._owned().exit_code

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code is None

    @property
    def ended_by_itself(self) -> bool:
        """Whether it ended although neither kill9 nor terminate told it to."""
        return self._child is not None and self._child.exit_code is not None

    def log_text(self) -> str:
        """Everything that the server has written to stdout and stderr."""
        return self.log.read_text(errors="replace")

    def start(self, timeout: float = 60.0) -> None:
        """Start the server; return when its health service says SERVING."""
        self.launch()
        try:
            self.wait_serving(timeout)
        except BaseException:
            self.close()
            raise

    def launch(self) -> None:
        """Start the process without waiting, for a server that is not expected to become ready."""
        if self.is_running:
            raise RuntimeError("the server runs already")
        self._child = Child(
            [
                *(sys.executable, "-m", "durable_memory", "serve"),
                *("--address", self.address, "--store", self.store),
                *self._args,
            ],
            log=self.log,
            env=self._env,
        )

    def wait_serving(self, timeout: float = 60.0) -> None:
        """Wait until the health service answers SERVING for the whole server."""
        child = self._owned()
        with grpc.insecure_channel(self.address, options=_CHANNEL_OPTIONS) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            wait_until(
                lambda: _is_serving(child, health),
                timeout,
                what=lambda: f"SERVING at {self.address}:\n{child.log_tail()}",
            )

    def wait_exit(self, timeout: float = 60.0) -> int:
        """Wait until the server ends by itself; return its exit code."""
        child = self._owned()
        wait_until(lambda: child.exit_code is not None, timeout, what=f"exit of the server at {self.address}")
        return self.terminate()

    def kill9(self) -> None:
        """Kill the server with SIGKILL; return when it is gone."""
        self._owned().kill9()
        self._child = None

    def terminate(self, timeout: float = 60.0) -> int:
        """Drain: SIGTERM, wait for the end, and return the exit code. One that does not end in time is killed.

        Raises: what the wait for its end raises.
        """
        try:
            return self._owned().end(timeout=timeout)
        finally:
            self._child = None

    def restart(self, timeout: float = 60.0) -> None:
        """Start again at the same address over the same store: after kill9, or after a drain."""
        if self._child is not None:
            self.terminate()
        self.start(timeout)

    def close(self) -> None:
        """Leave no process behind."""
        if self._child is not None:
            self.kill9()

    def _owned(self) -> Child:
        if self._child is None:
            raise RuntimeError("the server was not started, or has been ended")
        return self._child


def _is_serving(child: Child, health: health_pb2_grpc.HealthStub) -> bool:
    if child.exit_code is not None:
        raise RuntimeError(f"the server ended with {child.exit_code}:\n{child.log_tail()}")
    try:
        # The published types of the stub lack its calls.
        answer = health.Check(  # type: ignore[attr-defined]
            health_pb2.HealthCheckRequest(), timeout=_HEALTH_CALL_SECONDS
        )
    except grpc.RpcError as error:
        if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            return False
        raise
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
