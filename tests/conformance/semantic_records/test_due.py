"""Which partitions want a refresh now. Change sets of these tests are committed at `NOW` unless they say otherwise."""

from dataclasses import replace
from datetime import timedelta

import pytest

from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeStatus
from durable_memory.domain.session import SessionState
from tests.conformance.samples import NOW, apply, create, everything, revise, session, set_status, writing
from tests.conformance.semantic_records.samples import (
    DELAY,
    bind,
    bound_session,
    cover,
    due,
    maintenance_run,
    receipt,
    schedule,
)
from tests.conformance.semantic_records.samples import (
    partition as partition_of,
)

EVER = 10_000_000.0
"""So many seconds after `NOW` everything is due that ever will be."""


def at(seconds: float):
    return NOW + timedelta(seconds=seconds)


async def test_a_namespace_is_due_the_delay_after_its_first_change(store, records, namespace, generation):
    await apply(store, namespace, create("n", active=True))
    await bind(store, namespace, generation)
    assert await due(records, generation, DELAY - 0.000001) == []
    assert await due(records, generation, DELAY) == [namespace]
    assert await due(records, generation, DELAY, delay=DELAY + 0.000001) == []
    assert await due(records, generation, 0, delay=0) == [namespace]


async def test_without_an_open_session_of_the_generation_no_change_is_due(
    store, records, namespace, generation, other_generation
):
    await apply(store, namespace, create("n", active=True))
    closed = bound_session(namespace, generation, "closed", SessionState.CLOSED)
    other = bound_session(namespace, other_generation, "other")
    await store.transact(namespace, writing(sessions=(closed, other, session(namespace, "lexical"))))
    assert await due(records, generation, EVER) == []
    assert await due(records, other_generation, EVER) == [namespace]
    await bind(store, namespace, generation, "open")
    assert await due(records, generation, EVER) == [namespace]
    await store.transact(
        namespace, writing(sessions=(bound_session(namespace, generation, "open", SessionState.CLOSED),))
    )
    assert await due(records, generation, EVER) == []


async def test_a_session_that_is_rebound_moves_to_its_new_generation(
    store, records, namespace, generation, other_generation
):
    await apply(store, namespace, create("n", active=True))
    await bind(store, namespace, generation)
    rebound = replace(bound_session(namespace, other_generation), binding_version=2)
    await store.transact(namespace, writing(sessions=(rebound,)))
    assert await due(records, generation, EVER) == []
    assert await due(records, other_generation, EVER) == [namespace]


async def test_a_namespace_is_due_once_however_many_sessions_it_has(store, records, namespace, generation):
    await apply(store, namespace, create("n", active=True))
    for number in range(5):
        await bind(store, namespace, generation, f"s{number}")
    await records.set_schedule(namespace, schedule(generation, 60.0, 0.0))
    assert await due(records, generation, EVER) == [namespace]


async def test_a_namespace_that_never_had_anything_active_counts_as_indexed(store, records, namespace, generation):
    await bind(store, namespace, generation)
    assert await due(records, generation, EVER) == []
    await apply(store, namespace, create("n"))
    assert await due(records, generation, EVER) == []


async def test_a_namespace_whose_last_active_node_has_gone_is_due_if_it_was_indexed(
    store, records, namespace, generation, partition
):
    head = (await apply(store, namespace, create("n", active=True))).head
    await bind(store, namespace, generation)
    await cover(records, partition, history_id=head.history_id, source_revision=1)
    await apply(store, namespace, set_status("n", 1, NodeStatus.ARCHIVED))
    assert (await store.head(namespace)).active_count == 0
    assert await due(records, generation, EVER) == [namespace]


async def test_what_the_last_receipt_covers_is_not_due(store, records, namespace, generation, partition):
    head = (await apply(store, namespace, create("n", active=True))).head
    await bind(store, namespace, generation)
    await cover(records, partition, history_id=head.history_id, source_revision=1)
    assert await due(records, generation, EVER) == []
    await apply(store, namespace, revise("n", 1, "other"), now=at(100))
    assert await due(records, generation, 100 + DELAY - 0.000001) == []
    assert await due(records, generation, 100 + DELAY) == [namespace]
    await cover(records, partition, history_id=head.history_id, source_revision=2)
    assert await due(records, generation, EVER) == []


async def test_a_receipt_of_another_history_covers_nothing(store, records, namespace, generation, partition):
    await apply(store, namespace, create("n", active=True))
    await bind(store, namespace, generation)
    await cover(records, partition, history_id="another", source_revision=1)
    assert await due(records, generation, DELAY) == [namespace]


async def test_an_older_receipt_uncovers_nothing(store, records, namespace, generation, partition):
    head = (await apply(store, namespace, create("n", active=True))).head
    await apply(store, namespace, revise("n", 1, "other"))
    await bind(store, namespace, generation)
    await cover(records, partition, history_id=head.history_id, source_revision=2, index_revision=2)
    await records.write_receipt(partition, receipt(partition, 1, 1, source_revision=1, history_id=head.history_id))
    assert await due(records, generation, EVER) == []


async def test_a_store_that_fell_behind_its_receipt_is_due(store, records, namespace, generation, partition):
    """The index was made of revisions that the store has lost."""
    head = (await apply(store, namespace, create("n", active=True))).head
    await bind(store, namespace, generation)
    await cover(records, partition, history_id=head.history_id, source_revision=7)
    assert await due(records, generation, DELAY) == [namespace]


async def test_a_namespace_whose_changes_never_pause_gets_its_turn(store, records, namespace, generation, partition):
    head = (await apply(store, namespace, create("n", active=True))).head
    await bind(store, namespace, generation)
    for second in range(1, 5):
        await apply(store, namespace, revise("n", second, f"text {second}"), now=at(second))
    assert await due(records, generation, DELAY) == [namespace]
    await cover(records, partition, history_id=head.history_id, source_revision=3)  # committed at second 2
    assert await due(records, generation, 3 + DELAY - 0.000001) == []
    assert await due(records, generation, 3 + DELAY) == [namespace]


async def test_a_refresh_that_failed_is_due_again_the_delay_after_it_began(
    store, records, namespace, generation, partition
):
    await apply(store, namespace, create("n", active=True))
    await bind(store, namespace, generation)
    await records.add_run(partition, maintenance_run(100))
    assert await due(records, generation, 100 + DELAY - 0.000001) == []
    assert await due(records, generation, 100 + DELAY) == [namespace]


async def test_a_namespace_that_keeps_failing_lets_the_others_pass(store, records, unique, generation):
    namespaces = [Namespace("acme", f"user-{number}", unique) for number in range(3)]
    for second, namespace in enumerate(namespaces):
        await apply(store, namespace, create("n", active=True), now=at(second))
        await bind(store, namespace, generation)
    seen = []
    for turn in range(100, 103):
        (first,) = await due(records, generation, turn, limit=1)
        await records.add_run(partition_of(first, generation), maintenance_run(turn))
        seen.append(first)
    assert seen == namespaces


async def test_those_that_wait_longest_come_first(store, records, unique, generation):
    seconds = {Namespace("acme", f"user-{number}", unique): (7 * number) % 10 for number in range(10)}
    for namespace, second in seconds.items():
        await apply(store, namespace, create("n", active=True), now=at(second))
        await bind(store, namespace, generation)
    in_order = sorted(seconds, key=lambda namespace: seconds[namespace])
    assert await due(records, generation, EVER) == in_order
    assert await due(records, generation, EVER, limit=3) == in_order[:3]
    assert await due(records, generation, EVER, limit=0) == []
    assert await due(records, generation, 4 + DELAY) == in_order[:5]


async def test_a_schedule_sets_the_delay(store, records, namespace, generation):
    await apply(store, namespace, create("n", active=True))
    await bind(store, namespace, generation)
    await records.set_schedule(namespace, schedule(generation, delay=0.5))
    assert await due(records, generation, 0.499999) == []
    assert await due(records, generation, 0.5) == [namespace]


async def test_a_schedule_with_both_off_disables_the_default(store, records, namespace, generation, other_generation):
    await apply(store, namespace, create("n", active=True))
    await bind(store, namespace, generation, "s")
    await bind(store, namespace, other_generation, "other")
    await records.set_schedule(namespace, schedule(generation))
    assert await due(records, generation, EVER) == []
    assert await due(records, other_generation, EVER) == [namespace]


async def test_an_interval_counts_from_the_start_of_the_last_run(store, records, namespace, generation, partition):
    """Without a session, and whether or not anything has changed; ticks that were missed are not made up for."""
    head = (await apply(store, namespace, create("n", active=True))).head
    await cover(records, partition, history_id=head.history_id, source_revision=1)
    await records.set_schedule(namespace, schedule(generation, 60.0))
    assert await due(records, generation, -0.000001) == []
    assert await due(records, generation, 0) == [namespace]
    for run in (1000, 1060):
        await records.add_run(partition, maintenance_run(run))
        assert await due(records, generation, run + 59.999999) == []
        assert await due(records, generation, run + 60) == [namespace]


async def test_an_interval_is_for_namespaces_that_have_a_change_set(store, records, namespace, generation):
    await records.set_schedule(namespace, schedule(generation, 60.0))
    assert await due(records, generation, EVER) == []
    await bind(store, namespace, generation)
    assert await due(records, generation, EVER) == []
    await apply(store, namespace, create("n"))
    assert await due(records, generation, EVER) == [namespace]


async def test_of_interval_and_delay_the_earlier_counts(store, records, namespace, generation, partition):
    head = (await apply(store, namespace, create("n", active=True))).head
    await bind(store, namespace, generation)
    await cover(records, partition, history_id=head.history_id, source_revision=1)
    await records.set_schedule(namespace, schedule(generation, 60.0, 5.0))
    await records.add_run(partition, maintenance_run(0))
    assert await due(records, generation, 59) == []
    await apply(store, namespace, revise("n", 1, "other"), now=at(20))
    assert await due(records, generation, 24) == []
    assert await due(records, generation, 25) == [namespace]


@pytest.mark.parametrize("interval", [None, 60.0])
async def test_what_is_recorded_before_the_first_change_makes_nothing_due(
    records, namespace, generation, partition, interval
):
    assert await records.record_fence(partition, 1)
    await records.add_run(partition, maintenance_run())
    await records.set_schedule(namespace, schedule(generation, interval, 0.0))
    assert await due(records, generation, EVER) == []


async def test_records_leave_a_namespace_as_empty_as_it_was(
    store, records, namespace, other_namespace, generation, partition
):
    await apply(store, other_namespace, create("n", active=True))
    await records.set_schedule(namespace, schedule(generation, 60.0))
    await cover(records, partition, history_id="history", source_revision=0)
    await records.add_run(partition, maintenance_run())
    await records.cache_vectors(namespace, generation.model_digest, {"0" * 64: b"vector"})
    assert (await store.head(namespace)).revision == 0
    await store.import_namespace(namespace, await everything(store, other_namespace), "f" * 32)
    assert await due(records, generation, EVER) == [namespace]
