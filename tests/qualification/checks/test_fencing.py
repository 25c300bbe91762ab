"""The checks of leases and fences find what they are for, in histories that are bad by hand."""

from dataclasses import replace

import pytest

from tests.qualification.checks.fencing import (
    fallen_floors,
    granted_below_the_floor,
    problems,
    receipts_out_of_order,
    records_above_the_floor,
    vanished_records,
)
from tests.qualification.checks.moments import PARTITION, TTL_SECONDS, Store, good, receipt
from tests.qualification.observers.receipts import Floor, RecordedIntent

NAME = "aaaaaaaa"
HERE = f"{NAME} at redis-1"


def found(*stores: Store) -> list[str]:
    return problems([one for store in stores for one in store.seen], [], ttl_seconds=TTL_SECONDS)


def later(store: Store, **changes) -> Store:
    """Another history of the store, after this one, with what it still knows."""
    known = {"highest": store.highest, "published": store.published, "lease": None, **changes}
    return Store(reign="second", node="redis-2", now=store.now + 10, **known)


def floor(fence: int, covered: tuple[str, int] | None = None) -> Floor:
    return Floor(partition=PARTITION, fence=fence, covered=covered)


def test_a_good_history_has_no_problems():
    store = good()
    assert found(store) == []
    successor = later(store)
    successor.look()
    successor.grant(4)
    successor.publish(4)
    assert found(store, successor) == []


def test_a_second_holder_is_found():
    store = Store()
    store.look()
    store.grant(1)
    store.wait(1)
    store.grant(2)
    assert found(store) == [f"{HERE}: fence 2 was granted while fence 1 had 2.000 s left"]


def test_a_second_holder_beside_one_without_an_end_is_found():
    store = Store()
    store.look()
    store.grant(1, ttl=None)
    store.wait(100)
    store.grant(2)
    assert found(store) == [f"{HERE}: fence 2 was granted while fence 1 had no end left"]


def test_a_holder_that_comes_back_after_another_one_is_found():
    store = Store()
    store.look()
    for nonce in ("one", "other", "one"):
        store.grant({"one": 1, "other": 2}[nonce], nonce=nonce, highest=2)
        store.wait(TTL_SECONDS + 1)
    assert f"{HERE}: fence 1 was held again after another one" in found(store)


def test_what_may_have_been_missed_between_two_holders_is_no_problem():
    store = Store()
    store.look()
    store.grant(1)
    store.wait(1)
    store.grant(2)
    store.seen[-1] = replace(store.seen[-1], follows=False)
    assert found(store) == []


@pytest.mark.parametrize("fence", [1, 2])
def test_a_fence_that_does_not_rise_is_found(fence):
    store = Store()
    store.look()
    store.grant(2)
    store.release()
    store.grant(fence, nonce="next", highest=2)
    assert found(store) == [f"{HERE}: fence {fence} was granted after 2"]


def test_a_publication_with_an_old_fence_is_found():
    store = Store()
    store.look()
    store.grant(1)
    store.wait(TTL_SECONDS + 1)
    store.grant(2)
    store.publish(1, highest=2)
    assert found(store) == [f"{HERE}: index revision 1 was published under fence 1 after 2 had been granted"]


def test_an_old_fence_that_is_published_between_two_looks_is_found():
    store = Store()
    store.look()
    store.grant(2)
    store.publish(1, highest=2, follows=False)
    assert found(store) == [f"{HERE}: index revision 1 was published under fence 1 after 2 had been granted"]


def test_a_publication_after_the_lease_has_run_out_is_found():
    store = Store()
    store.look()
    store.grant(1)
    store.wait(TTL_SECONDS + 1)
    store.publish(1)
    assert found(store) == [f"{HERE}: index revision 1 was published under fence 1, which was not held"]


def test_a_publication_by_nobody_is_found():
    store = Store()
    store.look()
    store.publish(1, highest=0)
    assert found(store) == [f"{HERE}: index revision 1 was published under fence 1, which was never granted"]


def test_a_highest_fence_that_falls_is_found():
    store = good()
    store.highest = 1
    store.look()
    assert found(store) == [f"{HERE}: the highest fence fell from 3 to 1"]


def test_a_lease_above_the_highest_fence_is_found():
    store = Store()
    store.look()
    store.grant(5, highest=4)
    assert f"{HERE}: fence 5 is held, and the highest is 4" in found(store)


def test_a_history_that_lost_writes_may_start_lower_as_long_as_nothing_is_done_under_an_old_fence():
    store = good()
    empty = later(store, highest=0, published=None)
    empty.look()
    empty.grant(3, nonce="refused by the repository")
    empty.release()
    empty.grant(4)
    empty.publish(4)
    assert found(store, empty) == []


def test_work_under_a_fence_that_was_worked_under_before_is_found():
    store = good()
    empty = later(store, highest=0, published=None)
    empty.look()
    empty.grant(3, nonce="another grant")
    empty.publish(3)
    assert found(store, empty) == [
        f"{NAME}: work under fence 3 began after work under 3",
        f"{NAME}: two grants of fence 3 were worked under",
    ]


def test_renewals_are_work():
    store = good()
    empty = later(store, highest=0, published=None)
    empty.look()
    empty.grant(2, nonce="another grant")
    for _ in range(5):
        empty.wait(1)
        empty.renew()
    assert found(store, empty) == [f"{NAME}: work under fence 2 began after work under 3"]


def test_a_grant_that_ignores_what_is_on_record_is_found():
    store = Store()
    store.look()
    store.grant(4)
    store.publish(4)
    assert granted_below_the_floor(store.seen, {PARTITION: floor(3)}, since=99.0) == []
    assert granted_below_the_floor(store.seen, {PARTITION: floor(4)}, since=99.0) == [
        f"{HERE}: fence 4 published, and 4 had been on record"
    ]
    assert granted_below_the_floor(store.seen, {PARTITION: floor(4)}, since=101.0) == []


def test_a_receipt_that_goes_back_is_found():
    assert receipts_out_of_order([receipt(1, 1, 1.0), receipt(1, 2, 2.0), receipt(2, 1, 3.0)]) == []
    assert receipts_out_of_order([receipt(2, 2, 1.0), receipt(1, 3, 2.0)]) == [
        f"{NAME}: the receipt (fence 1, index revision 3, source revision 1) was written after the one "
        "(fence 2, index revision 2, source revision 1)"
    ]


def test_a_receipt_above_the_fence_on_record_is_found():
    receipts = [receipt(2, 1, 1.0)]
    good_floor = {PARTITION: floor(2, ("history", 1))}
    assert records_above_the_floor(receipts, [], good_floor) == []
    assert records_above_the_floor(receipts, [], {PARTITION: floor(1, ("history", 1))}) == [
        f"{NAME}: fence 2 was written under, and 1 is the highest on record"
    ]
    assert records_above_the_floor(receipts, [], {PARTITION: floor(2, ("history", 9))}) == [
        f"{NAME}: ('history', 9) counts as covered, and the newest receipt covers ('history', 1)"
    ]


def test_an_intent_above_the_fence_on_record_is_found():
    intent = RecordedIntent(
        partition=PARTITION, pending=True, fence=9, nonce="n", expected_index_revision=0, history_digest="0" * 64
    )
    assert records_above_the_floor([], [intent], {PARTITION: floor(8)}) == [
        f"{NAME}: fence 9 was written under, and 8 is the highest on record"
    ]


def test_a_receipt_that_vanishes_or_changes_is_found():
    first, second = receipt(1, 1, 1.0), receipt(2, 2, 2.0)
    assert vanished_records([first], [first, second]) == []
    assert vanished_records([first, second], [replace(first, indexed_count=7)]) == [
        f"{NAME}: the receipt (fence 1, index revision 1, source revision 1) has changed",
        f"{NAME}: the receipt (fence 2, index revision 2, source revision 1) is gone",
    ]


def test_a_floor_that_falls_is_found():
    assert fallen_floors({PARTITION: floor(3)}, {PARTITION: floor(4)}) == []
    assert fallen_floors({PARTITION: floor(3)}, {}) == [f"{NAME}: the highest fence on record fell from 3 to 0"]
