"""The executors: one program per language that makes the calls of a case with that language's client."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

ROOT: Final = Path(__file__).parents[2]
CASE_SECONDS: Final = 240.0
"""After which a case has hung, for longer than all deadlines of its steps."""

_PYTHON_PATH: Final = os.pathsep.join(map(str, (ROOT, ROOT / "clients/python/src")))


@dataclass(frozen=True, slots=True)
class Language:
    """`tools`: what must be on PATH; without one of them the language is reported as not run.

    `build` runs once; `{scratch}` in both commands is a temporary folder.
    """

    name: str
    tools: Sequence[str]
    build: Sequence[Sequence[str]]
    command: Sequence[str]

    def missing(self) -> str | None:
        return next((tool for tool in self.tools if shutil.which(tool) is None), None)


LANGUAGES: Final = (
    Language("python", (), (), (sys.executable, "-m", "clients.python.conformance.executor")),
    Language(
        "go",
        ("go",),
        (("go", "-C", "clients/go", "build", "-o", "{scratch}/executor", "./internal/conformance"),),
        ("{scratch}/executor",),
    ),
    Language(
        "node",
        ("node", "npm"),
        (("tools/setup_node",), ("npm", "--prefix", "clients/node", "run", "--silent", "build:tests")),
        ("node", "clients/node/build/conformance/executor.js"),
    ),
)


class ExecutorError(Exception):
    """The executor ended, said nothing in time, or something that is no outcome."""


class Executor:
    """A running executor: a line of JSON in, a line of JSON out. One that fails is started anew for the next case."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._scratch = tempfile.TemporaryDirectory(prefix="durable-memory-conformance-")
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        for command in self.language.build:
            subprocess.run(self._settled(command), cwd=ROOT, check=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._scratch.cleanup()

    def run(self, order: Mapping[str, Any]) -> list[Any]:
        """The outcomes of the steps, in order. Raises: ExecutorError."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        overdue = threading.Timer(CASE_SECONDS, process.kill)
        overdue.start()
        try:
            process.stdin.write(json.dumps(order, ensure_ascii=False) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError as error:
            line = ""
            cause: Any = error
        else:
            cause = None
        finally:
            overdue.cancel()
        try:
            outcomes = json.loads(line)["outcomes"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            self._end()
            raise ExecutorError(f"the executor answered {line[:500]!r}") from (cause or error)
        if not isinstance(outcomes, list):
            raise ExecutorError(f"the executor answered {line[:500]!r}")
        return outcomes

    def cancel(self) -> None:
        """Cancel the call that is under way: its step waits for this. `run` goes on meanwhile, in another thread."""
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.write("cancel\n")
                process.stdin.flush()

    def _start(self) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}
        environment["PYTHONPATH"] = _PYTHON_PATH
        environment["GRPC_VERBOSITY"] = "ERROR"  # a service that is stopped on purpose is no news
        self._process = subprocess.Popen(
            self._settled(self.language.command),
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for close in _closers(process):
            with suppress(OSError):
                close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _settled(self, command: Sequence[str]) -> list[str]:
        return [part.format(scratch=self._scratch.name) for part in command]


def _closers(process: subprocess.Popen[str]) -> list[Callable[[], None]]:
    return [stream.close for stream in (process.stdin, process.stdout) if stream is not None]
