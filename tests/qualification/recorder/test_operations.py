"""Attempts are counted by how they ended, and what was in doubt by what became of it."""

from dataclasses import replace

import pytest

from tests.qualification.checks.by_hand import Story, again
from tests.qualification.recorder.history import Call, History, Outcome
from tests.qualification.recorder.operations import feed, operations
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
