"""A real server for tests: the embedded shape, as a child process over a temporary SQLite file.

The pytest fixtures `durable_memory_server` and `durable_memory_client` use it; so can any other test framework.
"""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

from durable_memory_client.aio.client import MemoryClient
from durable_memory_client.errors import MemoryUnavailableError
from durable_memory_client.sync.client import MemoryClient as BlockingMemoryClient

SERVER_MISSING: Final = "a test server needs the service in the environment of the tests: pip install durable-memory"

# Below the ephemeral range of Linux and macOS: no outgoing connection takes the port while the server starts.
_FIRST_PORT, _LAST_PORT = 20_000, 32_000
_START_ATTEMPTS: Final = 3
_PROBE_SECONDS: Final = 0.2
_LONGEST_PROBE_SECONDS: Final = 5.0
_PROBE_GROWTH: Final = 1.25
"""On a machine that is busy, an answer may take longer than the first probes wait for it."""
_STOP_SECONDS: Final = 10.0
_LOG_TAIL_BYTES: Final = 4_000


class ServerStartError(RuntimeError):
    """The server did not become ready; the message ends with what it said."""


class EmbeddedServer:
    """One server of its own, on a free loopback port.

        with EmbeddedServer() as server:
            with server.blocking_client() as memory: ...

    It asks for no credentials, and its folder is removed with it. Recall is by words only, the same on every machine,
    unless `embedding_provider` says who makes vectors: `local` runs the packaged model of `durable-memory[local]`.
    """

    def __init__(self, *, embedding_provider: str = "none") -> None:
        self._embedding_provider = embedding_provider
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""

    @property
    def address(self) -> str:
        """`host:port`, once it has been started."""
        if not self._address:
            raise RuntimeError("the server has not been started")
        return self._address

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, timeout: float = 60.0) -> None:
        """Start it and wait until it answers. Raises: ServerStartError."""
        if importlib.util.find_spec("durable_memory") is None:
            raise ServerStartError(SERVER_MISSING)
        self._folder = tempfile.TemporaryDirectory(prefix="durable-memory-test-")
        try:
            ends_at = time.monotonic() + timeout
            for _ in range(_START_ATTEMPTS):
                # Another process may have taken the port in between; then the server ends, and another one is tried.
                if self._try_start(ends_at):
                    return
            raise ServerStartError(f"the test server did not become ready:\n{self.log()}")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it, and remove what it stored. Harmless if it does not run."""
        self._end_process()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def log(self) -> str:
        """The end of what the server has written."""
        if self._folder is None:
            return ""
        return (Path(self._folder.name) / "server.log").read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")

    def client(self, principal: str | None = None) -> MemoryClient:
        """An asyncio client in a namespace of its own; close it, or use it as a block."""
        return MemoryClient(f"http://{self.address}", tenant="test", principal=principal or _fresh(), scope="test")

    def blocking_client(self, principal: str | None = None) -> BlockingMemoryClient:
        """A blocking client in a namespace of its own; close it, or use it as a block."""
        return BlockingMemoryClient(
            f"http://{self.address}", tenant="test", principal=principal or _fresh(), scope="test"
        )

    @property
    def _recalls_by_meaning(self) -> bool:
        """Whether it will for sure."""
        return self._embedding_provider not in ("none", "auto")

    def _try_start(self, ends_at: float) -> bool:
        assert self._folder is not None
        folder = Path(self._folder.name)
        self._address = f"127.0.0.1:{_free_port()}"
        # The tests' own settings are for clients, and for servers that they start themselves.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}
        environment["DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER"] = self._embedding_provider
        # The server is found where the tests find it, also when that is not the site-packages of the interpreter.
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        with (folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "durable_memory", "serve"),
                    *("--address", self._address, "--store", f"sqlite:///{folder / 'memory.db'}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment,
                # Ctrl-C is for the test runner, which then ends the server in order.
                start_new_session=True,
            )
        seconds = _PROBE_SECONDS
        with self.blocking_client() as probe:
            while self._process.poll() is None and time.monotonic() < ends_at:
                try:
                    info = probe.wait_until_ready(seconds)
                except MemoryUnavailableError:
                    seconds = min(_LONGEST_PROBE_SECONDS, seconds * _PROBE_GROWTH)
                    continue
                if info.semantic_generations or not self._recalls_by_meaning:
                    return True
                # Until its model is loaded, recall is by words, and stays so for the sessions that are opened.
                time.sleep(_PROBE_SECONDS)
        self._end_process()
        return False

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _fresh() -> str:
    return f"principal-{uuid4()}"


def _free_port() -> int:
    # Own randomness: test plugins seed the global generator alike in every worker process.
    source = random.SystemRandom()
    while True:
        port = source.randint(_FIRST_PORT, _LAST_PORT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
