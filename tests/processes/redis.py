"""A real Redis or Valkey server as a child of the tests: own folder, own loopback port, ended with its owner."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import redis

from tests.processes.child import Child
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until

_CALL_SECONDS = 5.0


class RedisProcess:
    """One server of the given binary over one data folder.

    ``durable=True`` waits for the disk at every write, and a restart finds all of them; without it nothing is kept.
    ``settings`` are server settings by name. Address, data and log stay the same over kill9 and restart; ``close``
    removes them.
    """

    def __init__(self, binary: Path, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self._binary = binary
        self._settings = {
            "bind": "127.0.0.1",
            "save": "",
            "appendonly": "yes" if durable else "no",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            # A replica gets what it needs at once, without the file that is otherwise made for several of them.
            "repl-diskless-sync": "yes",
            "repl-diskless-sync-delay": "0",
            **(settings or {}),
        }
        self._folder = Path(tempfile.mkdtemp(prefix="durable-memory-redis-"))
        self._data = self._folder / "data"
        self._data.mkdir()
        self.log = self._folder / "server.log"
        self._child: Child | None = None
        self.port = free_port()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def tls_port(self) -> int:
        """The one among the settings, if there is one."""
        return int(self._settings["tls-port"])

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code is None

    def start(self, timeout: float = 30.0) -> None:
        """Start the server; return when it answers, with its data loaded."""
        if self.is_running:
            raise RuntimeError("the server runs already")
        settings = [part for name, value in self._settings.items() for part in (f"--{name}", value)]
        child = self._child = Child(
            [self._binary, "--port", str(self.port), "--dir", str(self._data), *settings],
            log=self.log,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
            cwd=self._folder,
        )
        wait_until(lambda: self._is_ready(child), timeout, what=f"Redis ready on port {self.port}")

    def ensure_running(self) -> None:
        """Start the server unless it runs."""
        if not self.is_running:
            self.start()

    def kill9(self) -> None:
        """Kill the server with SIGKILL; return when it is gone."""
        self._owned().kill9()
        self._child = None

    def restart(self) -> None:
        """Kill the server if it runs, and start it over the data that it has written."""
        if self.is_running:
            self.kill9()
        self.start()

    def restart_empty(self) -> None:
        """Kill the server if it runs, and start it without anything."""
        if self.is_running:
            self.kill9()
        shutil.rmtree(self._data)
        self._data.mkdir()
        self.start()

    def keep_data(self) -> Path:
        """A copy of what a durable server has written so far, for `restart_from`. Nobody writes meanwhile."""
        copy = Path(tempfile.mkdtemp(prefix="kept-", dir=self._folder))
        shutil.copytree(self._data, copy, dirs_exist_ok=True)
        return copy

    def restart_from(self, kept: Path) -> None:
        """Kill the server if it runs, and start it over an earlier state of its data."""
        if self.is_running:
            self.kill9()
        shutil.rmtree(self._data)
        shutil.copytree(kept, self._data)
        self.start()

    def replicate(self, port: int) -> None:
        """Become a replica of the server on a loopback port; return when it has all that is there."""
        with self.client() as client:
            client.replicaof("127.0.0.1", str(port))
            wait_until(
                lambda: client.info("replication")["master_link_status"] == "up", 20.0, what="the replica is in step"
            )

    def promote(self) -> None:
        """Become a primary with what is here."""
        with self.client() as client:
            client.replicaof("NO", "ONE")

    @contextmanager
    def client(self) -> Iterator["redis.Redis"]:
        """A client of one connection, for looking and meddling."""
        client = redis.Redis(port=self.port, socket_timeout=_CALL_SECONDS, protocol=2, single_connection_client=True)
        try:
            yield client
        finally:
            client.close()

    def stop_answering(self) -> None:
        """Let the process stand still: connections stay, and nothing answers."""
        os.kill(self._owned().pid, signal.SIGSTOP)

    def answer_again(self) -> None:
        os.kill(self._owned().pid, signal.SIGCONT)

    def close(self) -> None:
        """End the server if it runs, and remove its data."""
        if self._child is not None:
            self.kill9()
        shutil.rmtree(self._folder)

    def _is_ready(self, child: Child) -> bool:
        if child.exit_code is not None:
            raise RuntimeError(f"Redis ended with {child.exit_code}:\n{child.log_tail()}")
        try:
            with self.client() as client:
                return bool(client.ping())
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
            return False

    def _owned(self) -> Child:
        if self._child is None:
            raise RuntimeError("the server was not started, or has been ended")
        return self._child
