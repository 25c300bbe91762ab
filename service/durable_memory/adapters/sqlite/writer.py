"""The one thread that writes, and the jobs that it is given.

Jobs that wait are run together in one transaction, each inside a savepoint, so that many of them pay for one wait for
the disk. Nobody is answered before the commit, because what one job saw of another is true only then.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from queue import Empty, SimpleQueue
from typing import Any, Final

from durable_memory.adapters.sqlite.connection import domain_error, primary_code
from durable_memory.adapters.sqlite.database import Database
from durable_memory.adapters.sqlite.statements import SQL
from durable_memory.domain.errors import dependency_unavailable, outcome_unknown
from durable_memory.domain.state import Head

MOST_TOGETHER: Final = 64

_ROLLED_BACK: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY})
"""Commit failures after which nothing of the transaction can be on the disk as a whole."""


class _State(Enum):
    WAITING = "waiting"
    SEALED = "sealed"
    ABANDONED = "abandoned"


class Job:
    """One atomic write. `work` runs inside a transaction and returns its result, with the namespace's head after it.

    What moves no namespace has no head and an empty key.
    """

    def __init__(
        self, key: bytes, work: Callable[[sqlite3.Connection], tuple[Head | None, Any]], future: asyncio.Future[Any]
    ) -> None:
        self.key = key
        self.work = work
        self.future = future
        self.head: Head | None = None
        self.result: Any = None
        self.error: Exception | None = None
        self._state = _State.WAITING
        self._lock = threading.Lock()

    def abandon(self) -> bool:
        """Called when nobody waits any more; whether it came in time, so that nothing of this job is written."""
        with self._lock:
            if self._state is _State.WAITING:
                self._state = _State.ABANDONED
            return self._state is _State.ABANDONED

    def seal(self) -> bool:
        """Called before the commit; whether the job is still wanted. From here on it is carried through."""
        with self._lock:
            if self._state is _State.WAITING:
                self._state = _State.SEALED
            return self._state is _State.SEALED

    @property
    def abandoned(self) -> bool:
        return self._state is _State.ABANDONED

    def succeed(self, head: Head | None, result: Any) -> None:
        self.head, self.result, self.error = head, result, None

    def fail(self, error: Exception) -> None:
        self.head, self.result, self.error = None, None, error


class Writer:
    """`answer` is called on the event loop with each group of jobs, in the order of their commits."""

    def __init__(
        self, database: Database, loop: asyncio.AbstractEventLoop, answer: Callable[[Sequence[Job]], None]
    ) -> None:
        self._database = database
        self._loop = loop
        self._answer = answer
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._opened: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._thread = threading.Thread(target=self._main, name="sqlite-writer", daemon=True)
        self.stopped = False
        """Whether a commit failed in a way that leaves open what is on the disk. Then nothing more is written: a
        later commit could succeed on top of pages that never arrived."""

    async def start(self) -> None:
        """Open the database. Raises as `Database.open`."""
        self._thread.start()
        try:
            await asyncio.shield(self._opened)
        except asyncio.CancelledError:
            self._queue.put(None)  # nobody will close what is being opened
            raise

    def submit(self, job: Job) -> None:
        self._queue.put(job)

    async def finish(self) -> None:
        """Run what was submitted, then close the database. Idempotent."""
        self._queue.put(None)
        await asyncio.shield(self._closed)
        self._thread.join()

    # In the thread

    def _main(self) -> None:
        try:
            self._database.open()
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits for the start has to get it
            self._post(self._opened.set_exception, error)
            return
        self._post(self._opened.set_result, None)
        try:
            while group := self._next_group():
                try:
                    self._run(group)
                except Exception as error:  # noqa: BLE001 - a defect here must reach whoever waits, and end all writing
                    self.stopped = True
                    for job in group:
                        job.fail(error)
                self._post(self._answer, group)
        finally:
            try:
                self._database.close()
            finally:
                self._post(self._closed.set_result, None)

    def _next_group(self) -> list[Job]:
        """Everything that waits, at least one job; nothing at the end."""
        group: list[Job] = []
        job = self._queue.get()
        while job is not None:
            group.append(job)
            if len(group) == MOST_TOGETHER:
                break
            try:
                job = self._queue.get_nowait()
            except Empty:
                break
        else:
            if group:
                self._queue.put(None)  # the end comes after this group
        return group

    def _run(self, group: Sequence[Job]) -> None:
        if self.stopped:
            for job in group:
                job.fail(dependency_unavailable("the store stopped writing after a failed commit; restart it"))
            return
        try:
            self._commit_together(group)
        except sqlite3.Error as error:
            # Nothing of the group was written. One of them may be to blame, so each gets a transaction of its own;
            # but a file that somebody else holds is held for all.
            if len(group) == 1 or primary_code(error) == sqlite3.SQLITE_BUSY:
                for job in group:
                    job.fail(domain_error(error))
            else:
                for job in group:
                    self._run([job])

    def _commit_together(self, group: Sequence[Job]) -> None:
        connection = self._database.writer
        connection.execute(SQL["begin_write"])
        try:
            for job in group:
                if not job.abandoned:
                    self._run_inside(connection, job)
        except BaseException:
            connection.rollback()
            raise
        try:
            connection.commit()
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                connection.rollback()
            if primary_code(error) in _ROLLED_BACK:
                raise
            self.stopped = True
            for job in group:
                wrote = job.error is None
                job.fail(outcome_unknown() if wrote else dependency_unavailable("the store failed during commit"))

    def _run_inside(self, connection: sqlite3.Connection, job: Job) -> None:
        """Run one job in its savepoint. Raises sqlite3.Error when the transaction as a whole is in doubt."""
        connection.execute(SQL["savepoint"])
        try:
            head, result = job.work(connection)
        except sqlite3.IntegrityError as error:
            job.fail(domain_error(error))
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - a decision may raise anything; it goes to its caller as it is
            job.fail(error)
        else:
            if job.seal():
                job.succeed(head, result)
                connection.execute(SQL["release"])
                return
        connection.execute(SQL["roll_back_to"])
        connection.execute(SQL["release"])

    def _post(self, call: Callable[..., object], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            # The loop was closed before the store, and nobody waits for this answer any more.
            return
