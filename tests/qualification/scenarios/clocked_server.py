"""A server whose clock is somebody else's: a child process that reads what time it is from a file.

Between the moves the clock runs, so that timeouts and renewals pass as they do; a move takes it ahead by hours or
months at once, or back a little, as a machine that slept or was set right does. It is the same over restarts.

Its vectors come from a stand-in for a model, which takes no time unless it is told to: months hold more texts than a
real model could embed in a minute, and none of their questions is about meaning.
"""

from __future__ import annotations

import argparse
import asyncio
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.fixture_embedder import FixtureEmbedder
from tests.processes.child import Child
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until
from tests.qualification.cluster.to_the_end import in_thread_to_the_end

_ROOT: Final = Path(__file__).resolve().parents[3]
_PREFIX: Final = "DURABLE_MEMORY_SERVER_"
_NUMBER: Final = struct.Struct("<q")
_WALL, _MONOTONIC, _PROVIDER, _ASKED = (place * _NUMBER.size for place in range(4))
_BYTES: Final = 4 * _NUMBER.size
_HEALTH_SECONDS: Final = 1.0


class MovedClock:
    """`Clock` of the service: the machine's clocks, moved by what a file says in microseconds.

    One process moves it, and any number read it. The file also says how long the provider takes, and how often it was
    asked while it took any time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._shifts = mmap.mmap(file.fileno(), _BYTES)

    @classmethod
    def starting(cls, path: Path, now: datetime) -> Self:
        """A new clock, for which it is `now`."""
        ahead = now - datetime.now(UTC)
        path.write_bytes(_NUMBER.pack(ahead // timedelta(microseconds=1)) + bytes(_BYTES - _NUMBER.size))
        return cls(path)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(microseconds=self._read(_WALL))

    def monotonic(self) -> float:
        return time.monotonic() + self._read(_MONOTONIC) / 1_000_000

    def move(self, by: timedelta) -> None:
        """Move both clocks; back, only the one on the wall."""
        micros = by // timedelta(microseconds=1)
        # Ahead, what has passed is known before what time it is: a lease has run out by the time it looks old.
        self._write(_MONOTONIC, self._read(_MONOTONIC) + max(micros, 0))
        self._write(_WALL, self._read(_WALL) + micros)

    def move_to(self, moment: datetime) -> None:
        """Move ahead to a moment, if it has not passed yet."""
        self.move(max(moment - self.now(), timedelta(0)))

    @property
    def provider_seconds(self) -> float:
        """How long the provider takes for an answer."""
        return self._read(_PROVIDER) / 1_000_000

    @provider_seconds.setter
    def provider_seconds(self, seconds: float) -> None:
        self._write(_PROVIDER, round(seconds * 1_000_000))

    @property
    def provider_asked(self) -> int:
        """How often the provider was asked for an answer that takes time."""
        return self._read(_ASKED)

    def ask_provider(self) -> None:
        """Count one more. For the server alone."""
        self._write(_ASKED, self._read(_ASKED) + 1)

    def close(self) -> None:
        self._shifts.close()

    def _read(self, offset: int) -> int:
        number: int = _NUMBER.unpack_from(self._shifts, offset)[0]
        return number

    def _write(self, offset: int, micros: int) -> None:
        _NUMBER.pack_into(self._shifts, offset, micros)


class ClockedServer:
    """One such server on a loopback port of its own, without credentials. Address and log stay over its lives.

    `settings` by their name in lower case, as `vectors_redis_url`. `service_root`: another folder with the service.
    """

    def __init__(
        self, clock: MovedClock, log: Path, settings: Mapping[str, object], *, service_root: Path | None = None
    ) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self._log = log
        self._argv = [sys.executable, "-m", __name__, str(clock.path)]
        roots = (service_root or _ROOT / "service", _ROOT / "clients" / "python" / "src", _ROOT)
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")},
            "PYTHONPATH": os.pathsep.join(map(str, roots)),
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            f"{_PREFIX}ADDRESS": self.address,
            **{_PREFIX + name.upper(): str(value) for name, value in settings.items()},
        }
        self._child: Child | None = None

    async def start(self, timeout: float = 60.0) -> None:
        """Start it, and return when it says SERVING."""
        await in_thread_to_the_end(self._start, timeout)

    async def kill9(self) -> None:
        """SIGKILL, if it runs; return when it is gone."""
        child, self._child = self._child, None
        if child is not None:
            await in_thread_to_the_end(child.kill9)

    async def terminate(self, timeout: float = 30.0) -> None:
        """SIGTERM; return when it has drained and ended. Raises: RuntimeError if it did not end well."""
        child, self._child = self._child, None
        if child is None:
            raise RuntimeError("the server does not run")
        code = await in_thread_to_the_end(child.end, timeout=timeout)
        if code != 0:
            raise RuntimeError(f"the server ended with {code}:\n{child.log_tail()}")

    def _start(self, timeout: float) -> None:
        child = self._child = Child(self._argv, log=self._log, env=self._env)
        with grpc.insecure_channel(self.address, options=(("grpc.enable_http_proxy", 0),)) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            wait_until(
                lambda: _is_serving(child, health),
                timeout,
                what=lambda: f"SERVING at {self.address}:\n{child.log_tail()}",
            )


def _is_serving(child: Child, health: health_pb2_grpc.HealthStub) -> bool:
    if child.exit_code is not None:
        raise RuntimeError(f"the server ended with {child.exit_code}:\n{child.log_tail()}")
    try:
        # The published types of the stub lack its calls.
        answer = health.Check(  # type: ignore[attr-defined]
            health_pb2.HealthCheckRequest(), timeout=_HEALTH_SECONDS, wait_for_ready=True
        )
    except grpc.RpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


class StandIn(FixtureEmbedder):
    """Vectors that follow from the text alone, after as long as the clock's file says."""

    def __init__(self, clock: MovedClock) -> None:
        super().__init__()
        self._clock = clock

    async def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        if seconds := self._clock.provider_seconds:
            self._clock.ask_provider()
            await asyncio.sleep(seconds)
        return await super().embed_passages(texts)


async def serve(clock: MovedClock) -> None:
    """What `durable-memory serve` does, by another clock, until SIGTERM."""
    from durable_memory.main import build
    from durable_memory.settings_reading import load_settings
    from durable_memory.telemetry import configure_logging

    settings = load_settings()
    configure_logging(settings.telemetry.log_level)
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    application = build(settings, clock=clock, embedder=StandIn(clock))
    await application.start()
    try:
        await stopping.wait()
    finally:
        await application.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve Durable Memory by a clock that is moved from outside.")
    parser.add_argument("clock", type=Path, help="the file of the clock, as another process has made it")
    asyncio.run(serve(MovedClock(parser.parse_args().clock)))
