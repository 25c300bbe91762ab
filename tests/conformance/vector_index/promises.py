"""Every conformance test, by the promise of `ports/vector_index.py` that it holds indexes to.

`test_promises.py` keeps this list and the tests equal. All indexes run all tests.
"""

from collections.abc import Mapping, Sequence
from typing import Final

PROMISES: Final[Mapping[str, Sequence[str]]] = {
    "What is published comes back exactly": (
        "test_a_partition_that_nobody_published_to_is_empty",
        "test_a_published_state_comes_back_with_every_field",
        "test_vectors_come_back_bit_for_bit_in_both_widths",
        "test_each_publication_raises_the_revision_by_one_and_chains_the_history",
        "test_a_publication_may_list_nothing",
        "test_segments_are_listed_in_the_order_of_the_publication",
        "test_many_segments_are_read_at_once",
    ),
    "Compare and swap: a publication changes nothing unless all holds": (
        "test_a_publication_with_another_expected_revision_is_refused",
        "test_a_publication_without_the_live_lease_is_refused",
        "test_a_publication_after_the_lease_ran_out_is_refused",
        "test_a_publication_under_the_lease_of_another_partition_is_refused",
        "test_a_publication_with_another_descriptor_is_refused",
        "test_a_publication_that_lists_a_segment_that_is_not_there_is_refused",
        "test_a_publication_that_lists_a_segment_with_another_length_or_checksum_is_refused",
        "test_a_lost_lease_is_told_before_a_conflict_that_it_led_to",
        "test_of_many_who_publish_in_turn_one_wins_each_round",
        "test_of_many_who_publish_at_once_without_the_lease_none_does",
        "test_a_reader_sees_the_old_or_the_new_state_and_never_half_of_one",
    ),
    "Repeatable: a nonce has one publication": (
        "test_a_repeated_publication_returns_its_manifest_and_changes_nothing",
        "test_a_repeated_publication_needs_no_lease_any_more",
        "test_a_repeat_from_before_the_published_state_is_refused",
        "test_staging_a_segment_again_changes_nothing",
        "test_an_id_that_was_used_for_another_segment_is_refused",
        "test_a_late_repeat_never_lets_a_published_segment_expire",
    ),
    "Staged segments expire unless renewed or published; replaced ones stay for a while": (
        "test_staged_segments_expire_unless_they_are_renewed",
        "test_a_segment_that_is_gone_cannot_be_renewed",
        "test_a_publication_whose_staged_segments_expired_is_refused",
        "test_a_refused_publication_lets_its_staged_segments_expire",
        "test_published_segments_stay",
        "test_replaced_segments_stay_readable_and_then_go",
    ),
    "Partitions never meet": (
        "test_partitions_of_names_that_look_alike_never_meet",
        "test_equal_segment_ids_in_two_partitions_are_two_segments",
        "test_publications_in_200_partitions_never_reject_each_other",
    ),
    "Clearing forgets what is published, but neither the highest fence nor what is staged": (
        "test_a_cleared_partition_is_empty_and_begins_again",
        "test_what_is_staged_outlives_a_clearing",
        "test_fences_go_on_after_a_clearing",
        "test_clearing_needs_the_live_lease",
        "test_clearing_again_changes_nothing",
    ),
    "All indexes are one index": ("test_random_calls_get_the_answers_of_the_memory_index",),
    "An index says what it is": ("test_an_index_says_what_it_promises_and_that_it_is_there",),
}
