"""Racers as processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[3]
_ANSWER_SECONDS = 90.0
_BEFORE_THE_START_SECONDS = 0.1


class RacerProcess:
    """One racer. An order and its answer are lines of JSON."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    @asynccontextmanager
    async def started(cls, url: str, owner: str) -> AsyncIterator[RacerProcess]:
        paths = os.pathsep.join(map(str, (_ROOT, _ROOT / "service", _ROOT / "clients" / "python" / "src")))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.integration.redis.racer", url, owner),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=_ROOT,
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": paths},
        )
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            await process.wait()

    async def ask(self, do: str, **arguments: Any) -> Any:
        self.tell(do, **arguments)
        return await self.answer()

    def tell(self, do: str, **arguments: Any) -> None:
        """Give an order, whether or not the racer can take it now."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")

    async def answer(self) -> Any:
        assert self._process.stdout is not None
        async with asyncio.timeout(_ANSWER_SECONDS):
            line = await self._process.stdout.readline()
        assert line, f"a racer ended with {await self._process.wait()}"
        return json.loads(line)

    def stop(self) -> None:
        """Let the process stand still, as a machine does that swaps or is paused."""
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@asynccontextmanager
async def racing(url: str, count: int) -> AsyncIterator[list[RacerProcess]]:
    async with AsyncExitStack() as stack:
        started = [stack.enter_async_context(RacerProcess.started(url, f"owner-{number}")) for number in range(count)]
        yield [await racer for racer in started]


async def all_at_once(racers: list[RacerProcess], do: str, *each: dict[str, Any], **arguments: Any) -> list[Any]:
    """The answers to one order, begun at one moment; `each` are arguments of each racer's own."""
    at = time.monotonic() + _BEFORE_THE_START_SECONDS
    for racer, own in zip(racers, each or ({},) * len(racers), strict=True):
        racer.tell(do, at=at, **arguments, **own)
    return await asyncio.gather(*(racer.answer() for racer in racers))
