"""A real PostgreSQL server as a child of the tests: own folder, own loopback port, ended with its owner."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import asyncpg

from tests.processes.child import Child
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until
from tests.processes.postgres_binaries import postgres_bindir

SUPERUSER = "postgres"

# Room for the tests' concurrent writers on two servers; small memory, because workers run side by side.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
}
# For tests that never kill the server: commits do not wait for the disk.
_FAST = {"fsync": "off", "full_page_writes": "off"}


class PostgresProcess:
    """One server over one data folder.

    ``durable=False`` turns the waits for the disk off. ``settings`` are server settings by name and win over
    those of this class. ``files`` are texts by the name of a setting, which then names a file with it that the server
    alone can read. Address and data stay the same over kill9, restart and stop; ``close`` removes them.
    """

    def __init__(
        self,
        *,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        self._bindir = postgres_bindir()
        self._settings = {**_SETTINGS, **({} if durable else _FAST), **(settings or {})}
        # PostgreSQL refuses to run as root; its user could not reach a folder below pytest's private one.
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="durable-memory-postgres-"))
        self._data = self._folder / "data"
        self.log = self._folder / "server.log"
        if self._account:
            os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)
        self._settings |= {name: self._keep_file(name, text) for name, text in (files or {}).items()}
        # PG* variables of the caller must not lead this server or its tools anywhere else.
        self._env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
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
    def pid(self) -> int:
        """Of the process whose children all the others are."""
        return self._owned().pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.exit_code is None

    def dsn(self, database: str = "postgres") -> str:
        """The URL of a database of this server, for asyncpg and for ``--store``."""
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def start(self, timeout: float = 180.0) -> None:
        """Start the server, on the first call over a new data folder; return when it accepts connections."""
        if self.is_running:
            raise RuntimeError("the server runs already")
        if not self._data.exists():
            self._initialise()
        settings = [f"--{name.replace('_', '-')}={value}" for name, value in self._settings.items()]
        child = self._child = Child(
            self._unprivileged(self._bindir / "postgres", "-D", self._data, "-p", str(self.port), *settings),
            log=self.log,
            env=self._env,
            cwd=self._folder,
        )
        wait_until(lambda: self._is_ready(child), timeout, what=f"PostgreSQL ready on port {self.port}")

    def ensure_running(self) -> None:
        """Start the server unless it runs."""
        if not self.is_running:
            self.start()

    def kill9(self) -> None:
        """Kill the server and all its processes with SIGKILL; return when they are gone."""
        self._owned().kill9()
        self._child = None

    def stop(self) -> None:
        """End the server in order (fast shutdown: open transactions are rolled back)."""
        self._owned().end(signal.SIGINT)
        self._child = None

    def restart(self) -> None:
        """Start again over the same data: after kill9 with crash recovery, otherwise after a stop."""
        if self._child is not None:
            self.stop()
        self.start()

    def become_standby(self) -> None:
        """Start in recovery the next time, and stay there until it is promoted. The server is stopped."""
        signal_file = self._data / "standby.signal"
        signal_file.touch()
        if self._account:
            os.chown(signal_file, self._account.pw_uid, self._account.pw_gid)

    def keep_setting(self, name: str, value: str) -> None:
        """Change a setting in the data folder, as ALTER SYSTEM does, for the next start. The server is stopped."""
        quoted = value.replace("'", "''")
        with (self._data / "postgresql.auto.conf").open("a") as file:
            file.write(f"{name} = '{quoted}'\n")

    def copy_from(self, port: int) -> None:
        """Replace the data with a base backup of the running server on a loopback port. This server is stopped."""
        if self._data.exists():
            shutil.rmtree(self._data)
        source = f"host=127.0.0.1 port={port} user={SUPERUSER}"
        # No machine fails here, only processes: what is written need not be on the disk before the first start.
        backup = ("--wal-method=stream", "--checkpoint=fast", "--no-sync", f"--dbname={source}")
        self._run("pg_basebackup", f"--pgdata={self._data}", *backup)

    def close(self) -> None:
        """End the server if it runs, and remove its data."""
        if self._child is not None:
            self.stop()
        shutil.rmtree(self._folder)

    async def create_database(self, name: str, *, template: str = "template0") -> str:
        """Create a database as a copy of ``template``, which nobody may be connected to; return its DSN."""
        await self._administer(f"CREATE DATABASE {_quoted(name)} TEMPLATE {_quoted(template)}")
        return self.dsn(name)

    async def drop_database(self, name: str) -> None:
        """Drop a database and cut the connections to it."""
        await self._administer(f"DROP DATABASE {_quoted(name)} WITH (FORCE)")

    async def connections(self, database: str) -> int:
        """How many client connections to the database are open."""
        connection = await asyncpg.connect(self.dsn())
        try:
            count = await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'",
                database,
            )
        finally:
            await connection.close()
        return int(count)

    def _keep_file(self, name: str, text: str) -> str:
        file = self._folder / name
        file.touch(mode=0o600)
        file.write_text(text)
        if self._account:
            os.chown(file, self._account.pw_uid, self._account.pw_gid)
        return str(file)

    async def _administer(self, statement: str) -> None:
        connection = await asyncpg.connect(self.dsn())
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    def _initialise(self) -> None:
        self._run(
            "initdb",
            f"--pgdata={self._data}",
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
            "--no-instructions",
        )

    def _run(self, tool: str, *arguments: str) -> None:
        """Run a program of the server's version to its end."""
        result = subprocess.run(
            self._unprivileged(self._bindir / tool, *arguments),
            capture_output=True,
            text=True,
            check=False,
            env=self._env,
            cwd=self._folder,
        )
        if result.returncode != 0:
            raise RuntimeError(f"{tool} failed:\n{result.stdout}{result.stderr}")

    def _unprivileged(self, *argv: str | Path) -> list[str]:
        """The command as the account that PostgreSQL accepts.

        Another program changes the user: if Python did, it would have to fork, and a fork of a process in which gRPC
        has threads crashes now and then.
        """
        command = [str(part) for part in argv]
        if self._account is None:
            return command
        user, group = self._account.pw_uid, self._account.pw_gid
        return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--", *command]

    def _is_ready(self, child: Child) -> bool:
        if child.exit_code is not None:
            raise RuntimeError(f"PostgreSQL ended with {child.exit_code}:\n{child.log_tail()}")
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        # Line 1 is the process, line 8 its state; a killed predecessor's file is still there at first.
        return len(lines) >= 8 and lines[0].strip() == str(child.pid) and lines[7].strip() == "ready"

    def _owned(self) -> Child:
        if self._child is None:
            raise RuntimeError("the server was not started, or has been ended")
        return self._child


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
