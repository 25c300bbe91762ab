"""What the scenarios of recall by meaning share: memories and questions, refreshes that come through, and rankings."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from durable_memory_client import (
    Citation,
    DegradationReason,
    MemoryNamespace,
    MemorySession,
    Recall,
    RecallMode,
    RefreshReceipt,
)
from durable_memory_client.errors import (
    DependencyUnavailableError,
    LeaseFencedError,
    LeaseHeldError,
    MemoryUnavailableError,
    NotServingError,
    SemanticUnavailableError,
)
from tests.processes.polling import wait_until_async
from tests.qualification.faults.fault import Fault
from tests.qualification.recorder.operations import Tally
from tests.qualification.scenarios.paraphrases import PAIRS
from tests.qualification.scenarios.stage import Stage

REFRESH_SECONDS = 300.0
HEALTHY_SECONDS = 180.0
_QUESTION_SECONDS = 60.0
_PATIENT_SECONDS = 180.0
_PAUSE_SECONDS = 0.5
_PASSING = (
    DependencyUnavailableError,
    LeaseFencedError,
    LeaseHeldError,
    MemoryUnavailableError,
    NotServingError,
)
_TOO_SLOW = frozenset({DegradationReason.DEADLINE.name, DegradationReason.PROVIDER_FAILED.name})
"""What a recall says that took too long to understand its question; a provider that was too slow is left alone then."""


@dataclass(frozen=True, slots=True)
class Meanings:
    """The memories of one namespace, each with a question by another wording. `tally` takes the calls for the row's."""

    memory: MemoryNamespace
    tally: Tally
    numbers: Sequence[int] = range(len(PAIRS))
    asked_again: Counter[str] = field(default_factory=Counter)
    """How often a question had not been understood, by the reason."""
    seconds: dict[str, float] = field(default_factory=dict)
    """What the latest recall of each question took that was its answer, without those before it."""

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
        """What each question finds by meaning, best first.

        One that took too long to be understood is asked again, in bounds: how soon is not what is judged. One that
        never is finds nothing by meaning in AUTO. Raises: SemanticUnavailableError in the explicit modes.
        """
        answers = {}
        ends_at = time.monotonic() + _PATIENT_SECONDS
        for number in self.numbers if numbers is None else numbers:
            recall, self.seconds[f"q{number}"] = await self._understood(session, PAIRS[number][1], mode, ends_at)
            answers[f"q{number}"] = [hit.node_id for hit in recall if hit.semantic is not None]
        return answers

    async def _understood(
        self, session: MemorySession, question: str, mode: RecallMode | None, ends_at: float
    ) -> tuple[Recall, float]:
        """The answer, and how many seconds it took."""
        while True:
            began = time.monotonic()
            recalling = session.recall(question, mode=mode, timeout=_QUESTION_SECONDS)
            try:
                recall = await self.tally.of("ActiveRecall", recalling)
                reason = "" if recall.degradation is None else recall.degradation.reason.name
                if reason not in _TOO_SLOW or time.monotonic() >= ends_at:
                    return recall, time.monotonic() - began
            except SemanticUnavailableError as error:
                reason = error.metadata.get("cause", "")
                if reason not in _TOO_SLOW or time.monotonic() >= ends_at:
                    raise
            self.asked_again[reason] += 1
            await asyncio.sleep(_PAUSE_SECONDS)


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
