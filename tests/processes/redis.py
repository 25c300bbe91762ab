"""Real Redis or Valkey servers as children of the tests: own folder, own loopback port, ended with their owner."""

import os
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import redis

from tests.processes.child import Child
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until

_CALL_SECONDS = 5.0
_EMPTY = '""'


class RespProcess(ABC):
    """One process that speaks the protocol of Redis. Address, files and log stay the same over kill9 and start."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary
        self._folder = Path(tempfile.mkdtemp(prefix="durable-memory-redis-"))
        self.log = self._folder / "server.log"
        self._child: Child | None = None
        self.port = free_port()

    @abstractmethod
    def _arguments(self) -> Sequence[str | Path]:
        """What the binary is started with; the folder is there."""

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
    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code is None

    def start(self, timeout: float = 120.0) -> None:
        """Start the process; return when it answers, with its data loaded."""
        if self.is_running:
            raise RuntimeError("the server runs already")
        child = self._child = Child(
            [self._binary, *self._arguments()],
            log=self.log,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
            cwd=self._folder,
        )
        wait_until(lambda: self._is_ready(child), timeout, what=f"Redis ready on port {self.port}")

    def ensure_running(self) -> None:
        """Start the process unless it runs."""
        if not self.is_running:
            self.start()

    def kill9(self) -> None:
        """Kill the process with SIGKILL; return when it is gone."""
        self._owned().kill9()
        self._child = None

    def restart(self) -> None:
        """Kill the process if it runs, and start it over what it has written."""
        if self.is_running:
            self.kill9()
        self.start()

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
        """End the process if it runs, and remove its files."""
        if self._child is not None:
            self.kill9()
        shutil.rmtree(self._folder)

    def _is_ready(self, child: Child) -> bool:
        if child.exit_code is not None:
            raise RuntimeError(f"Redis ended with {child.exit_code}:\n{child.log_tail()}")
        try:
            with self.client() as client:
                # Another process may have taken the port meanwhile, and this one will end because of that.
                return bool(client.ping()) and client.info("server")["process_id"] == child.pid
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
            return False

    def _owned(self) -> Child:
        if self._child is None:
            raise RuntimeError("the server was not started, or has been ended")
        return self._child


class RedisProcess(RespProcess):
    """One server of the given binary over one data folder.

    ``durable=True`` waits for the disk at every write, and a restart finds all of them; without it nothing is kept.
    ``settings`` are server settings by name. With ``keeps_settings`` they are in a file, and those that the server
    rewrites survive a restart: whose replica it is, above all.
    """

    def __init__(
        self,
        binary: Path,
        *,
        durable: bool = False,
        settings: Mapping[str, str] | None = None,
        keeps_settings: bool = False,
    ) -> None:
        super().__init__(binary)
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
        self._data = self._folder / "data"
        self._data.mkdir()
        self._keeps_settings = keeps_settings

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def tls_port(self) -> int:
        """The one among the settings, if there is one."""
        return int(self._settings["tls-port"])

    def restart_empty(self) -> None:
        """Kill the server if it runs, and start it without any data."""
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

    def catch_up(self, primary: "RedisProcess") -> None:
        """Return when this replica has everything that the primary had at the call.

        WAIT would not do: it waits for the writes of the connection that it is sent on, and for no others.
        """
        with primary.client() as theirs, self.client() as own:
            sent = theirs.info("replication")["master_repl_offset"]
            wait_until(
                lambda: own.info("replication")["slave_repl_offset"] >= sent, 20.0, what="the replica has everything"
            )

    def promote(self) -> None:
        """Become a primary with what is here."""
        with self.client() as client:
            client.replicaof("NO", "ONE")

    def keep_setting(self, name: str, value: str) -> None:
        """Change a setting for the next start. The server is stopped, and keeps its settings."""
        with self._written_settings().open("a") as file:
            file.write(_line(name, value))

    def _arguments(self) -> Sequence[str | Path]:
        if self._keeps_settings:
            return [self._written_settings()]
        return [part for name, value in self._all_settings().items() for part in (f"--{name}", value)]

    def _all_settings(self) -> dict[str, str]:
        return {"port": str(self.port), "dir": str(self._data), **self._settings}

    def _written_settings(self) -> Path:
        """The file with the settings, made when it is first needed: from then on it is the server's."""
        file = self._folder / "redis.conf"
        if not file.exists():
            file.write_text("".join(_line(name, value) for name, value in self._all_settings().items()))
        return file


def _line(name: str, value: str) -> str:
    return f"{name} {value or _EMPTY}\n"
