"""Every conformance test, by the promise of `ports/leases.py` that it holds lease stores to.

`test_promises.py` keeps this list and the tests equal. All lease stores run all tests.
"""

from collections.abc import Mapping, Sequence
from typing import Final

PROMISES: Final[Mapping[str, Sequence[str]]] = {
    "At most one owner holds a lease at a time": (
        "test_a_lease_that_lives_is_refused_to_everybody_else_with_the_time_to_wait",
        "test_of_many_who_ask_at_once_one_is_granted_the_lease",
        "test_a_lease_that_ran_out_is_granted_to_the_next",
        "test_leases_with_other_names_never_meet",
        "test_names_that_look_alike_are_leases_of_their_own",
    ),
    "The fence rises on every grant, never on a renewal, above the floor and all that are known": (
        "test_the_fence_rises_with_every_grant",
        "test_a_renewal_keeps_the_fence",
        "test_the_fence_is_above_the_floor",
        "test_the_fence_goes_on_after_the_lease_ran_out",
        "test_a_store_that_lost_everything_grants_above_the_floor",
    ),
    "Repeatable: a nonce has one grant as long as it lives": (
        "test_a_repeat_with_the_same_nonce_gets_the_same_fence",
        "test_a_repeat_after_the_end_of_the_grant_is_a_new_one",
        "test_a_repeat_that_knows_of_a_higher_fence_is_refused",
    ),
    "Only the owner's own grant renews or releases": (
        "test_a_renewed_lease_outlives_its_first_ttl",
        "test_a_lease_that_ran_out_cannot_be_renewed",
        "test_nobody_else_renews_or_releases",
        "test_a_released_lease_is_free_at_once",
        "test_releasing_again_changes_nothing",
    ),
    "A lease can be looked at": ("test_a_lease_can_be_looked_at_without_changing_it",),
}
