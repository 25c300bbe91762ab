"""The file with its lock, its one writing connection, and its readers. Everything here blocks: never on the loop."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import LifoQueue
from typing import Final, TypeVar

from durable_memory.adapters.sqlite.connection import (
    connect,
    domain_error,
    fetch,
    run,
    use_write_ahead_log,
)
from durable_memory.adapters.sqlite.lock_file import LockFile
from durable_memory.adapters.sqlite.migrations import migrate, refuse_foreign
from durable_memory.adapters.sqlite.statements import SQL
from durable_memory.domain.errors import not_serving
from durable_memory.ports.runtime import Ids

READERS: Final = 4

T = TypeVar("T")


def renew_page_token_keys(writer: sqlite3.Connection, ids: Ids) -> None:
    """Mint a key when one is due, and forget what no token is signed with any more."""
    if all(row["due"] for row in fetch(writer, "page_token_keys", {})):
        _mint_page_token_key(writer, ids)
        run(writer, "forget_page_token_keys", {})


def _mint_page_token_key(writer: sqlite3.Connection, ids: Ids) -> None:
    run(writer, "add_page_token_key", {"key": bytes.fromhex(ids.random_hex(32))})


class Database:
    """Opened and closed by the writer's thread, which alone uses `writer`; `read` is for the threads of `readers`."""

    def __init__(self, path: Path, ids: Ids) -> None:
        self._path = path
        self._ids = ids
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._undo = ExitStack()
        self.lock = LockFile(path)
        self.writer: sqlite3.Connection
        self.readers: ThreadPoolExecutor
        self.history_id: str

    def open(self) -> None:
        """Take the lock, create or migrate the file, and connect.

        Raises: NOT_SERVING, DATA_CORRUPTED, DEPENDENCY_UNAVAILABLE; then nothing is left open.
        """
        try:
            with ExitStack() as undo:
                self.lock.acquire()
                undo.callback(self.lock.release)
                self._create_file()
                self.writer = connect(self._path, writer=True)
                undo.callback(self.writer.close)
                self._prepare()
                for _ in range(READERS):
                    reader = connect(self._path, writer=False)
                    undo.callback(reader.close)
                    self._idle.put(reader)
                self.readers = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite-reader")
                undo.callback(self.readers.shutdown)
                self._undo = undo.pop_all()
        except sqlite3.Error as error:
            raise domain_error(error) from error
        except OSError as error:
            raise not_serving("file", f"the database cannot be opened: {error.strerror}") from error

    def close(self) -> None:
        """Wait for the reads that run, then let go of every thread and file."""
        self._undo.close()

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The result of a query on one snapshot.

        Raises: what the query does, and the domain errors of the file.
        """
        connection = self._idle.get()  # there are as many as threads, so this never waits
        try:
            connection.execute(SQL["begin_read"])
            try:
                return query(connection)
            finally:
                connection.rollback()
        except sqlite3.Error as error:
            raise domain_error(error) from error
        finally:
            self._idle.put(connection)

    def _create_file(self) -> None:
        """An absent file is created for its owner alone, and its name is on the disk before anything is in it."""
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _prepare(self) -> None:
        """Bring the file to this version's schema, and mint what it has only one of."""
        refuse_foreign(self.writer)
        use_write_ahead_log(self.writer)
        migrate(self.writer)
        self.writer.execute(SQL["begin_write"])
        run(self.writer, "add_store", {"history_id": self._ids.random_hex(16)})
        if not fetch(self.writer, "page_token_keys", {}):
            _mint_page_token_key(self.writer, self._ids)
        self.writer.commit()
        (store,) = fetch(self.writer, "ping", {})
        self.history_id = store["history_id"]
