"""Ends the children of a process that was killed before it could: run as a program, it is the watcher that does so.

Children have sessions of their own, so nothing that befalls their owner alone befalls them. The watcher holds one end
of a pipe. When nobody holds the other one any more, it kills the children that are still on its list, with all that
they have started, and nothing else: a process is known by its number and the time at which it was started.
"""

from __future__ import annotations

import atexit
import contextlib
import subprocess
import sys
import threading
from typing import IO

import psutil

_lock = threading.Lock()
_watcher: subprocess.Popen[str] | None = None


def begin() -> None:
    """Start the watcher unless it is there; `watch` does it otherwise. It ends with this process."""
    global _watcher
    with _lock:
        if _watcher is None:
            _watcher = subprocess.Popen(
                [sys.executable, "-E", "-P", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            atexit.register(_dismiss, _watcher)


def watch(process: psutil.Process) -> None:
    """Have it killed when this process is gone, however that comes about."""
    _say(f"+ {process.pid} {process.create_time()!r}")


def forget(process: psutil.Process) -> None:
    """It has ended."""
    _say(f"- {process.pid} {process.create_time()!r}")


def _say(line: str) -> None:
    begin()
    with _lock:
        assert _watcher is not None
        assert _watcher.stdin is not None
        # A watcher that is gone is missed by nobody who ends in order.
        with contextlib.suppress(BrokenPipeError):
            print(line, file=_watcher.stdin, flush=True)


def _dismiss(watcher: subprocess.Popen[str]) -> None:
    """After all children: what is registered first is done last."""
    watcher.communicate()


def _end_what_is_left(told: IO[str]) -> None:
    left: set[tuple[str, str]] = set()
    for line in told:
        sign, pid, created = line.split()
        (left.add if sign == "+" else left.discard)((pid, created))
    for pid, created in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(int(pid))
            if repr(process.create_time()) == created:
                for one in [process, *process.children(recursive=True)]:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        one.kill()


if __name__ == "__main__":
    _end_what_is_left(sys.stdin)
