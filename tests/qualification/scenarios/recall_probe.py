"""One known memory is asked for without a pause, in each mode, so that nothing that lasts longer goes unseen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from durable_memory_client import MemoryServiceError, RecallMode
from tests.qualification.checks.probes import Probe
from tests.qualification.scenarios.indexed_place import IndexedPlace
from tests.qualification.traffic.wording import text_of

MODES: Final = (RecallMode.LEXICAL, RecallMode.AUTO, RecallMode.HYBRID)
_PAUSE_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 30.0
"""No promise, but the end of patience: on a busy machine a recall takes long."""

_MOST_RESULTS: Final = 3


class RecallProbe:
    """Asks for as long as the block lasts, in each mode one recall after the other.

    The question is the text of what the place remembered first, unless it is given: a provider is asked for its vector
    once by each server.
    """

    def __init__(self, place: IndexedPlace, modes: Sequence[RecallMode] = MODES, *, question: str = "") -> None:
        self.probes: list[Probe] = []
        self._place = place
        self._modes = modes
        self._question = question or text_of(place.remembered[0], place.canary)
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._ask(mode)) for mode in self._modes]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def _ask(self, mode: RecallMode) -> None:
        while not self._stopping.is_set():
            self.probes.append(await self._once(mode))
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _once(self, mode: RecallMode) -> Probe:
        began = time.monotonic()
        try:
            asking = self._place.client.preview(
                self._question, mode=mode, max_results=_MOST_RESULTS, timeout=PATIENCE_SECONDS
            )
            recall = await self._place.tally.of("PreviewRecall", asking)
        except MemoryServiceError as error:
            return Probe(began=began, ended=time.monotonic(), mode=mode.name, reason=error.reason or error.code.name)
        return Probe(
            began=began,
            ended=time.monotonic(),
            mode=mode.name,
            used="" if recall.mode_used is None else recall.mode_used.name,
            degradation="" if recall.degradation is None else recall.degradation.reason.name,
            found=tuple(hit.node_id for hit in recall),
        )
