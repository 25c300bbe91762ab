"""A tenant with a thousand times the memories of another, both at work: what the small one notices of it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from durable_memory_client import (
    Create,
    Draft,
    Evidence,
    EvidenceKind,
    MemoryClient,
    MemoryServiceError,
    NodeStatus,
    Recall,
    RecallMode,
)
from tests.processes.polling import wait_until_async
from tests.qualification.checks.isolation import Recalled

SKEW: Final = 1_000
MODES: Final = (RecallMode.LEXICAL, RecallMode.SEMANTIC, RecallMode.HYBRID)
QUIET: Final = "nothing"
"""What the big tenant does while the small one is measured first."""

MOST_OWN: Final = 20
"""Memories the small tenant begins with: it recalls all that it has, and the big one has a thousand times as many."""

MOST_HITS: Final = 50
DEADLINE_SECONDS: Final = 60.0
"""Of every call of the small tenant: generous, because what is promised is an answer and not how fast a machine is."""

_QUESTION: Final = "where is the spare key of the cellar"
_OWN: Final = "the cellar has key number {number}, which hangs behind the door of the caretaker"
_TEXTS: Final = 12
"""How many different texts the big tenant has, each of them many times: a model takes its time for each."""

_CREATES: Final = 125
_LOADERS: Final = 2
_AT_ONCE: Final = 8
_WAIT_SECONDS: Final = 300.0


@dataclass(slots=True)
class Noticed:
    """What the small tenant noticed, by what the big one did meanwhile."""

    recalls: list[Recalled] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Of each recall, by what the big tenant did."""
    late: list[str] = field(default_factory=list)
    """Calls that were not answered."""
    calls: int = 0
    indexed_after: float = 0.0
    """Seconds from a new memory of the small tenant to its vector, while the big one's were made."""


class Skew:
    """`small` and `big` are the tenants' namespaces, empty at first."""

    def __init__(self, small: MemoryClient, big: MemoryClient, *, count: int, canary: str, rng: random.Random) -> None:
        self.noticed = Noticed()
        self.small_ids: set[str] = set()
        self.big_ids: set[str] = set()
        self.big_recalls = 0
        self._acknowledged = 0
        self._small = small
        self._big = big
        self._count = count
        self._canary = canary
        self._rng = rng

    @property
    def question(self) -> str:
        return f"{self._canary} {_QUESTION}"

    def big_text(self, number: int) -> str:
        """It says what is asked for word by word, so that it is before everything else wherever both are looked at."""
        return f"{self.question}: {number % _TEXTS}"

    async def run(self, seconds: float) -> None:
        """Fill both, and let the small one recall while the big one does nothing, loads, refreshes and recalls.

        `seconds` is how long it is measured while nothing goes on, and while the big tenant recalls.
        """
        await self._small.open_session("assistant")
        await self._big.open_session("assistant")
        await self._big.set_schedule()  # its refresh is begun here, and ends with this scenario
        for _ in range(self._count):
            await self._remember_small()
        await self._small_is_covered()
        async with self._noticing(QUIET):
            await asyncio.sleep(seconds)
        async with self._noticing("a load of the other"):
            await self._load()
        async with self._noticing("a refresh of the other"):
            refresh = asyncio.create_task(self._big.refresh_semantic_recall("assistant").wait())
            try:
                began = time.monotonic()
                await self._remember_small()
                await self._small_is_covered()
                self.noticed.indexed_after = time.monotonic() - began
                await asyncio.wait_for(refresh, _WAIT_SECONDS)
            finally:
                refresh.cancel()
                await asyncio.wait([refresh])
        async with self._noticing("recalls of the other"):
            await self._storm(seconds)

    async def _remember_small(self) -> None:
        number = len(self.small_ids)
        node_id = f"small-{number}"
        self.small_ids.add(node_id)
        await self._small.remember(f"{self._canary} {_OWN.format(number=number)}", node_id=node_id)
        self._acknowledged += 1

    async def _small_is_covered(self) -> None:
        async def covered() -> bool:
            status = await self._small.get_index_status()
            return status.published is not None and not status.unindexed_active_count

        await wait_until_async(covered, _WAIT_SECONDS, what="the index covers the small tenant")

    async def _load(self) -> None:
        numbers = list(range(self._count * SKEW))
        lots = [numbers[start : start + _CREATES] for start in range(0, len(numbers), _CREATES)]
        room = asyncio.Semaphore(_LOADERS)

        async def load(lot: Sequence[int]) -> None:
            operations = [self._create(number) for number in lot]
            async with room:
                await self._big.apply_change_set(operations, timeout=_WAIT_SECONDS)
            self.big_ids.update(f"big-{number}" for number in lot)

        await asyncio.gather(*map(load, lots))

    def _create(self, number: int) -> Create:
        decided = Evidence(uri=f"import:{number}", kind=EvidenceKind.VERIFICATION, body=str(number).encode())
        draft = Draft(content=self.big_text(number), evidence=[decided])
        return Create(memory=draft, node_id=f"big-{number}", status=NodeStatus.ACTIVE)

    async def _storm(self, seconds: float) -> None:
        """Recalls of everything that fits into an answer, in all modes, some at a time."""
        ends_at = time.monotonic() + seconds

        async def recall_on() -> None:
            while time.monotonic() < ends_at:
                with suppress(MemoryServiceError):  # the big tenant may be told to slow down
                    await self._big.preview(self.question, mode=self._rng.choice(MODES), max_results=100)
                    self.big_recalls += 1

        await asyncio.gather(*(recall_on() for _ in range(_AT_ONCE)))

    @asynccontextmanager
    async def _noticing(self, during: str) -> AsyncIterator[None]:
        """The small tenant recalls for as long as the block takes, and at least once in each mode."""
        done = asyncio.Event()
        noticing = asyncio.create_task(self._notice(during, done))
        try:
            yield
        finally:
            done.set()
            await noticing

    async def _notice(self, during: str, done: asyncio.Event) -> None:
        times = self.noticed.seconds.setdefault(during, [])
        expected = [f"small-{number}" for number in range(self._count)]
        while True:
            for mode in MODES:
                least = self._acknowledged
                began = time.monotonic()
                recall = await self._timed(mode, during)
                if recall is None:
                    continue
                times.append(time.monotonic() - began)
                self.noticed.recalls.append(
                    Recalled(
                        mode=mode.value,
                        during=during,
                        hits=[hit.node_id for hit in recall],
                        expected=expected,
                        searched=recall.searched_node_count,
                        own_least=least,
                        own_most=len(self.small_ids),
                        vectors=None if recall.semantic is None else recall.semantic.vectors_searched,
                    )
                )
            if done.is_set():
                return

    async def _timed(self, mode: RecallMode, during: str) -> Recall | None:
        self.noticed.calls += 1
        try:
            return await self._small.preview(self.question, mode=mode, max_results=MOST_HITS, timeout=DEADLINE_SECONDS)
        except MemoryServiceError as error:
            came_to = error.reason or error.code.name
            self.noticed.late.append(f"a {mode.value} recall during {during} came to {came_to}")
            return None
