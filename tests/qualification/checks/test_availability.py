"""The longest time without a success is measured where somebody wanted one."""

from dataclasses import replace

import pytest

from tests.qualification.checks import availability
from tests.qualification.checks.by_hand import Story, again
from tests.qualification.recorder.history import Effect, History, Outcome
from tests.qualification.report.results import distribution
from tests.qualification.report.timeline import Event, Lane


@pytest.mark.parametrize(
    ("successes", "expected"),
    [
        ([9.0, 11.0, 12.0, 19.0, 21.0], 7.0),
        ([9.0, 19.5, 20.5], 9.5),
        ([11.0, 26.0], 15.0),
        ([11.0], 9.0),
        ([], 10.0),
        ([9.0], 10.0),
        ([9.0, 30.0], 20.0),
    ],
    ids=["within", "from its beginning", "beyond its end", "never again", "never", "not in it", "long after"],
)
def test_the_worst_gap_of_a_window(successes: list[float], expected: float):
    assert availability.worst_gap(successes, 10.0, 20.0) == expected


def test_each_fault_has_its_gap_and_those_that_are_too_long_are_found():
    events = [
        Event(lane=Lane.FAULT, label="kill", began=10.0, ended=12.0),
        Event(lane=Lane.FAULT, label="kill", began=40.0, ended=41.0),
        Event(lane=Lane.FAULT, label="promote", began=60.0, ended=62.0),
        Event(lane=Lane.ROW, label="row", began=10.0, ended=90.0),
        Event(lane=Lane.FAULT, label="after the traffic", began=95.0, ended=96.0),
    ]
    successes = [9.0, 11.0, 13.0, 20.0, 39.0, 44.0, 50.0, 59.0, 75.0, 89.0]
    gaps = availability.by_fault(successes, events, after=2.0, until=90.0)
    assert gaps == {"kill": [7.0, 4.0], "promote": [15.0]}
    assert availability.longer_than(10.0, "write", gaps) == [
        "no write for 15.0 s after promote, and 10.0 s is the most"
    ]


def test_what_lasts_into_the_next_fault_is_that_ones_from_there_on():
    events = [
        Event(lane=Lane.FAULT, label="kill", began=10.0, ended=12.0),
        Event(lane=Lane.FAULT, label="promote", began=13.0, ended=15.0),
        Event(lane=Lane.FAULT, label="and, at the same time", began=14.0, ended=16.0),
    ]
    gaps = availability.by_fault([9.0, 12.5, 20.0], events, after=10.0, until=30.0)
    assert gaps == {"kill": [2.5], "promote": [7.0], "and, at the same time": [6.0]}


def test_the_time_that_the_harness_takes_to_mend_a_fault_is_none_of_the_service_s():
    events = [
        Event(lane=Lane.FAULT, label="kill", began=10.0, ended=50.0),
        Event(lane=Lane.FAULT, label="promote", began=70.0, ended=75.0),
    ]
    successes = [9.0, 53.0, 69.0, 110.0, 119.0]
    gaps = availability.once_mended(successes, events, after=10.0, until=120.0)
    assert gaps == {"kill": [16.0], "promote": [35.0]}
    assert availability.longer_than(30.0, "write", gaps) == [
        "no write for 35.0 s after promote, and 30.0 s is the most"
    ]


def test_a_fault_is_mended_when_those_that_overlap_it_are():
    events = [
        Event(lane=Lane.FAULT, label="kill", began=10.0, ended=12.0),
        Event(lane=Lane.FAULT, label="promote", began=11.0, ended=40.0),
        Event(lane=Lane.FAULT, label="cut", began=39.0, ended=41.0),
        Event(lane=Lane.FAULT, label="never mended in the time of the traffic", began=80.0, ended=95.0),
    ]
    gaps = availability.once_mended([9.0, 44.0, 60.0], events, after=10.0, until=90.0)
    assert gaps == {"kill": [16.0], "promote": [16.0], "cut": [16.0]}


def test_what_never_comes_back_after_a_fault_is_mended_is_found():
    events = [Event(lane=Lane.FAULT, label="kill", began=10.0, ended=12.0)]
    assert availability.once_mended([9.0, 11.0], events, after=40.0, until=60.0) == {"kill": [40.0]}


def test_only_what_succeeded_and_changes_nodes_counts_as_a_write():
    story = Story()
    story.remember("n", "one")
    story.revise("n", 2, "two", outcome=Outcome.REFUSED, reason="REVISION_CONFLICT")
    history = History(calls=story.calls, recalls=[story.recalled("n", "one")])
    assert availability.writes([history]) == [11.0]
    assert len(availability.recalls(history)) == 1
    assert set(availability.latencies(history)) == {"Remember", "PreviewRecall LEXICAL"}
    assert availability.latencies(history)["Remember"].p50 == 1.0


def test_a_repetition_is_no_write_that_succeeded():
    story = Story()
    first = story.remember("n", "one")
    known = replace(story.remember("m", "one"), effect=Effect(revision=None, answer="UNCHANGED m@1"))
    history = History(calls=[first, again(first, at=20.0), known])
    assert availability.writes([history]) == [11.0]
    # The callers of another namespace have the same names.
    assert availability.writes([history, History(calls=[again(first, at=30.0)])]) == [11.0, 31.0]


def test_a_recall_that_admits_in_the_same_call_is_timed_as_that_call_alone():
    admitted = replace(Story().recalled("n", "one"), of_call=True)
    assert availability.latencies(History(recalls=[admitted])) == {}


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, (1, 1, 1)), (2, (1, 2, 2)), (10, (5, 9, 10)), (100, (50, 90, 99)), (300, (150, 270, 297))],
)
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(count: int, expected: tuple[int, int, int]):
    found = distribution(range(1, count + 1), "seconds")
    assert found is not None
    assert (found.p50, found.p90, found.p99, found.maximum) == (*expected, count)
