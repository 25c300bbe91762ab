"""One child process with everything that it starts: nothing of it outlives its owner."""

import atexit
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tests.processes import orphans
from tests.processes.polling import wait_until

_LOG_TAIL_BYTES = 4_000


class Child:
    """A started process; output of both streams is appended to ``log``."""

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str],
        cwd: Path | None = None,
    ) -> None:
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [str(part) for part in argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd=cwd,
                # Ctrl-C is for the test runner, which then ends its children in order.
                start_new_session=True,
            )
        self._log = log
        self._process = psutil.Process(self._popen.pid)
        orphans.watch(self._process)
        atexit.register(self._end_at_exit)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative is the number of the signal that ended it."""
        return self._popen.poll()

    def log_tail(self) -> str:
        return self._log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")

    def kill9(self, timeout: float = 30.0) -> None:
        """Pull the plug: SIGKILL for the process and its descendants, and wait until all are gone."""
        family = self._stopped_family()
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._popen.wait(timeout)
        self._wait_gone(family, timeout)

    def end(self, signal_number: signal.Signals = signal.SIGTERM, timeout: float = 120.0) -> int:
        """Ask the process to end, wait for it and its descendants, and return its exit code.

        One that does not end in time is killed, and the wait's error is raised.
        """
        family = self._family()
        if self.exit_code is None:
            self._popen.send_signal(signal_number)
        try:
            code = self._popen.wait(timeout)
            self._wait_gone(family, timeout)
        except BaseException:
            self.kill9()
            raise
        return code

    def _end_at_exit(self) -> None:
        if self.exit_code is None:
            self.kill9()

    def _family(self) -> list[psutil.Process]:
        try:
            return [self._process, *self._process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _stopped_family(self) -> list[psutil.Process]:
        """The process, stopped first so that it starts no other child while they are counted."""
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGSTOP)
            wait_until(lambda: self._process.status() in _AT_REST, what=f"process {self.pid} stopped")
        return self._family()

    def _wait_gone(self, family: Sequence[psutil.Process], timeout: float) -> None:
        # A descendant that lost its parent is a zombie until the init process reaps it, which may take long;
        # it holds no memory, lock or socket any more.
        wait_until(lambda: not any(map(is_alive, family)), timeout, what=f"descendants of {self.pid} gone")
        atexit.unregister(self._end_at_exit)
        orphans.forget(self._process)


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


_AT_REST = (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
