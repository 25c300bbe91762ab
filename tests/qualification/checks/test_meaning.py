"""Each check of recall by meaning finds what it is for."""

from tests.qualification.checks.meaning import (
    lost,
    misunderstood,
    outdated,
    paid_twice,
    several_identities,
    worse_ranks,
)

RIGHT = {"q1": "a", "q2": "b"}
GOOD = {"q1": ["a", "b"], "q2": ["b", "a"]}


def test_the_same_order_is_no_worse():
    assert worse_ranks(GOOD, GOOD, RIGHT) == []


def test_another_rank_is_found():
    assert worse_ranks(GOOD, {**GOOD, "q2": ["a", "b"]}, RIGHT) == ["question q2: b was at rank 1, and is at 2"]


def test_an_answer_that_is_gone_is_found():
    assert worse_ranks(GOOD, {"q1": ["a"]}, RIGHT) == ["question q2: b was at rank 1, and is at 0"]


def test_a_model_that_understands_may_miss_as_many_as_were_stated():
    assert misunderstood({"q1": ["a"], "q2": ["a", "b"]}, RIGHT, most=1) == []


def test_a_model_that_does_not_understand_is_found():
    assert misunderstood({"q1": ["b"], "q2": []}, RIGHT, most=1) == [
        "question q1: a is at rank 0",
        "question q2: b is at rank 0",
    ]


def test_one_generation_of_all_is_one_identity():
    assert several_identities({"server 0": ["d1"], "status": ["d1", "d1"]}) == []


def test_another_generation_is_found():
    assert several_identities({"server 0": ["d1"], "server 1": ["d2"]}) == [
        "server 0 named ['d1']",
        "server 1 named ['d2']",
    ]


def test_somebody_who_names_none_is_found():
    assert several_identities({"server 0": ["d1"], "server 1": []}) == [
        "server 0 named ['d1']",
        "server 1 named no generation",
    ]


def test_a_hit_that_is_not_there_any_more_is_found():
    assert outdated(GOOD, {"q2": "a"}, "then") == ["then, question q2: a is at rank 2"]
    assert outdated(GOOD, {"q2": "c"}, "then") == []


def test_a_memory_that_is_there_and_is_not_found_is_found_out():
    assert lost({"q1": ["b"]}, {"q1": "a"}, "then") == ["then, question q1: a is not found"]
    assert lost(GOOD, RIGHT, "then") == []


def test_texts_that_are_embedded_again_are_found():
    assert paid_twice([("first", 2, 2), ("again", 0, 1)]) == ["again: 0 texts were new, and 1 were embedded"]


def test_what_a_refresh_that_was_cut_short_had_embedded_is_not_paid_for_by_the_next():
    assert paid_twice([("first", 44, 28), ("again", 0, 0)]) == []
