"""Recall and admission in one call: a repeat returns the first hits, and only what is still so is admitted."""

from __future__ import annotations

import asyncio
from typing import Any

from durable_memory.app.recall_result import AdmittedRecall
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import Reason
from durable_memory.domain.node import NodeRef, RelationKind
from tests.unit.app.stores import Rewinder
from tests.unit.app.world import World, refused


async def admitted(world: World, context_id: str, query: str, key: str | None = None, **more: Any) -> AdmittedRecall:
    return await world.app.recall.active_admitted(
        world.request("ActiveRecall", key), "assistant", context_id, query, **more
    )


async def test_a_recall_that_admits_returns_what_it_admitted(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    node = await world.remember("tea", "a")
    found = await admitted(world, run.context_id, "tea")
    assert [hit.node.ref for hit in found.answer.hits] == [node.ref]
    assert [outcome.citation for outcome in found.admissions] == [Citation.of(node)]
    assert found.next_context_id not in (None, run.context_id)
    (usage,) = await world.app.access.usage(world.call, [], after=NodeRef("", 0), limit=9)
    assert (usage.node_id, usage.admissions) == ("a", 1)


async def test_a_repeated_recall_returns_the_first_hits_after_everything_has_changed(world: World) -> None:
    await world.open(related_lookups=8)
    run = (await world.begin()).run
    await world.remember("tea", "a")
    await world.remember("cup", "b")
    await world.relate(RelationKind.RELATED_TO, "a", "b")
    first = await admitted(world, run.context_id, "tea", "k")
    await world.put("a", "coffee")
    await world.retire(await world.node("b"))
    await world.remember("tea", "new")
    again = await admitted(world, run.context_id, "tea", "k")
    assert again == first
    assert [hit.node.content for hit in again.answer.hits] == ["tea", "cup"]
    await world.app.sessions.close(world.request("CloseSession"), "assistant")
    assert await admitted(world, run.context_id, "tea", "k") == first


async def test_a_repeated_recall_is_not_answered_from_a_request_that_the_store_has_lost_since(world: World) -> None:
    await world.remember("tea", "a")
    await world.open()
    run = (await world.begin()).run
    store: Any = world.store
    rewinder = Rewinder(store, world.namespace)
    first = await admitted(world, run.context_id, "tea", "k")
    transact = store.transact

    async def after_the_loss(*arguments: Any) -> Any:
        store.transact = transact
        rewinder.rewind()
        return await transact(*arguments)

    store.transact = after_the_loss
    with refused(Reason.DEPENDENCY_UNAVAILABLE):
        await admitted(world, run.context_id, "tea", "k")
    assert await admitted(world, run.context_id, "tea", "k") == first


async def test_a_repeated_recall_must_ask_for_the_same(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    await admitted(world, run.context_id, "tea", "k")
    with refused(Reason.IDEMPOTENCY_KEY_REUSED, request_id="k"):
        await world.app.recall.active_admitted(
            world.request("ActiveRecall", "k", asks="other"), "assistant", run.context_id, "coffee"
        )


async def test_what_changed_between_search_and_admission_is_refused_and_left_out(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    await world.remember("green tea", "a")
    await world.remember("black tea with milk", "b")
    store: Any = world.store
    transact = store.transact

    async def after_a_change(*arguments: Any) -> Any:
        store.transact = transact
        await world.put("a", "coffee")
        return await transact(*arguments)

    store.transact = after_a_change
    found = await admitted(world, run.context_id, "tea", "k")
    assert [(hit.node.node_id, hit.rank) for hit in found.answer.hits] == [("b", 1)]
    refusals = {outcome.ref.node_id: outcome.error and outcome.error.reason for outcome in found.admissions}
    assert refusals == {"a": Reason.REVISION_CONFLICT, "b": None}
    again = await admitted(world, run.context_id, "tea", "k")
    assert (again.answer, again.next_context_id) == (found.answer, found.next_context_id)


async def test_a_recall_that_cannot_admit_fails_as_a_whole(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    await world.remember("tea", "a")
    with refused(Reason.RUN_NOT_FOUND):
        await admitted(world, "0" * 64, "tea")
    await world.app.sessions.end_run(world.request("EndRun"), "assistant", "turn-1", run.incarnation)
    with refused(Reason.RUN_ENDED):
        await admitted(world, run.context_id, "tea")
    assert await world.app.access.usage(world.call, [], after=NodeRef("", 0), limit=9) == []


async def test_two_attempts_at_once_admit_once_and_answer_alike(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    await world.remember("tea", "a")
    one, other = await asyncio.gather(
        admitted(world, run.context_id, "tea", "k"), admitted(world, run.context_id, "tea", "k")
    )
    assert one == other
    (usage,) = await world.app.access.usage(world.call, [], after=NodeRef("", 0), limit=9)
    assert usage.admissions == 1
