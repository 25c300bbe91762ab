"""What a history makes of the reasons that the service may give."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.qualification.recorder.history import AFTERWARDS, AWAY, Call, Effect, History, Outcome, came_through

_PREFIX = "ERROR_REASON_"
_STATUSES = frozenset({"UNAVAILABLE", "CANCELLED"})
"""Of answers that come from no server, and of callers that gave up."""

_REASONS = json.loads((Path(__file__).parents[3] / "clients" / "reasons.json").read_text())["reasons"]


def refused(reason: str, outcome: Outcome = Outcome.REFUSED) -> Call:
    return Call(method="Remember", request_id="a", began=1.0, ended=2.0, outcome=outcome, reason=reason)


def test_the_service_is_away_where_the_contract_says_so():
    assert {row["reason"].removeprefix(_PREFIX) for row in _REASONS if row["outage"]} | _STATUSES == AWAY


def test_every_verdict_is_a_reason_that_the_contract_calls_definite():
    verdicts = {row["reason"] for row in _REASONS if refused(row["reason"].removeprefix(_PREFIX)).is_verdict}
    assert verdicts
    assert verdicts <= {row["reason"] for row in _REASONS if row["definite"] and not row["outage"]}


@pytest.mark.parametrize(
    ("reason", "is_verdict", "is_final"),
    [
        ("REVISION_CONFLICT", True, True),
        ("RUN_IDENTITY_CONFLICT", True, True),
        ("INVALID_FIELD", False, True),
        ("LIMIT_EXCEEDED", False, True),
        ("PERMISSION_DENIED", False, True),
        ("SEMANTIC_UNAVAILABLE", False, True),
        ("RATE_LIMITED", False, False),
        ("NOT_SERVING", False, False),
    ],
)
def test_only_what_is_decided_after_the_lookup_speaks_of_other_attempts(reason: str, is_verdict: bool, is_final: bool):
    assert (refused(reason).is_verdict, refused(reason).is_final) == (is_verdict, is_final)
    unknown = refused(reason, Outcome.UNKNOWN)
    assert not unknown.is_verdict
    assert not unknown.is_final


def test_what_comes_through_is_the_first_answer_if_it_changed_something():
    doubtful = refused("UNAVAILABLE", Outcome.UNKNOWN)
    done = replace(doubtful, outcome=Outcome.OK, effect=Effect(revision=1, answer="made"))
    known = replace(done, effect=Effect(revision=None, answer="UNCHANGED"))
    assert came_through([doubtful, done, done]) is done
    assert came_through([doubtful]) is None
    assert came_through([known]) is None
    assert came_through([replace(done, caller=AFTERWARDS), done]) is None


def test_a_copy_stays_as_it_is():
    history = History(calls=[refused("REVISION_CONFLICT")])
    copied = history.copy()
    history.add(refused("NODE_FROZEN"))
    assert (len(copied.calls), len(history.calls)) == (1, 2)
