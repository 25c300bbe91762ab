"""Which of many failures the log is told, on a clock that is moved by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from durable_memory.adapters.runtime import ManualClock
from durable_memory.app.semantic.repeated_failures import RepeatedFailures


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def failures(clock: ManualClock) -> RepeatedFailures:
    return RepeatedFailures(clock)


def test_what_many_meet_is_told_once_and_over_when_all_of_them_are_well(failures: RepeatedFailures) -> None:
    told = [failures.met(source, "AWAY", {}) for source in ("a", "b", "c", "a")]
    assert [trouble is not None for trouble in told] == [True, False, False, False]
    assert failures.well("a") == failures.well("b") == []
    assert [trouble.times for trouble in failures.well("c")] == [4]
    assert failures.well("c") == []


def test_who_met_nothing_ends_nothing(failures: RepeatedFailures) -> None:
    failures.met("a", "AWAY", {})
    assert failures.well("b") == []


def test_the_intervals_grow_to_ten_minutes(failures: RepeatedFailures, clock: ManualClock) -> None:
    told = []
    for second in range(3_600):
        if failures.met("a", "AWAY", {}):
            told.append(second)
        clock.advance(timedelta(seconds=1))
    assert told == [0, 10, 30, 70, 150, 310, 630, 1230, 1830, 2430, 3030]


def test_what_was_not_met_for_half_an_hour_is_a_new_one(failures: RepeatedFailures, clock: ManualClock) -> None:
    for _ in range(5):
        failures.met("a", "AWAY", {})
    clock.advance(timedelta(seconds=1_801))
    trouble = failures.met("b", "AWAY", {})
    assert trouble is not None
    assert trouble.times == 1
    assert len(failures.well("b")) == 1
