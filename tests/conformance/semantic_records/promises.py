"""Every conformance test, by the promise of `ports/semantic_records.py` that it holds the records of stores to.

`test_promises.py` keeps this list and the tests equal. The records of all stores run all tests, with one exception:
tests that use `durable_backend` open the data of the first store in a second one, which the memory store cannot.
"""

from collections.abc import Mapping, Sequence
from typing import Final

PROMISES: Final[Mapping[str, Sequence[str]]] = {
    "Vectors are cached by namespace, model and text": (
        "test_a_cached_vector_comes_back_byte_for_byte",
        "test_a_vector_that_is_there_stays",
        "test_each_model_has_vectors_of_its_own",
        "test_no_vectors_asked_for_are_none_found",
        "test_thousands_of_vectors_are_kept_and_found_at_once",
        "test_many_that_cache_the_same_vectors_at_once_do_not_hinder_each_other",
        "test_vectors_of_one_namespace_are_not_found_from_another",
    ),
    "What a provider makes is known by its configuration": (
        "test_a_recorded_generation_comes_back_with_every_field",
        "test_each_configuration_has_a_generation_of_its_own",
        "test_the_generation_that_was_recorded_last_is_the_one_that_is_known",
        "test_many_that_record_a_generation_at_once_do_not_hinder_each_other",
    ),
    "One fence, one holder": (
        "test_a_fence_is_recorded_if_it_is_above_every_recorded_one",
        "test_a_fence_that_no_grant_can_have_is_not_recorded",
        "test_of_many_holders_of_one_fence_one_records_it",
        "test_of_many_fences_at_once_the_highest_is_left",
        "test_partitions_have_fences_of_their_own",
    ),
    "What is written under a fence is written under the highest": (
        "test_work_under_another_fence_than_the_highest_is_refused_and_leaves_nothing",
        "test_a_new_holder_and_a_late_receipt_of_the_old_one_come_one_after_the_other",
        "test_a_receipt_that_is_refused_covers_nothing",
    ),
    "One intent is pending, until the newest receipt ends it": (
        "test_an_intent_comes_back_with_every_field",
        "test_an_intent_replaces_the_one_before",
        "test_an_intent_stays_pending_under_the_next_fence",
        "test_the_newest_receipt_ends_the_pending_intent",
        "test_the_next_holder_completes_a_publication_and_then_finds_nothing_else_to_do",
    ),
    "Receipts are ordered, and never replaced": (
        "test_a_receipt_comes_back_with_every_field",
        "test_a_receipt_of_an_index_without_any_publication_can_be_kept",
        "test_an_older_receipt_replaces_no_newer_one_and_ends_no_intent",
        "test_an_index_that_counts_from_one_again_has_newer_receipts_under_its_higher_fence",
        "test_a_receipt_that_is_repeated_is_there_once_and_as_it_was_first",
        "test_the_newest_thousand_receipts_are_kept_of_each_partition",
        "test_receipts_are_listed_newest_first_in_pages",
        "test_a_page_of_receipts_may_start_before_a_position_that_does_not_exist",
        "test_partitions_have_intents_and_receipts_of_their_own",
        "test_a_receipt_of_another_generation_is_a_defect",
    ),
    "A partition has one schedule": (
        "test_a_schedule_comes_back_with_every_field",
        "test_a_schedule_replaces_the_one_before",
        "test_partitions_have_schedules_of_their_own",
        "test_a_schedule_that_never_comes_or_never_rests_is_refused",
    ),
    "The last runs are kept": (
        "test_runs_come_back_with_every_field_those_that_were_added_last_first",
        "test_the_last_64_runs_are_kept",
        "test_runs_that_are_added_at_once_are_all_there",
        "test_a_run_that_had_no_fence_leaves_the_recorded_one_alone",
        "test_partitions_have_runs_of_their_own",
        "test_the_error_of_a_run_is_short",
    ),
    "Due on change": (
        "test_a_namespace_is_due_the_delay_after_its_first_change",
        "test_without_an_open_session_of_the_generation_no_change_is_due",
        "test_a_session_that_is_rebound_moves_to_its_new_generation",
        "test_a_namespace_is_due_once_however_many_sessions_it_has",
        "test_a_namespace_that_never_had_anything_active_counts_as_indexed",
        "test_a_namespace_whose_last_active_node_has_gone_is_due_if_it_was_indexed",
        "test_what_the_last_receipt_covers_is_not_due",
        "test_a_receipt_of_another_history_covers_nothing",
        "test_an_older_receipt_uncovers_nothing",
        "test_a_store_that_fell_behind_its_receipt_is_due",
        "test_a_namespace_whose_changes_never_pause_gets_its_turn",
        "test_a_refresh_that_failed_is_due_again_the_delay_after_it_began",
        "test_a_namespace_that_keeps_failing_lets_the_others_pass",
        "test_those_that_wait_longest_come_first",
        "test_a_schedule_sets_the_delay",
        "test_a_schedule_with_both_off_disables_the_default",
    ),
    "Due by interval": (
        "test_an_interval_counts_from_the_start_of_the_last_run",
        "test_an_interval_is_for_namespaces_that_have_a_change_set",
        "test_of_interval_and_delay_the_earlier_counts",
    ),
    "Records count as no write in their namespace": (
        "test_what_is_recorded_before_the_first_change_makes_nothing_due",
        "test_records_leave_a_namespace_as_empty_as_it_was",
    ),
    "Records live in their store, and as long as it": (
        "test_all_that_was_acknowledged_is_there_after_another_start",
        "test_records_of_a_closed_store_serve_nothing",
        "test_a_cancelled_write_happens_wholly_or_not_at_all_and_blocks_nobody",
    ),
}
