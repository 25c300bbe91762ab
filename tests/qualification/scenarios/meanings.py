"""What the scenarios of recall by meaning share: memories and questions, refreshes that come through, and rankings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from durable_memory_client import Citation, MemoryNamespace, MemorySession, RecallMode, RefreshReceipt
from durable_memory_client.errors import (
    DependencyUnavailableError,
    LeaseFencedError,
    LeaseHeldError,
    MemoryUnavailableError,
    NotServingError,
)
from tests.processes.polling import wait_until_async
from tests.qualification.faults.fault import Fault
from tests.qualification.recorder.operations import Tally
from tests.qualification.scenarios.paraphrases import PAIRS
from tests.qualification.scenarios.stage import Stage

REFRESH_SECONDS = 300.0
HEALTHY_SECONDS = 180.0
_PASSING = (
    DependencyUnavailableError,
    LeaseFencedError,
    LeaseHeldError,
    MemoryUnavailableError,
    NotServingError,
)


@dataclass(frozen=True, slots=True)
class Meanings:
    """The memories of one namespace, each with a question by another wording. `tally` takes the calls for the row's."""

    memory: MemoryNamespace
    tally: Tally
    numbers: Sequence[int] = range(len(PAIRS))

    @property
    def right(self) -> Mapping[str, str]:
        """The node of each question."""
        return {f"q{number}": node_id(number) for number in self.numbers}

    async def remember(self) -> dict[int, Citation]:
        """All of them; their citations by number."""
        cited = {}
        for number in self.numbers:
            remembering = self.memory.remember(PAIRS[number][0], node_id=node_id(number))
            cited[number] = (await self.tally.of("Remember", remembering)).citation
        return cited

    async def ask(
        self, session: MemorySession, mode: RecallMode | None = None, numbers: Iterable[int] | None = None
    ) -> dict[str, list[str]]:
        """What each question finds by meaning, best first."""
        answers = {}
        for number in self.numbers if numbers is None else numbers:
            recall = await self.tally.of("ActiveRecall", session.recall(PAIRS[number][1], mode=mode))
            answers[f"q{number}"] = [hit.node_id for hit in recall if hit.semantic is not None]
        return answers


def node_id(number: int) -> str:
    return f"meaning-{number}"


async def inflict(stage: Stage, fault: Fault) -> None:
    """Break something, and wait until all is well again. It is counted."""
    await fault.inject(stage.cluster, stage.rng)
    stage.result.faults[fault.name] += 1
    await stage.cluster.wait_healthy(HEALTHY_SECONDS)


async def refreshed(memory: MemoryNamespace, session_id: str, tally: Tally, *, rebuild: bool = False) -> RefreshReceipt:
    """The receipt of a refresh that began when nobody else held the lease and everything it needs was there."""
    receipts: list[RefreshReceipt] = []

    async def comes_through() -> bool:
        try:
            refreshing = memory.refresh_semantic_recall(session_id, rebuild=rebuild)
            receipts.append(await tally.of("RefreshSemanticRecall", refreshing.wait()))
        except _PASSING:
            return False
        return True

    await wait_until_async(comes_through, REFRESH_SECONDS, what="a refresh comes through")
    return receipts[0]


async def indexed(memory: MemoryNamespace) -> None:
    """Return when every ACTIVE memory has a vector."""

    async def is_indexed() -> bool:
        try:
            return (await memory.get_index_status()).unindexed_active_count == 0
        except _PASSING:
            return False

    await wait_until_async(is_indexed, REFRESH_SECONDS, what="all of it is indexed")
