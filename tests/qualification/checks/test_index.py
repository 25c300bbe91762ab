"""The checks of indexes find what they are for, in histories that are bad by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from durable_memory_client import (
    ChangeToken,
    IndexState,
    IndexStatus,
    PublishedIndex,
    RefreshReceipt,
    SemanticGeneration,
)
from durable_memory_client.values.enums import IndexConsistency, VectorMetric, VectorNormalization
from durable_memory_client.values.semantic import RefreshWork
from tests.qualification.checks.index import (
    Orphan,
    Promotion,
    changed_identity,
    changed_vectors,
    lost_nothing,
    lost_publications,
    never_seen,
    not_caught_up,
    not_completed,
    off_the_record,
    paid_rebuilds,
    problems,
    unnoticed,
)
from tests.qualification.checks.moments import PARTITION, Store, good, receipt, receipts_of
from tests.qualification.observers.receipts import RecordedIntent

NAME = "aaaaaaaa"
HERE = f"{NAME} at redis-1"


def test_a_good_history_has_no_problems():
    store = good()
    assert problems(store.seen) == []
    # Cleared, and begun anew.
    store.published = None
    store.look()
    store.grant(4)
    store.publish(4)
    assert problems(store.seen) == []


def test_a_skipped_revision_is_found():
    store = good()
    store.publish(3, revision=4)
    assert problems(store.seen) == [f"{HERE}: index revision 4 was published after 2"]


def test_a_revision_that_goes_back_is_found_although_something_was_missed():
    store = good()
    store.publish(3)
    store.publish(3, revision=2, follows=False)
    assert f"{HERE}: index revision 2 was published after 3" in problems(store.seen)


def test_publications_that_were_missed_are_no_problem():
    store = good()
    store.publish(3, revision=7, follows=False)
    assert problems(store.seen) == []


def test_another_index_at_the_same_revision_is_found():
    store = good()
    assert store.published is not None
    store.published = replace(store.published, history_digest="e" * 64)
    store.look(follows=False)
    assert problems(store.seen) == [f"{HERE}: index revision 2 has become another index"]


def test_a_broken_chain_is_found():
    store = good()
    store.publish(3)
    assert store.published is not None
    broken = replace(store.published, index_revision=4, history_digest="e" * 64)
    store.published = broken
    store.look()
    assert problems(store.seen) == [f"{HERE}: the history breaks at index revision 4"]


def _published(store: Store):
    return list({one.published.history_digest: one.published for one in store.seen if one.published}.values())


def test_an_index_that_nothing_on_record_is_of_is_found():
    store = good()
    receipts = receipts_of(_published(store))
    latest = {PARTITION: store.seen[-1]}
    assert off_the_record(latest, receipts, []) == []
    assert never_seen(store.seen, receipts) == []
    assert off_the_record(latest, receipts[:1], []) == [f"{HERE}: index revision 2 is published, and 1 is on record"]
    assert off_the_record(latest, [], []) == [f"{HERE}: index revision 2 is published, and None is on record"]
    assert never_seen(store.seen[:3], receipts) == [
        f"{NAME}: the receipt of index revision 2 is of no index that was seen"
    ]


def test_a_receipt_of_what_was_published_while_nobody_looked_is_of_an_index_that_was_there():
    store = good()
    receipts = receipts_of(_published(store))
    third, fourth, fifth = (receipt(3, revision, 1.0) for revision in (3, 4, 5))
    store.publish(3, revision=5, follows=False)
    seen = replace(fifth, history_digest=_published(store)[-1].history_digest)
    assert never_seen(store.seen, [*receipts, third, fourth, seen]) == []
    name = f"{NAME}: the receipt of index revision"
    for one in (fifth, receipt(3, 2, 1.0, digest="e" * 64), receipt(3, 6, 1.0)):
        assert never_seen(store.seen, [one]) == [f"{name} {one.index_revision} is of no index that was seen"]
    assert never_seen(store.seen, [replace(third, partition="b" * 64)]) != []
    store.seen[-1] = replace(store.seen[-1], follows=True)
    assert len(never_seen(store.seen, [third, fourth])) == 2


def test_a_publication_whose_receipt_is_still_to_come_is_on_record_by_its_intent():
    store = good()
    assert store.published is not None
    intent = RecordedIntent(
        partition=PARTITION,
        pending=True,
        fence=3,
        nonce=store.published.nonce,
        expected_index_revision=1,
        history_digest=store.published.history_digest,
    )
    receipts = receipts_of(_published(store))[:1]
    assert off_the_record({PARTITION: store.seen[-1]}, receipts, [intent]) == []
    assert off_the_record({PARTITION: store.seen[-1]}, receipts, [replace(intent, pending=False)]) != []


def test_a_publication_whose_holder_died_is_put_on_record_by_the_next_holder():
    published = good().published
    assert published is not None
    orphan = Orphan(partition=PARTITION, fence=3, published=published)
    written = replace(receipt(4, 2, 1.0, digest=published.history_digest), completed_by_successor=True)
    unchanged = replace(written, fence=5, completed_by_successor=False)
    assert not_completed([orphan], [written, unchanged]) == []
    name = f"{NAME}: index revision 2 under fence 3"
    assert not_completed([orphan], []) == [f"{name} has no receipt"]
    assert not_completed([orphan], [replace(written, history_digest="e" * 64)]) == [f"{name} has no receipt"]
    assert not_completed([orphan], [replace(written, fence=3)]) == [f"{name} has a receipt under fence 3"]
    assert not_completed([orphan], [unchanged]) == [f"{name} has a receipt that does not say that a successor wrote it"]


def test_what_a_history_of_the_store_begins_without_is_counted_once():
    store = good()
    kept = Store(reign="second", highest=3, published=store.published)
    empty = Store(reign="third")
    for later in (kept, empty):
        later.look()
    assert lost_publications([*store.seen, *kept.seen]) == 0
    assert lost_publications([*store.seen, *empty.seen]) == 1
    # The first primary wakes, and is one that was known.
    assert lost_publications([*kept.seen, *empty.seen, *kept.seen, *empty.seen]) == 1


def test_a_promotion_that_loses_nothing_or_is_not_noticed_is_found():
    good_one = Promotion(published=3, survived=2, state="REGRESSED")
    assert lost_nothing([good_one]) == unnoticed([good_one]) == []
    assert lost_nothing([good_one, replace(good_one, survived=3)]) == [
        "index revision 3 was to be lost, and 3 is there after the promotion"
    ]
    assert unnoticed([good_one, replace(good_one, state="CURRENT")]) == [
        "the index was called CURRENT at index revision 2 after 3 had been published"
    ]


def status(**changes) -> IndexStatus:
    token = ChangeToken("history", 7)
    written = RefreshReceipt(
        authority_digest="b" * 64,
        fence=3,
        index_revision=2,
        index_history_digest="d" * 64,
        source=token,
        active_count=5,
        indexed_count=5,
        consistency=IndexConsistency.INDEX_REVISION_CAS,
        work=RefreshWork(
            added=1,
            replaced=0,
            removed=0,
            cache_hits=0,
            provider_calls=1,
            provider_inputs=1,
            provider_bytes=1,
            staged_bytes=1,
            duration=timedelta(),
            refused=0,
        ),
        completed_by_successor=False,
        written_at=datetime(2025, 1, 1, tzinfo=UTC),
    )
    good_status = IndexStatus(
        change_token=token,
        generation=SemanticGeneration(
            authority_digest="b" * 64,
            provider="openai",
            model="m",
            model_revision="1",
            dimension=4,
            normalization=VectorNormalization.L2,
            metric=VectorMetric.COSINE,
            candidate_limit=100,
            min_similarity=0.0,
        ),
        state=IndexState.CURRENT,
        published=PublishedIndex(
            index_revision=2,
            index_history_digest="d" * 64,
            fence=3,
            source=token,
            live_count=5,
            dead_count=0,
            stored_bytes=1,
            segment_count=1,
            float_bits=32,
        ),
        last_receipt=written,
        unindexed_active_count=0,
        refused_count=0,
        last_failure="",
        schedule=None,
    )
    return replace(good_status, **changes)


def test_an_index_that_is_behind_is_found():
    assert not_caught_up({"n": status()}) == []
    assert not_caught_up({"n": status(state=IndexState.REGRESSED)}) == ["n: the index is REGRESSED"]
    assert not_caught_up({"n": status(unindexed_active_count=2)}) == ["n: 2 memories have no vector"]
    expected = ["n: the last receipt is not of the present revision"]
    assert not_caught_up({"n": status(change_token=ChangeToken("history", 8))}) == expected
    assert not_caught_up({"n": status(last_receipt=None)}) == expected
    published = status().published
    assert published is not None
    another = replace(published, index_history_digest="f" * 64)
    assert not_caught_up({"n": status(published=another)}) == ["n: the last receipt is not of the published index"]


def test_a_rebuild_that_asks_the_provider_is_found():
    free = receipt(4, 1, 1.0)
    paid = replace(free, work={"provider_calls": 1, "provider_inputs": 3})
    assert paid_rebuilds([free], 0) == []
    assert paid_rebuilds([free, paid], 0) == [
        f"{NAME}: index revision 1 under fence 4 cost 1 provider calls for 3 texts"
    ]
    assert paid_rebuilds([free], 2) == ["2 texts of memories were sent to the provider while indexes were built again"]


def test_another_generation_is_found():
    assert changed_identity([["a"], ["a"]]) == []
    assert changed_identity([["a"], ["b"]]) == ["the generations named were [('a',), ('b',)]"]
    assert changed_identity([[], []]) == ["the generations named were [()]"]


def test_vectors_that_changed_or_went_are_found():
    before = {PARTITION: {"1" * 64: b"one", "2" * 64: b"two"}}
    assert changed_vectors(before, {PARTITION: {**before[PARTITION], "3" * 64: b"three"}}) == []
    assert changed_vectors(before, {PARTITION: {"1" * 64: b"other"}}) == [
        f"{NAME}: 1 vectors are gone",
        f"{NAME}: the vector of text 11111111 is another",
    ]
