"""Workers as child processes, and everything that they and the service know held against each other."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from durable_memory_client import MemoryClient
from tests.processes.child import Child
from tests.qualification.recorder.history import History, merged
from tests.qualification.recorder.journal import read_history
from tests.qualification.recorder.operations import feed
from tests.qualification.report.timeline import Timeline
from tests.qualification.traffic.callers import Caller
from tests.qualification.traffic.judgement import Found, Kept, judge, read_all
from tests.qualification.traffic.traffic import EVERYTHING, PAUSE_SECONDS

_ROOT = Path(__file__).resolve().parents[3]
_SOURCE_ROOTS = (_ROOT, _ROOT / "clients" / "python" / "src")
_END_SECONDS = 180.0
"""No promise, but the end of patience; a worker takes up to half a minute for what is in doubt."""


class WorkerProcess:
    """One worker, from `start` until it is told to `stop`. Its journal is `<name>.jsonl` in `folder`, its log
    `<name>.log` in `logs`; `name` is its alone.

    `address` may be the way to all servers or to one of them. `resume` are the journals of workers before it, whose
    sessions it goes on with.
    """

    def __init__(
        self,
        folder: Path,
        *,
        logs: Path,
        address: str,
        token: str,
        canary: str,
        tenant: str,
        name: str,
        seed: int | str,
        scope: str = "default",
        kinds: Sequence[type[Caller]] = EVERYTHING,
        timeout: float = 2.0,
        pause: float = PAUSE_SECONDS,
        resume: Sequence[Path] = (),
    ) -> None:
        self.name = name
        self.journal = folder / f"{name}.jsonl"
        self.log = logs / f"{name}.log"
        secret, word = folder / f"{name}.token", folder / f"{name}.word"
        for path, content in ((secret, token), (word, canary)):
            path.touch(mode=0o600)
            path.write_text(content)
        # What says nothing is left out: an option that takes several would take none.
        options: dict[str, Sequence[str | Path]] = {
            "--address": [address],
            "--token-file": [secret] if token else [],
            "--canary-file": [word],
            "--tenant": [tenant],
            "--scope": [scope],
            "--name": [name],
            "--seed": [str(seed)],
            "--out": [self.journal],
            "--timeout": [str(timeout)],
            "--pause": [str(pause)],
            "--kinds": [kind.__name__ for kind in kinds],
            "--resume": resume,
        }
        self._argv: list[str | Path] = [sys.executable, "-m", "tests.qualification.traffic.worker"]
        for option, values in options.items():
            self._argv += [option, *values] if values else []
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill9()

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}
        environment["PYTHONPATH"] = os.pathsep.join(map(str, _SOURCE_ROOTS))
        self._child = Child(self._argv, log=self.log, env=environment, cwd=_ROOT)

    def kill9(self) -> None:
        """Pull the plug; what it did until then is in its journal. Idempotent."""
        child, self._child = self._child, None
        if child is not None:
            child.kill9()

    def stop(self, timeout: float = _END_SECONDS) -> None:
        """Let it end in order. Raises: RuntimeError with the end of its log, if it failed."""
        child = self._child
        if child is None:
            return
        code = child.end(timeout=timeout)
        self._child = None  # not before: until it is gone there is something to kill
        if code != 0:
            raise RuntimeError(f"worker {self.name} ended with {code}:\n{child.log_tail()}")

    def check_running(self) -> None:
        """Raises: RuntimeError with the end of its log, if it has ended by itself."""
        if self._child is not None and self._child.exit_code is not None:
            raise RuntimeError(f"worker {self.name} ended with {self._child.exit_code}:\n{self._child.log_tail()}")

    def history(self) -> History:
        """What it knows by now."""
        return read_history(self.journal) if self.journal.exists() else History()


async def check_workers(
    workers: Sequence[WorkerProcess], memory: MemoryClient, found: Found, *, timeline: Timeline | None = None
) -> tuple[History, Kept]:
    """Hold what all workers of one namespace know together against the whole of it; they have ended, one way or other.

    Their latencies and revisions go to `timeline`. What they know, and what the namespace is.
    """
    # Beside the event loop, which may carry every line of a cluster.
    history = await asyncio.to_thread(lambda: merged([worker.history() for worker in workers]))
    kept = await read_all(memory)
    for finding in await asyncio.to_thread(judge, history, kept):
        found(finding.check, finding.looked_at, finding.problems)
    if timeline is not None:
        feed(timeline, history, f"{memory.ref.tenant}/{memory.ref.scope}")
    return history, kept
