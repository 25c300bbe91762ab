"""Access events and what they add up to."""

from datetime import timedelta

import pytest

from durable_memory.domain.access import AccessKind, UsageSummary
from durable_memory.domain.errors import DomainError
from durable_memory.domain.node import NodeRef
from durable_memory.ports.store import Loaded, Reads
from tests.conformance.samples import MANY, NOW, apply, create, event, revise, writing

LATER = NOW + timedelta(seconds=1)
START = NodeRef("", 0)


@pytest.fixture
async def used(store, namespace):
    """A store with events of three revisions: `a` at 1 and 2, `é` at 1."""
    await apply(store, namespace, create("a"), create("é"))
    await apply(store, namespace, revise("a", 1, "other"))
    await store.transact(
        namespace,
        writing(
            events=(
                event("4", NodeRef("é", 1), AccessKind.USE, at=LATER),
                event("1", NodeRef("a", 1)),
                event("3", NodeRef("a", 1), AccessKind.USE, at=LATER),
                event("2", NodeRef("a", 1), at=LATER),
                event("B", NodeRef("a", 2)),
            )
        ),
    )
    return store


async def test_events_come_back_in_byte_order_of_their_ids(used, namespace):
    listed = await used.list_events(namespace, kind=None, after_event_id="", limit=MANY)
    assert [item.event_id for item in listed] == ["1", "2", "3", "4", "B"]
    assert listed[0] == event("1", NodeRef("a", 1))
    page = await used.list_events(namespace, kind=None, after_event_id="2", limit=2)
    assert [item.event_id for item in page] == ["3", "4"]


async def test_events_of_one_kind_are_selected_before_the_limit(used, namespace):
    uses = await used.list_events(namespace, kind=AccessKind.USE, after_event_id="", limit=2)
    assert [item.event_id for item in uses] == ["3", "4"]


async def test_events_are_found_by_their_ids(used, namespace):
    seen: list[Loaded] = []
    reads = Reads(event_ids=frozenset({"1", "4", "absent"}))
    await used.transact(namespace, writing(reads=reads, see=seen.append))
    assert seen[0].events == {
        "1": event("1", NodeRef("a", 1)),
        "4": event("4", NodeRef("é", 1), AccessKind.USE, at=LATER),
    }


async def test_an_event_id_is_never_recorded_twice(used, namespace):
    with pytest.raises(DomainError):
        await used.transact(namespace, writing(events=(event("5", NodeRef("a", 1)), event("1", NodeRef("a", 2)))))
    assert len(await used.list_events(namespace, kind=None, after_event_id="", limit=MANY)) == 5


async def test_usage_is_summed_per_revision_in_order(used, namespace):
    first = UsageSummary(node_id="a", revision=1, admissions=2, uses=1, last_admitted_at=LATER, last_used_at=LATER)
    second = UsageSummary(node_id="a", revision=2, admissions=1, uses=0, last_admitted_at=NOW, last_used_at=None)
    third = UsageSummary(node_id="é", revision=1, admissions=0, uses=1, last_admitted_at=None, last_used_at=LATER)

    async def usage(node_ids=(), after=START, limit=MANY):
        return list(await used.usage(namespace, node_ids=node_ids, after=after, limit=limit))

    assert await usage() == [first, second, third]
    assert await usage(limit=2) == [first, second]
    assert await usage(after=NodeRef("a", 1)) == [second, third]
    assert await usage(after=NodeRef("a", 2), limit=1) == [third]
    assert await usage(node_ids=["é", "absent"]) == [third]
    assert await usage(node_ids=["a"], after=NodeRef("a", 1)) == [second]
    assert await usage(node_ids=["absent"]) == []


async def test_events_move_neither_the_revision_nor_any_node(store, namespace):
    await apply(store, namespace, create("n"))
    before = await store.head(namespace), await store.current_nodes(namespace, ["n"])
    await store.transact(namespace, writing(events=(event("e", NodeRef("n", 1)),)))
    assert (await store.head(namespace), await store.current_nodes(namespace, ["n"])) == before
