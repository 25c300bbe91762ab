"""A run that shows nothing is not taken for one that shows that all is well."""

from dataclasses import replace

import pytest

from tests.qualification.checks import assumptions
from tests.qualification.checks.by_hand import Story, again
from tests.qualification.recorder.history import AFTERWARDS, Effect, History, Outcome, Resumed


@pytest.fixture
def history() -> History:
    story = Story()
    story.remember("n", "one")
    story.revise("n", 2, "two")
    return story.history


def test_a_run_that_did_enough_has_no_problems(history: History):
    found = assumptions.problems(history, seconds=1.0, least_rate=2.0, last_fault=11.0, callers=["caller"])
    assert found == []


def test_a_run_without_traffic_is_found():
    assert assumptions.nothing_happened(History()) == ["nothing was called"]


def test_a_run_in_which_nothing_was_acknowledged_is_found(history: History):
    history.calls = [replace(call, outcome=Outcome.UNKNOWN, effect=None) for call in history.calls]
    assert assumptions.nothing_happened(history) == ["of 2 calls none changed anything"]


def test_too_little_traffic_is_found(history: History):
    assert assumptions.problems(history, seconds=10.0, least_rate=2.0) == [
        "too little traffic: 2 answers in 10.0 s, and 20 were to be"
    ]


def test_recalls_count_as_traffic_if_they_were_answered(history: History):
    story = Story()
    recall = story.recalled("n", "two")
    history.recalls = [recall] * 18
    assert assumptions.too_little_traffic(history, 10.0, 2.0) == []
    for other in (replace(recall, reason="UNAVAILABLE"), replace(recall, of_call=True)):
        history.recalls = [other] * 18
        assert len(assumptions.too_little_traffic(history, 10.0, 2.0)) == 1


NOTHING_NEW = ["nothing new succeeded after the last fault"]


def test_a_run_in_which_nothing_worked_after_the_last_fault_is_found(history: History):
    assert assumptions.nothing_after(history, 13.0) == NOTHING_NEW
    assert assumptions.nothing_after(history, 11.5) == []


def test_what_is_sent_again_after_the_last_fault_is_nothing_new(history: History):
    repeated = again(history.calls[0], at=20.0)
    doubtful = replace(history.calls[0], request_id="d", outcome=Outcome.UNKNOWN, effect=None)
    settled = replace(again(history.calls[0], at=22.0), request_id="d")
    unseen = replace(repeated, request_id="e", caller=AFTERWARDS)
    unchanged = replace(repeated, request_id="u", effect=Effect(revision=None, answer="UNCHANGED"))
    run = replace(unchanged, method="BeginRun", writes=())
    history.calls += [repeated, doubtful, settled, unseen, unchanged, run]
    assert assumptions.nothing_after(history, 13.0) == NOTHING_NEW
    history.calls.append(replace(repeated, request_id="new"))
    assert assumptions.nothing_after(history, 13.0) == []


def test_what_is_sent_again_afterwards_is_no_traffic(history: History):
    history.calls += [replace(again(history.calls[0], at=20.0), caller=AFTERWARDS)] * 18
    assert len(assumptions.too_little_traffic(history, 10.0, 2.0)) == 1


def test_a_caller_that_got_no_answer_is_found(history: History):
    history.calls.append(replace(history.calls[0], caller="racer/2", request_id="x"))
    history.resumed.append(
        Resumed(began=1.0, ended=2.0, session_id="s", asked="", drifted=False, got="d", caller="resumer")
    )
    callers = ["caller", "racer", "resumer", "reader"]
    assert assumptions.idle_callers(history, callers) == ["reader got no answer"]


def test_clocks_that_jump_are_found(history: History):
    call = history.calls[0]
    for bad, problem in (
        (replace(call, ended=call.began - 0.5), "ended 0.500 s before it began"),
        (replace(call, began=-1.0), "began before its process did"),
        (replace(call, wall=call.wall + 60.0), "went 60.0 s away from the other"),
    ):
        history.calls = [bad]
        (found, *_) = assumptions.clocks_that_jump(history)
        assert problem in found


def test_a_name_of_two_commands_is_found(history: History):
    call = history.calls[0]
    assert assumptions.names_given_twice([call, again(call, at=50.0)]) == []
    for other in (replace(call, command=7), replace(call, process="q")):
        (found,) = assumptions.names_given_twice([call, other])
        assert found.startswith("Remember n-1 is the name of 2 commands")


def test_a_caller_that_does_two_things_at_once_is_found(history: History):
    first, second = history.calls
    recall = replace(Story().recalled("n", "one"), began=first.began, ended=first.ended, caller="caller")
    history.recalls = [replace(recall, of_call=True)]
    assert assumptions.out_of_turn(history) == []
    history.calls = [replace(first, ended=second.began + 0.25), second]
    assert assumptions.out_of_turn(history) == ["caller began something 0.250 s before it was done with the last"]
    history.calls = [history.calls[0], replace(second, caller="another")]
    assert assumptions.out_of_turn(history) == []
