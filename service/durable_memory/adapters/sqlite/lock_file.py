"""The lock beside a database: one process serves the file, and others can find out where.

The lock is the operating system's (`flock`) and ends with the process, however that ends. The file's content is a JSON
object with `pid` and `address`, which may be out of date when nobody holds the lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any, Final

from durable_memory.domain.errors import not_serving

_SIZE: Final = 512
"""The content is padded to this size and written at once, so that a reader never sees half of it."""

_TRIES: Final = 10
_PAUSE_SECONDS: Final = 0.02
"""Whoever asks for a live server holds the lock for a moment; that must not keep a server from starting."""


class LockFile:
    """An exclusive hold on `<database>.lock`."""

    def __init__(self, database: Path) -> None:
        self._path = _lock_path(database)
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises: NOT_SERVING (pid, address) if another process, or another store of this one, holds it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            for attempt in range(_TRIES):
                if _try_lock(descriptor, fcntl.LOCK_EX):
                    break
                if attempt < _TRIES - 1:
                    time.sleep(_PAUSE_SECONDS)
            else:
                raise _served_by(_read(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self.publish(None)

    def publish(self, address: str | None) -> None:
        """Say where this process serves the database."""
        if self._descriptor is None:
            raise RuntimeError("the lock is not held")
        content = json.dumps({"pid": os.getpid(), "address": address}).ljust(_SIZE - 1) + "\n"
        os.pwrite(self._descriptor, content.encode(), 0)

    def release(self) -> None:
        """Let go; the file stays, because removing it would race with the next process. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def live_server_address(database: Path | str) -> str | None:
    """Where the process that serves a database listens; `None` if there is none, or it has not said yet."""
    try:
        descriptor = os.open(_lock_path(Path(database)), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # absent, or somebody else's: then the database is as well, and says so when it is opened
        return None
    try:
        if _try_lock(descriptor, fcntl.LOCK_SH):
            return None
        address = _read(descriptor).get("address")
        return address if isinstance(address, str) else None
    finally:
        os.close(descriptor)


def _lock_path(database: Path) -> Path:
    resolved = database.resolve()  # two names of one file must meet at one lock
    return resolved.with_name(resolved.name + ".lock")


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> dict[str, Any]:
    try:
        content = json.loads(os.pread(descriptor, _SIZE, 0))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _served_by(content: dict[str, Any]) -> Exception:
    pid, address = content.get("pid"), content.get("address")
    where = f" at {address}" if address else ""
    return not_serving("locked", f"another process ({pid}{where}) serves this database", pid=pid, address=address)
