"""What the checks of commands in doubt must find, and must not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.qualification.checks.doubts import Doubt, ended_since, in_doubt, one_sided, unsettled
from tests.qualification.recorder.history import Call, Effect, Outcome, Write

_WALL = 1_000.0


def attempt(
    began: float, outcome: Outcome, *, name: str = "a", reason: str = "", ended: float = 0.0, writes: bool = True
) -> Call:
    return Call(
        method="ReviseMemory",
        request_id=name,
        began=began,
        ended=ended or began + 1,
        outcome=outcome,
        reason=reason,
        wall=_WALL + began,
        writes=(Write(),) if writes else (),
    )


KEY = ("ReviseMemory", "a")
DOUBTFUL = attempt(10, Outcome.UNKNOWN, reason="OUTCOME_UNKNOWN")
REPEATED = attempt(20, Outcome.OK)


@pytest.mark.parametrize(
    ("committed", "applied"),
    [({}, False), ({KEY: _WALL + 9}, False), ({KEY: _WALL + 10.5}, True), ({KEY: _WALL + 20.5}, False)],
    ids=["never", "before it", "by it", "by the repetition"],
)
def test_an_attempt_did_what_was_committed_before_the_next_one_began(committed, applied: bool):
    assert in_doubt([DOUBTFUL, REPEATED], committed, [(9.0, 10.5)]) == [Doubt(call=DOUBTFUL, applied=applied)]


def test_only_changes_in_doubt_in_the_time_of_the_fault_and_for_its_reason_count():
    calls = [
        DOUBTFUL,
        attempt(10, Outcome.REFUSED, name="refused"),
        attempt(10, Outcome.UNKNOWN, name="run", writes=False),
        attempt(2, Outcome.UNKNOWN, name="earlier"),
        attempt(13, Outcome.UNKNOWN, name="later"),
        attempt(10, Outcome.UNKNOWN, name="killed", ended=math.inf),
    ]
    assert [one.call.request_id for one in in_doubt(calls, {}, [(9.0, 12.0)])] == ["a", "killed"]
    assert [one.call.request_id for one in in_doubt(calls, {}, [(9.0, 12.0)], reasons=["OUTCOME_UNKNOWN"])] == ["a"]
    assert in_doubt(calls, {}, []) == []


def test_those_that_ended_since_a_moment_are_the_last_ones_in_their_order():
    calls = [attempt(1, Outcome.OK), attempt(9, Outcome.OK, ended=10), attempt(2, Outcome.UNKNOWN, ended=11)]
    assert ended_since(calls, 10.0) == calls[1:]
    assert ended_since(calls, 12.0) == []


def test_what_changes_nothing_is_neither_applied_nor_not():
    unchanged = replace(REPEATED, effect=Effect(revision=None, answer="known"))
    assert in_doubt([DOUBTFUL, unchanged], {}, [(9.0, 10.5)]) == []


@pytest.mark.parametrize(
    ("span", "found"),
    [((9.0, 12.0), 1), ((10.5, 12.0), 0), ((9.0, 10.5), 0)],
    ids=["in its time", "begun before it", "ended after it"],
)
def test_what_was_under_way_when_the_fault_began_or_ended_may_be_another_faults(span: tuple[float, float], found: int):
    assert len(in_doubt([DOUBTFUL], {}, [span])) == 1
    assert len(in_doubt([DOUBTFUL], {}, [span], within=True)) == found


@pytest.mark.parametrize(
    ("last", "committed", "problems"),
    [
        (Outcome.OK, {KEY}, []),
        (Outcome.REFUSED, set(), []),
        (Outcome.UNKNOWN, {KEY}, ["ReviseMemory a is still in doubt"]),
        (Outcome.REFUSED, {KEY}, ["ReviseMemory a was applied, and its caller was told that it was refused"]),
    ],
)
def test_what_is_not_settled_or_settled_as_something_else_is_found(last: Outcome, committed, problems: list[str]):
    calls = [DOUBTFUL, attempt(20, last, reason="REVISION_CONFLICT" if last is Outcome.REFUSED else "")]
    assert unsettled([Doubt(call=DOUBTFUL, applied=True)], calls, committed) == problems


def test_doubts_of_one_kind_alone_are_found():
    yes, no = Doubt(call=DOUBTFUL, applied=True), Doubt(call=DOUBTFUL, applied=False)
    assert one_sided([yes, no], applied=True) == one_sided([no, no], applied=False) == []
    assert one_sided([no, no], applied=True) == ["of 2 attempts in doubt none had been applied"]
    assert "of 1 attempts in doubt none had not been applied" in one_sided([yes], applied=False)
    assert len(one_sided([], applied=True)) == 1


def test_an_attempt_that_never_arrived_and_was_applied_is_found_among_others():
    yes, no = Doubt(call=DOUBTFUL, applied=True), Doubt(call=DOUBTFUL, applied=False)
    assert one_sided([no, yes, no], applied=False) == [
        "ReviseMemory a had been applied by an attempt that never arrived"
    ]
