"""How the lexical and the semantic branch become one ranking."""

from __future__ import annotations

import pytest

from durable_memory.domain.semantic.fusion import (
    BRANCH_CUT,
    CONVEX_PROFILE,
    FUSION_PROFILES,
    RRF_PROFILE,
    LexicalBranch,
    SemanticBranch,
    convex,
    reciprocal_rank,
)


def hits(**scores: float) -> dict[str, float]:
    return scores


def words(scores: dict[str, float], *, share: float = 1.0) -> LexicalBranch[str]:
    return LexicalBranch(nodes=list(scores), scores=list(scores.values()), matched_share=share)


def branch(cosines: dict[str, float], *, limit: int = 100, floor: float = 0.0) -> SemanticBranch[str]:
    return SemanticBranch(
        nodes=list(cosines), cosines=list(cosines.values()), candidate_limit=limit, similarity_floor=floor
    )


NO_WORDS = words(hits())
NOTHING = branch(hits())


def near(**scores: float) -> object:
    """A cosine at the floor or under it has less than a millionth of the branch, which keeps their order."""
    return pytest.approx(scores, abs=1e-6)


def rank(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda node_id: -scores[node_id])


# Convex


def test_without_any_hit_there_is_no_score():
    assert convex(NO_WORDS, NOTHING) == {}


def test_a_single_hit_of_either_branch_has_all_of_the_branch():
    assert convex(words(hits(a=3.2)), NOTHING) == near(a=0.75)
    assert convex(NO_WORDS, branch(hits(a=0.4))) == near(a=0.25)
    assert convex(words(hits(a=3.2)), branch(hits(a=0.4))) == near(a=1.0)


def test_a_branch_adds_nothing_for_what_it_missed():
    assert convex(words(hits(a=2.0, b=1.0)), branch(hits(b=0.5, c=0.25))) == near(a=0.75, b=0.375 + 0.25, c=0.125)


def test_words_without_any_score_add_nothing():
    assert convex(words(hits(a=0.0)), branch(hits(b=0.5))) == near(a=0.0, b=0.25)


def test_where_the_best_hit_matched_little_of_the_query_words_weigh_less_in_proportion():
    assert convex(words(hits(a=2.0, b=1.0), share=0.1), NOTHING) == near(a=0.75 / 4, b=0.75 / 8)


def test_a_number_that_a_foreign_question_shares_with_a_memory_does_not_put_it_first():
    near_in_meaning = branch(hits(right=0.82, other=0.8, shares_number=0.77), floor=0.76)
    few, most = words(hits(shares_number=3.0), share=0.05), words(hits(shares_number=3.0), share=0.8)
    assert rank(convex(few, near_in_meaning)) == ["right", "other", "shares_number"]
    assert rank(convex(most, near_in_meaning)) == ["shares_number", "right", "other"]


@pytest.mark.parametrize("share", [0.4, 0.7, 1.0])
def test_from_two_fifths_of_the_query_on_words_have_all_of_their_weight(share):
    assert convex(words(hits(a=2.0, b=1.0), share=share), NOTHING) == near(a=0.75, b=0.375)


def test_with_fewer_hits_than_the_limit_the_floor_of_the_model_counts_as_nothing():
    assert convex(NO_WORDS, branch(hits(a=0.9, b=0.8, c=0.7), floor=0.7)) == near(a=0.25, b=0.125, c=0.0)


def test_a_hit_below_the_floor_of_the_model_counts_as_nothing_and_not_as_less():
    assert convex(NO_WORDS, branch(hits(a=0.9, b=0.1), floor=0.7)) == near(a=0.25, b=0.0)


def test_hits_below_the_floor_of_the_model_keep_their_order():
    scores = convex(NO_WORDS, branch(hits(a=0.9, b=0.7, c=0.69, d=0.5, e=-0.9, f=-1.0), floor=0.7))
    assert rank(scores) == ["a", "b", "c", "d", "e", "f"]
    assert len(set(scores.values())) == len(scores)
    assert min(scores.values()) == 0.0


def test_with_exactly_as_many_hits_as_the_limit_the_last_of_them_counts_as_nothing():
    assert convex(NO_WORDS, branch(hits(a=0.9, b=0.8, c=0.7), limit=3)) == near(a=0.25, b=0.125, c=0.0)


def test_where_the_best_of_few_is_below_the_floor_of_the_model_the_last_counts_as_nothing():
    assert convex(NO_WORDS, branch(hits(a=0.6, b=0.5, c=0.4), floor=0.7)) == near(a=0.25, b=0.125, c=0.0)


def test_where_the_best_of_few_is_just_at_the_floor_of_the_model_the_last_counts_as_nothing():
    assert convex(NO_WORDS, branch(hits(a=0.7, b=0.5), floor=0.7)) == near(a=0.25, b=0.0)


@pytest.mark.parametrize("limit", [2, 100])
def test_all_hits_of_a_level_branch_have_all_of_it(limit):
    assert convex(NO_WORDS, branch(hits(a=0.5, b=0.5 - 1e-9), limit=limit, floor=0.5)) == near(a=0.25, b=0.25)


def test_a_single_hit_that_fills_the_limit_has_all_of_the_branch():
    assert convex(NO_WORDS, branch(hits(a=-0.2), limit=1)) == near(a=0.25)


def test_negative_cosines_are_ordered_like_others():
    assert convex(NO_WORDS, branch(hits(a=-0.1, b=-0.2, c=-0.3))) == near(a=0.25, b=0.125, c=0.0)
    assert convex(NO_WORDS, branch(hits(a=0.2, b=-0.2), limit=2)) == near(a=0.25, b=0.0)


def test_cosines_that_rounding_took_under_minus_one_are_none_below_the_least_floor():
    assert convex(NO_WORDS, branch(hits(a=0.5, b=-1.0000001), floor=-1.0)) == near(a=0.25, b=0.0)


# Reciprocal ranks


def test_ranks_begin_at_one_and_both_branches_weigh_the_same():
    scores = reciprocal_rank(words(hits(a=9.0, b=1.0)), branch(hits(b=0.9, c=0.1)))
    assert scores == near(a=1 / 61, b=1 / 62 + 1 / 61, c=1 / 62)


def test_the_sizes_of_scores_have_no_part_in_reciprocal_ranks():
    assert reciprocal_rank(words(hits(a=9.0, b=1.0)), NOTHING) == reciprocal_rank(words(hits(a=0.2, b=0.1)), NOTHING)


def test_two_that_change_places_between_the_branches_are_tied():
    scores = reciprocal_rank(words(hits(a=2.0, b=1.0)), branch(hits(b=0.9, a=0.8)))
    assert scores["a"] == scores["b"]


def test_the_best_of_each_branch_alone_are_tied():
    scores = reciprocal_rank(words(hits(a=2.0)), branch(hits(b=0.9)))
    assert scores == near(a=1 / 61, b=1 / 61)


# Both


@pytest.mark.parametrize("profile", [CONVEX_PROFILE, RRF_PROFILE])
def test_no_more_than_the_cut_of_the_lexical_branch_takes_part(profile):
    many = words({f"n{place:03}": 200.0 - place for place in range(BRANCH_CUT + 1)})
    assert set(FUSION_PROFILES[profile](many, NOTHING)) == set(many.nodes[:BRANCH_CUT])
