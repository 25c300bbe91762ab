"""What a history comes to in numbers, for reports."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from durable_memory_client import MemoryServiceError
from tests.qualification.recorder.history import Call, History, Key, Outcome, Recalled, by_command
from tests.qualification.report.results import Operations
from tests.qualification.report.timeline import Series, Timeline

T = TypeVar("T")

_NO_ANSWER = "NO_ANSWER"
"""Of an attempt whose process was killed before it ended."""


def operations(history: History, committed: Mapping[Key, float]) -> Operations:
    """Attempts and recalls by outcome, and what became of the commands that were in doubt.

    `committed` is when each change set was committed, by the clock on the wall. A command counts as applied in doubt
    if it was committed before an attempt after the one in doubt began. Of those that change no node (runs, admissions,
    and what was as it is already) it does not tell that.
    """
    counted = Operations()
    for call in history.calls:
        counted.attempts[call.method, call.outcome.value] += 1
        if call.outcome is not Outcome.OK:
            counted.refusals[call.reason or _NO_ANSWER] += 1
    for recall in history.recalls_alone:
        counted.attempts[recall.method, recall.outcome.value] += 1
        if recall.reason:
            counted.refusals[recall.reason] += 1
    for key, attempts in by_command(history.calls).items():
        first = list(itertools.takewhile(lambda call: call.outcome is not Outcome.OK, attempts))
        if not any(call.outcome is Outcome.UNKNOWN for call in first):
            continue
        if _is_untold(attempts):
            counted.unknown_untold += 1
        elif _was_applied(attempts, committed.get(key)):
            counted.unknown_applied += 1
        else:
            counted.unknown_not_applied += 1
    return counted


def _is_untold(attempts: Sequence[Call]) -> bool:
    """Whether it is a command without writes, or was answered in the end that there was nothing to change."""
    answered = any(call.effect is not None and call.effect.revision is None for call in attempts)
    return answered or not any(call.writes for call in attempts)


def _was_applied(attempts: Sequence[Call], committed: float | None) -> bool:
    """Whether an attempt that was in doubt did it."""
    if committed is None:
        return False
    begun = [call for call in attempts if call.wall <= committed]
    return bool(begun) and begun[-1].outcome is Outcome.UNKNOWN


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts and times calls that no recorder makes, as if one did."""

    operations: Operations
    timeline: Timeline

    async def of(self, method: str, calling: Awaitable[T]) -> T:
        """What the call answers. Raises what it raises."""
        began, outcome = time.monotonic(), Outcome.UNKNOWN
        reason = "CANCELLED"
        try:
            answer = await calling
            outcome, reason = Outcome.OK, ""
        except MemoryServiceError as error:
            outcome = Outcome.REFUSED if error.definite else Outcome.UNKNOWN
            reason = str(error.reason or error.code.name)
            raise
        finally:
            self.operations.attempts[method, outcome.value] += 1
            if reason:
                self.operations.refusals[reason] += 1
            _sample_latency(self.timeline, method, outcome, began, time.monotonic())
        return answer


def feed(timeline: Timeline, history: History, namespace: str) -> None:
    """Put the latencies and namespace revisions of a process that has a timeline of its own, or none, into this."""
    for call in history.calls:
        sample_call(timeline, call, namespace)
    for recall in history.recalls:
        sample_recall(timeline, recall)


def sample_call(timeline: Timeline, call: Call, namespace: str) -> None:
    """How long a call took that has ended, and where it left the namespace."""
    if call.ended == float("inf"):
        return
    _sample_latency(timeline, call.method, call.outcome, call.began, call.ended)
    if call.effect is not None and call.effect.revision is not None:
        timeline.sample(Series.NAMESPACE_REVISION, call.effect.revision, key=namespace, at=call.ended)


def sample_recall(timeline: Timeline, recall: Recalled) -> None:
    """How long a recall took. One that is a call also is sampled as that."""
    if not recall.of_call:
        _sample_latency(timeline, recall.method, recall.outcome, recall.began, recall.ended)


def _sample_latency(timeline: Timeline, method: str, outcome: Outcome, began: float, ended: float) -> None:
    timeline.sample(Series.LATENCY_SECONDS, ended - began, key=f"{method} {outcome.value}", at=ended)
