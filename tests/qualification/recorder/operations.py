"""What a history comes to in numbers, for reports."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from tests.qualification.recorder.history import Call, Fate, History, Key, Outcome, by_command, fate
from tests.qualification.report.results import Operations
from tests.qualification.report.timeline import Series, Timeline

_NO_ANSWER = "NO_ANSWER"
"""Of an attempt whose process was killed before it ended."""


def operations(history: History, committed: Mapping[Key, float]) -> Operations:
    """Attempts and recalls by outcome, and what became of the commands that were in doubt.

    `committed` is when each change set was committed, by the clock on the wall. A command counts as applied in doubt
    if it was committed before an attempt after the one in doubt began; commands that change no node (runs,
    admissions) are not in it, and count by their own last answer.
    """
    counted = Operations()
    for call in history.calls:
        counted.attempts[call.method, call.outcome.value] += 1
        if call.outcome is not Outcome.OK:
            counted.refusals[call.reason or _NO_ANSWER] += 1
    for recall in history.recalls:
        counted.attempts[recall.method, "refused" if recall.reason else "ok"] += 1
        if recall.reason:
            counted.refusals[recall.reason] += 1
    for key, attempts in by_command(history.calls).items():
        first = list(itertools.takewhile(lambda call: call.outcome is not Outcome.OK, attempts))
        if any(call.outcome is Outcome.UNKNOWN for call in first):
            if _was_applied(attempts, committed.get(key)):
                counted.unknown_applied += 1
            else:
                counted.unknown_not_applied += 1
    return counted


def _was_applied(attempts: Sequence[Call], committed: float | None) -> bool:
    """Whether an attempt that was in doubt did it."""
    if not any(call.writes for call in attempts):
        return fate(attempts) is Fate.APPLIED
    if committed is None:
        return False
    begun = [call for call in attempts if call.wall <= committed]
    return bool(begun) and begun[-1].outcome is Outcome.UNKNOWN


def feed(timeline: Timeline, history: History, namespace: str) -> None:
    """Put the latencies and namespace revisions of a process that has a timeline of its own, or none, into this."""
    for call in history.calls:
        sample_call(timeline, call, namespace)
    for recall in history.answered:
        timeline.sample(Series.LATENCY_SECONDS, recall.ended - recall.began, key=f"{recall.method} ok", at=recall.ended)


def sample_call(timeline: Timeline, call: Call, namespace: str) -> None:
    """How long a call took that has ended, and where it left the namespace."""
    if call.ended == float("inf"):
        return
    key = f"{call.method} {call.outcome.value}"
    timeline.sample(Series.LATENCY_SECONDS, call.ended - call.began, key=key, at=call.ended)
    if call.effect is not None and call.effect.revision is not None:
        timeline.sample(Series.NAMESPACE_REVISION, call.effect.revision, key=namespace, at=call.ended)
