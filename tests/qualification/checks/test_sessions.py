"""The checks of sessions and runs find what they are for, in histories that are bad by hand."""

from dataclasses import replace

import pytest

from tests.qualification.checks import sessions as checks
from tests.qualification.recorder.history import AWAY, Begun, BegunAgain, Recorded, Resumed

RESTART = (10.0, 12.0)


def resumed(at: float, *, asked: str = "digest", got: str = "", reason: str = "", drifted: bool = False) -> Resumed:
    return Resumed(began=at, ended=at + 0.5, session_id="s", asked=asked, drifted=drifted, got=got, reason=reason)


OPENED = resumed(0, asked="", got="digest")


def drifted(*, got: str = "", reason: str = "") -> Resumed:
    return resumed(1, asked="other", got=got, reason=reason, drifted=True)


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        (drifted(reason="BINDING_DRIFT"), None),
        (drifted(got="digest"), "session s was resumed with a binding that drifted"),
        (drifted(reason="SESSION_NOT_FOUND"), "session s was refused with SESSION_NOT_FOUND, and its binding drifted"),
        (drifted(reason="PERMISSION_DENIED"), "session s was refused with PERMISSION_DENIED, and its binding drifted"),
        (drifted(reason="INTERNAL"), "session s was refused with INTERNAL, and its binding drifted"),
    ],
    ids=["refused", "resumed", "not known", "denied", "a defect"],
)
def test_a_binding_that_drifted_must_be_refused_as_that(one: Resumed, problem: str | None):
    assert checks.drift_accepted([OPENED, one]) == ([] if problem is None else [problem])
    assert checks.drifted_ones([OPENED, one]) == [one]
    assert checks.own_ones([OPENED, one]) == []
    assert checks.wrong_bindings([OPENED, one]) == []


@pytest.mark.parametrize("reason", sorted(AWAY))
def test_a_service_that_is_away_decides_nothing(reason: str):
    of = [OPENED, resumed(1, reason=reason), drifted(reason=reason)]
    assert checks.drift_accepted(of) == checks.wrong_bindings(of) == []
    assert checks.drifted_ones(of) == checks.own_ones(of) == []
    again = [begun_again(reason=reason), begun_again(is_open=True, reason=reason)]
    assert checks.decided(again) == checks.after_a_restart(again, [RESTART]) == []
    assert checks.wrong_runs(again) == []


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        (resumed(1, got="digest"), None),
        (resumed(1, reason="BINDING_DRIFT"), "session s was refused as what it is bound to (BINDING_DRIFT)"),
        (resumed(1, reason="SESSION_NOT_FOUND"), "session s was refused as what it is bound to (SESSION_NOT_FOUND)"),
        (resumed(1, reason="DATA_CORRUPTED"), "session s was refused as what it is bound to (DATA_CORRUPTED)"),
        (resumed(1, asked="", got="other"), "session s was bound to digest, and is to other"),
        (resumed(1, asked="earlier", got="digest"), "session s was resumed as digest, and earlier was expected"),
    ],
    ids=["right", "refused", "lost", "damaged", "bound anew", "filled in"],
)
def test_a_session_that_is_not_resumed_as_what_it_is_bound_to_is_found(one: Resumed, problem: str | None):
    assert checks.wrong_bindings([OPENED, one]) == ([] if problem is None else [problem])
    assert checks.own_ones([OPENED, one]) == [one] * bool(one.asked)


def begun(request_id: str, incarnation: str, context_id: str) -> Begun:
    return Begun(
        at=1.0,
        request_id=request_id,
        session_id="s",
        run_id="turn-1",
        incarnation=incarnation,
        context_id=context_id,
        outcome="BEGUN",
    )


def test_two_invocations_that_are_one_run_are_found():
    assert checks.collapsed_runs([begun("a", "i", "c"), begun("a", "i", "c"), begun("b", "j", "d")]) == []
    assert checks.collapsed_runs([begun("a", "i", "c"), begun("b", "i", "d")]) == [
        "invocations ['a', 'b'] are one incarnation"
    ]
    assert checks.collapsed_runs([begun("a", "i", "c"), begun("b", "j", "c")]) == [
        "invocations ['a', 'b'] have one context"
    ]
    assert len(checks.collapsed_runs([begun("a", "i", "c"), begun("a", "j", "d")])) == 1


def begun_again(
    *,
    is_open: bool = False,
    got: str = "",
    outcome: str = "BEGUN",
    reason: str = "",
    known: float = 9.0,
    began: float = 13.0,
) -> BegunAgain:
    return BegunAgain(
        began=began,
        ended=began + 0.5,
        session_id="s",
        run_id="turn-1",
        before="i",
        known=known,
        is_open=is_open,
        got=got,
        outcome=outcome,
        reason=reason,
    )


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        (begun_again(got="j"), None),
        (begun_again(is_open=True, reason="RUN_IDENTITY_CONFLICT"), None),
        (begun_again(got="i"), "was taken for i, which had ended"),
        (begun_again(got="j", outcome="TAKEN_OVER"), "is j by TAKEN_OVER, and i had ended"),
        (begun_again(reason="RUN_IDENTITY_CONFLICT"), "was refused (RUN_IDENTITY_CONFLICT), and i had ended"),
        (begun_again(reason="SESSION_NOT_FOUND"), "was refused (SESSION_NOT_FOUND), and i had ended"),
        (begun_again(is_open=True, got="j"), "was j, and i was open"),
        (begun_again(is_open=True, got="i"), "was i, and i was open"),
        (begun_again(is_open=True, reason="SESSION_CLOSED"), "was SESSION_CLOSED, and i was open"),
    ],
    ids=[
        *("another", "the same", "collapsed", "its end is lost", "still open", "no session"),
        *("its beginning is lost", "shared", "refused otherwise"),
    ],
)
def test_a_run_id_that_is_begun_again_is_another_run_or_the_same(one: BegunAgain, problem: str | None):
    assert checks.wrong_runs([one]) == ([] if problem is None else [f"run turn-1 of s, begun again, {problem}"])
    assert checks.after_a_restart([one], [RESTART]) == [one]


def admitted(incarnation: str, event_id: str) -> Recorded:
    return Recorded(
        method="ActiveRecall",
        request_id=f"{incarnation}/{event_id}",
        session_id="s",
        run_id="turn-1",
        incarnation=incarnation,
        context_id=incarnation,
        node_id="kept",
        revision=1,
        event_id=event_id,
    )


def test_admissions_that_collapse_with_those_of_the_run_before_are_found():
    one = begun_again(got="j")
    assert checks.wrong_runs([one], [admitted("i", "e"), admitted("j", "f")]) == []
    assert checks.wrong_runs([one], [admitted("i", "e"), admitted("j", "e")]) == [
        "run turn-1 of s, begun again, has events of i: ['e']"
    ]


@pytest.mark.parametrize(
    ("known", "began", "counts"), [(9.0, 13.0, True), (9.0, 11.0, False), (11.0, 13.0, False), (13.0, 14.0, False)]
)
def test_only_what_was_known_before_and_begun_after_a_restart_is_across_it(known: float, began: float, counts: bool):
    one = begun_again(got="j", known=known, began=began)
    assert checks.after_a_restart([one], [(1.0, 2.0), RESTART]) == [one] * counts
    earlier = replace(one, known=0.5)
    assert checks.after_a_restart([earlier], [(1.0, 2.0), RESTART]) == [earlier]
