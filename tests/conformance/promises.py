"""Every conformance test, by the promise of `ports/store.py` that it holds stores to.

`test_promises.py` keeps this list and the tests equal. All stores run all tests, with one exception: tests that use
`durable_backend` start a second process over the data of the first, which the memory store does not have.
"""

from collections.abc import Mapping, Sequence
from typing import Final

PROMISES: Final[Mapping[str, Sequence[str]]] = {
    "Atomic: all of a decision is written, or nothing": (
        "test_what_decide_raises_is_raised_as_it_is_and_nothing_is_written",
        "test_a_refused_change_set_writes_none_of_its_operations",
        "test_a_defective_decision_writes_nothing",
        "test_a_call_that_is_cancelled_before_it_starts_leaves_nothing",
        "test_a_cancelled_call_happens_wholly_or_not_at_all_and_blocks_nobody",
        "test_an_event_id_is_never_recorded_twice",
    ),
    "Durable: what was acknowledged is there after another start": (
        "test_everything_acknowledged_is_there_after_another_start",
        "test_calls_that_run_while_the_store_closes_are_finished",
        "test_page_tokens_are_signed_with_random_keys_that_stay",
    ),
    "Idempotent: a request key has one result": (
        "test_a_repeat_returns_the_first_result_without_deciding_again",
        "test_a_repeat_is_answered_before_revisions_are_compared",
        "test_a_key_with_another_fingerprint_is_refused_and_changes_nothing",
        "test_one_key_names_one_request_per_method",
        "test_of_concurrent_first_attempts_one_decides_and_the_others_replay",
        "test_a_refused_attempt_leaves_its_key_unused",
        "test_a_no_op_keeps_its_result_and_moves_nothing",
        "test_a_stored_request_can_be_found",
        "test_results_come_back_with_every_kind_of_json_value",
    ),
    "Serial per namespace: no update is lost": (
        "test_64_writers_of_one_node_lose_no_update",
        "test_64_writers_in_one_namespace_each_get_a_revision_of_their_own",
        "test_64_writers_in_64_namespaces_never_meet",
        "test_a_staged_change_and_its_expected_namespace_revision_are_judged_under_the_lock",
        "test_plans_that_lock_nodes_only_record_events_and_runs",
    ),
    "Linearizable: a read sees every call that returned before it": (
        "test_a_read_sees_every_call_that_returned_before_it",
        "test_the_head_is_never_older_than_what_a_read_has_shown",
    ),
    "Isolated: namespaces never meet": (
        "test_nothing_of_one_namespace_is_read_in_another",
        "test_a_plan_in_one_namespace_loads_nothing_of_another",
        "test_equal_names_in_two_namespaces_live_side_by_side",
    ),
    "Absent means empty": (
        "test_a_namespace_that_nobody_wrote_to_is_empty_with_a_stable_history_id",
        "test_asking_for_nothing_answers_nothing",
        "test_revisions_beyond_any_that_exist_are_answered_like_other_absent_ones",
    ),
    "A plan sees what it names": (
        "test_a_plan_sees_what_it_names_and_nothing_else",
        "test_equal_contents_are_found_in_byte_order_whatever_their_status",
        "test_evidence_stays_known_after_it_left_the_current_revision",
        "test_evidence_is_known_of_what_is_found_by_its_content_too",
        "test_events_are_found_by_their_ids",
        "test_the_newest_incarnation_of_a_run_is_the_one_that_opened_last",
        "test_runs_that_opened_together_are_told_apart_by_their_incarnations_bytes",
    ),
    "The head says where a namespace stands": (
        "test_the_head_counts_what_the_namespace_holds",
        "test_only_writes_of_sessions_move_the_session_revision",
        "test_events_move_neither_the_revision_nor_any_node",
    ),
    "A change wakes those who wait for it": (
        "test_a_waiter_wakes_when_the_namespace_changes",
        "test_a_waiter_for_a_revision_that_has_passed_returns_at_once",
        "test_a_waiter_that_is_cancelled_is_forgotten",
        "test_closing_wakes_those_who_wait",
    ),
    "A closed store serves nothing": ("test_a_closed_store_serves_nothing",),
    "Revisions are kept exactly, and for ever": (
        "test_a_revision_comes_back_with_every_field",
        "test_the_largest_allowed_values_fit",
        "test_a_new_revision_ends_the_one_before_and_changes_nothing_else_of_it",
        "test_both_ends_of_a_relation_change_in_one_revision",
        "test_revisions_of_a_node_are_listed_oldest_first",
    ),
    "Any past state can be listed, in byte order and exact pages": (
        "test_ids_are_ordered_and_paged_by_their_bytes",
        "test_a_page_may_start_after_an_id_that_does_not_exist",
        "test_any_past_revision_can_be_listed",
        "test_a_selection_applies_to_the_listed_state_before_the_limit",
        "test_labels_are_compared_as_exact_text",
    ),
    "What changed is known, without gaps": (
        "test_changes_between_two_revisions_ignore_later_commits",
        "test_changes_are_paged_by_the_bytes_of_ids",
        "test_change_sets_are_listed_in_order_without_gaps_and_chained",
        "test_the_revisions_of_each_change_set_are_found_in_byte_order",
    ),
    "Sessions, runs and contexts are kept exactly": (
        "test_a_session_comes_back_with_every_field_and_an_equal_digest",
        "test_a_session_is_replaced_by_its_id",
        "test_sessions_are_listed_and_paged_by_the_bytes_of_their_ids",
        "test_bindings_are_exported_in_the_order_of_their_versions",
        "test_a_run_is_replaced_by_its_incarnation",
        "test_a_context_that_exists_is_left_as_it_is",
        "test_runs_are_exported_in_order_with_their_contexts",
    ),
    "Access is recorded and summed": (
        "test_events_come_back_in_byte_order_of_their_ids",
        "test_events_of_one_kind_are_selected_before_the_limit",
        "test_usage_is_summed_per_revision_in_order",
    ),
    "An import is whole, under a history id of its own": (
        "test_an_import_holds_everything_that_was_exported",
        "test_where_imported_revisions_end_follows_from_their_order",
        "test_an_import_brings_evidence_and_requests_to_bear",
        "test_an_imported_namespace_goes_on_under_its_new_history_id",
        "test_an_empty_namespace_can_be_imported",
        "test_an_import_into_a_namespace_that_holds_anything_is_refused",
        "test_a_plan_that_wrote_nothing_leaves_a_namespace_empty",
        "test_a_failed_import_leaves_nothing",
    ),
    "All stores are one store": ("test_all_stores_give_the_same_answers",),
}
