"""The checks of probing recalls find what they are for."""

from dataclasses import replace

from tests.qualification.checks.probes import (
    Probe,
    answered,
    by_meaning,
    reasons,
    seconds_taken,
    unanswered,
    unsaid,
    wrongly_answered,
    wrongly_refused,
)

GOOD = Probe(began=1.0, ended=1.1, mode="AUTO", used="HYBRID", found=("asked", "other"))
DEGRADED = replace(GOOD, ended=1.2, used="LEXICAL", degradation="INDEX_UNAVAILABLE", found=("asked",))
REFUSED = replace(GOOD, ended=1.3, mode="HYBRID", used="", reason="SEMANTIC_UNAVAILABLE", found=())
OWN = {"asked", "other"}


def test_good_probes_have_no_problems():
    probes = [GOOD, DEGRADED, REFUSED]
    assert unanswered(probes, modes={"AUTO"}, patience_seconds=1.0) == []
    assert wrongly_refused(probes) == []
    assert wrongly_answered(probes, "asked", OWN) == []
    assert (by_meaning(probes), answered(probes, {"AUTO"})) == ([1.1], [1.1, 1.2])
    assert reasons(probes) == {"INDEX_UNAVAILABLE": 1, "SEMANTIC_UNAVAILABLE": 1}


def test_a_recall_that_is_not_answered_although_it_needs_no_index_is_found():
    refused = replace(REFUSED, mode="AUTO")
    assert unanswered([refused], modes={"AUTO"}, patience_seconds=30.0) == [
        "a AUTO recall at 1.000 was refused: SEMANTIC_UNAVAILABLE"
    ]
    late = replace(GOOD, ended=33.5)
    assert unanswered([late, *[GOOD] * 99], modes={"AUTO"}, patience_seconds=30.0) == [
        "a AUTO recall at 1.000 took 32.50 s"
    ]


def test_recalls_that_are_slow_are_measured_and_answered_all_the_same():
    slow = replace(GOOD, ended=11.5)
    assert unanswered([slow] * 50, modes={"AUTO"}, patience_seconds=30.0) == []
    assert seconds_taken([slow, REFUSED, replace(GOOD, mode="LEXICAL")], "AUTO") == [10.5]


def test_a_reason_that_no_recall_gave_is_missed():
    assert unsaid([GOOD, DEGRADED], "INDEX_UNAVAILABLE") == []
    assert unsaid([GOOD, DEGRADED], "INDEX_REGRESSED") == [
        "no recall said INDEX_REGRESSED; they said {'INDEX_UNAVAILABLE': 1}"
    ]


def test_a_refusal_for_another_reason_is_found():
    assert wrongly_refused([replace(REFUSED, reason="INTERNAL")]) == ["a HYBRID recall at 1.000 was refused: INTERNAL"]


def test_a_wrong_answer_is_found():
    by = "a AUTO recall at 1.000, answered by HYBRID"
    assert wrongly_answered([replace(GOOD, found=())], "asked", OWN) == [f"{by}, misses asked"]
    assert wrongly_answered([replace(GOOD, found=("other", "asked"))], "asked", OWN) == [
        f"{by}, prefers other to asked"
    ]
    assert wrongly_answered([replace(GOOD, found=("asked", "foreign"))], "asked", OWN) == [f"{by}, returned foreign"]
