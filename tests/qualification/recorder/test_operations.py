"""Attempts are counted by how they ended, and what was in doubt by what became of it."""

from dataclasses import replace

import grpc
import pytest

from durable_memory_client import MemoryServiceError
from durable_memory_client.errors import NotServingError, OutcomeUnknownError
from tests.qualification.checks.by_hand import Story, again
from tests.qualification.recorder.history import Call, Effect, History, Outcome
from tests.qualification.recorder.operations import Tally, feed, operations
from tests.qualification.report.results import Operations
from tests.qualification.report.timeline import Series, Timeline

UNKNOWN = Outcome.UNKNOWN


def test_attempts_are_counted_by_method_and_outcome():
    story = Story()
    story.remember("n", "one")
    story.revise("n", 2, "two", outcome=Outcome.REFUSED, reason="REVISION_CONFLICT")
    history = story.history
    history.recalls = [story.recalled("n", "one"), replace(story.recalled("n", "one"), reason="SEMANTIC_UNAVAILABLE")]
    counted = operations(history, {})
    assert counted.attempts == {
        ("Remember", "ok"): 1,
        ("ReviseMemory", "refused"): 1,
        ("PreviewRecall", "ok"): 1,
        ("PreviewRecall", "refused"): 1,
    }
    assert counted.refusals == {"REVISION_CONFLICT": 1, "SEMANTIC_UNAVAILABLE": 1}


def test_a_recall_that_got_no_answer_in_time_was_not_refused():
    late = replace(Story().recalled("n", "one"), reason="DEADLINE_EXCEEDED", definite=False)
    assert operations(History(recalls=[late]), {}).attempts == {("PreviewRecall", "unknown"): 1}


def test_a_recall_that_admits_in_the_same_call_is_counted_as_that_call_alone():
    story = Story()
    admitting = replace(story.remember("n", "one"), method="ActiveRecall")
    admitted = replace(story.recalled("n", "one"), method="ActiveRecall", of_call=True)
    history = History(calls=[admitting], recalls=[admitted])
    assert operations(history, {}).attempts == {("ActiveRecall", "ok"): 1}
    timeline = Timeline()
    feed(timeline, history, "acme/default")
    assert len(timeline.samples[Series.LATENCY_SECONDS, "ActiveRecall ok"]) == 1


def first(outcome: Outcome) -> Call:
    return Story().remember("n", "one", outcome=outcome, began=10.0)


@pytest.mark.parametrize(
    ("attempts", "committed", "expected"),
    [
        ([first(UNKNOWN)], 10.5, (1, 0)),
        ([first(UNKNOWN)], None, (0, 1)),
        ([first(UNKNOWN), again(first(Outcome.OK), at=20.0)], 10.5, (1, 0)),
        ([first(UNKNOWN), again(first(Outcome.OK), at=20.0)], 20.5, (0, 1)),
        ([first(UNKNOWN), again(first(UNKNOWN), at=20.0, outcome=UNKNOWN)], 20.5, (1, 0)),
        ([first(Outcome.OK), again(first(UNKNOWN), at=20.0, outcome=UNKNOWN)], 10.5, (0, 0)),
    ],
    ids=["applied", "not applied", "repeated and there", "repeated and done then", "by the second", "known before"],
)
def test_what_was_in_doubt_is_counted_by_when_it_was_committed(
    attempts: list[Call], committed: float | None, expected: tuple[int, int]
):
    counted = operations(History(calls=attempts), {} if committed is None else {("Remember", "n-1"): committed})
    assert (counted.unknown_applied, counted.unknown_not_applied) == expected


def test_of_what_changes_no_node_no_history_tells_which_attempt_did_it():
    run = [replace(call, writes=()) for call in (first(UNKNOWN), again(first(Outcome.OK), at=20.0))]
    known = again(first(Outcome.OK), at=20.0)
    unchanged = [first(UNKNOWN), replace(known, effect=Effect(revision=None, answer="UNCHANGED"))]
    for attempts in (run, unchanged):
        counted = operations(History(calls=attempts), {})
        assert (counted.unknown_applied, counted.unknown_not_applied) == (0, 0)
        assert counted.unknown_untold == 1
    together = Operations(unknown_untold=2)
    together.add(Operations(unknown_untold=3))
    assert together.unknown_untold == 5


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "ok"),
        (NotServingError("no", code=grpc.StatusCode.UNAVAILABLE, definite=True), "refused"),
        (OutcomeUnknownError("?", code=grpc.StatusCode.UNAVAILABLE, definite=False), "unknown"),
    ],
)
async def test_a_call_that_no_recorder_makes_is_counted_and_timed_like_others(
    error: MemoryServiceError | None, outcome: str
):
    async def remember() -> str:
        if error is not None:
            raise error
        return "done"

    tally = Tally(Operations(), Timeline())
    if error is None:
        assert await tally.of("Remember", remember()) == "done"
    else:
        with pytest.raises(type(error)):
            await tally.of("Remember", remember())
    assert tally.operations.attempts == {("Remember", outcome): 1}
    assert sum(tally.operations.refusals.values()) == (0 if error is None else 1)
    assert len(tally.timeline.samples[Series.LATENCY_SECONDS, f"Remember {outcome}"]) == 1


def test_a_history_of_another_process_goes_into_a_timeline():
    story = Story()
    story.remember("n", "one")
    story.unknown("ReviseMemory", "n", 2, text="two")
    history = History(calls=story.calls, recalls=[story.recalled("n", "one")])
    timeline = Timeline()
    feed(timeline, history, "acme/default")
    assert {key: [sample.value for sample in samples] for key, samples in timeline.samples.items()} == {
        (Series.LATENCY_SECONDS, "Remember ok"): [1.0],
        (Series.NAMESPACE_REVISION, "acme/default"): [1],
        (Series.LATENCY_SECONDS, "PreviewRecall ok"): [0.5],
    }
