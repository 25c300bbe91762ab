"""Export and import: a namespace is elsewhere what it was here, or is not there at all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from durable_memory.adapters.memory import MemoryStore
from durable_memory.app.candidates import Proposal
from durable_memory.app.memories import MemoryOutcome
from durable_memory.app.sessions import PolicyRequest
from durable_memory.app.transfer import TransferService
from durable_memory.app.transfer_records import ExportFooter, ExportHeader, ExportRecord, SessionExport
from durable_memory.domain.errors import Reason
from durable_memory.domain.node import NodeRef
from durable_memory.ports.store import NodeSelection, RequestRecord
from tests.unit.app.exports import Records, exported, fill, imported
from tests.unit.app.stores import Gate, HookedStore
from tests.unit.app.world import DEFAULTS, OTHER_NAMESPACE, World, draft, items, refused


async def everything(world: World) -> dict[str, Any]:
    """What every read tells of a namespace, without its history id."""
    read, store, namespace = world.app.repository, world.store, world.namespace
    last = await world.revision()
    tokens = [await read.list_nodes(world.call, NodeSelection(), at_revision=at, after_node_id="", limit=99)
              for at in range(last + 1)]  # fmt: skip
    revisions = [
        (await read.list_revisions(world.call, node.node_id, after_revision=0, limit=99)).nodes
        for node in tokens[-1].nodes
    ]
    sessions = await world.app.sessions.list(world.call, after_session_id="", limit=99)
    return {
        "nodes": [page.nodes for page in tokens],
        "revisions": revisions,
        "change sets": (await read.list_change_sets(world.call, after_revision=0, limit=99)).change_sets,
        "snapshot": [part async for part in read.snapshot(world.call, frozenset())][1:],
        "sessions": sessions,
        "bindings": [record async for record in store.export_bindings(namespace)],
        "runs": [run async for run in store.export_runs(namespace)],
        "events": await store.list_events(namespace, kind=None, after_event_id="", limit=99),
        "usage": await world.app.access.usage(world.call, [], after=NodeRef("", 0), limit=99),
        "recall": [await world.recall(query) for query in ("tea", "espresso", "milk", "yes", "no", "open")],
        "counts": replace(await store.head(namespace), history_id="", session_revision=0),
    }


# Round trips


async def test_a_refusal_of_a_revision_beyond_all_that_there_can_be_spoils_no_export(
    world: World, elsewhere: World
) -> None:
    """Earlier versions kept such a call's result, which has no canonical form."""
    await fill(world)
    run = (await world.app.sessions.begin_run(world.request("BeginRun"), "assistant", "turn-2", "host-1")).run
    before = await exported(world)
    absurd = items(NodeRef("a", 2**53), NodeRef("b", 10**19 - 1))
    await world.app.access.admit(world.request("AdmitMemories", "absurd"), "assistant", run.context_id, absurd)
    after = await exported(world)

    def requests(records: Records) -> list[ExportRecord]:
        return [record for record in records if isinstance(record, RequestRecord)]

    assert requests(after) == requests(before)
    await imported(elsewhere, after)
    assert await everything(elsewhere) == await everything(world)


async def test_an_import_is_equal_to_what_was_exported_in_every_read(world: World, elsewhere: World) -> None:
    await fill(world)
    result = await imported(elsewhere, await exported(world))
    assert await everything(elsewhere) == await everything(world)
    token = await elsewhere.app.repository.token(elsewhere.call)
    assert result.token == token
    assert token.history_id != (await world.app.repository.token(world.call)).history_id
    assert (result.counts.nodes, result.counts.sessions, result.counts.runs) == (6, 2, 2)


async def test_an_export_of_an_import_has_the_same_records_and_the_request_that_imported(
    world: World, elsewhere: World
) -> None:
    await fill(world)
    records = await exported(world)
    await imported(elsewhere, records, "import")
    again = await exported(elsewhere)
    fresh = [record for record in again[1:-1] if record not in records]
    assert [record.request.method for record in fresh if isinstance(record, RequestRecord)] == ["ImportNamespace"]
    assert [record for record in again[1:-1] if record not in fresh] == records[1:-1]


async def test_requests_are_repeated_on_the_importing_store_as_on_the_first(world: World, elsewhere: World) -> None:
    await fill(world)
    await imported(elsewhere, await exported(world))

    async def replays(one: World) -> list[Any]:
        first = (await one.app.sessions.begin_run(one.request("BeginRun", "begin"), "", "", "")).run
        assert (first.run_id, first.host_instance) == ("turn-1", "host-1")
        remembered = await one.app.memories.remember(one.request("Remember", "first"), "a", draft("tea"), DEFAULTS)
        assert (remembered.outcome, remembered.node.content) == (MemoryOutcome.CREATED, "tea")
        proposed = await one.app.candidates.propose(one.request("ProposeCandidates", "proposals"), [])
        recall = await one.app.recall.active_admitted(
            one.request("ActiveRecall", "recall"), "assistant", first.context_id, "tea"
        )
        assert [hit.node.content for hit in recall.answer.hits] == ["tea", "milk"]
        used = await one.app.access.record_use(one.request("RecordUse", "use"), "assistant", first.context_id, [])
        assert remembered.token == replace(await one.app.repository.token(one.call), namespace_revision=1)
        return [
            remembered.node,
            proposed.items,
            recall.answer.hits,
            recall.next_context_id,
            [outcome.citation for outcome in used.outcomes],
        ]

    assert await replays(elsewhere) == await replays(world)


async def test_an_imported_namespace_goes_on_where_the_first_one_stood(world: World, elsewhere: World) -> None:
    await fill(world)
    await imported(elsewhere, await exported(world))
    before = await elsewhere.revision()
    with refused(Reason.IDEMPOTENCY_KEY_REUSED):
        await elsewhere.app.memories.remember(
            elsewhere.request("Remember", "first", asks="other"), None, draft("x"), DEFAULTS
        )
    proposed = await elsewhere.app.candidates.propose(
        elsewhere.request("ProposeCandidates"), [Proposal(node_id=None, draft=draft("no"))]
    )
    assert proposed.items[0].node.rejected
    await elsewhere.put("b", "oat milk")
    assert await elsewhere.revision() == before + 1
    assert await elsewhere.recall("oat") == ["b"]


async def test_an_empty_namespace_is_exported_and_imported(world: World, elsewhere: World) -> None:
    records = await exported(world)
    assert [type(record) for record in records] == [ExportHeader, ExportFooter]
    assert (await imported(elsewhere, records)).token.namespace_revision == 0


# Only into an empty namespace, once


async def test_a_repeated_import_is_answered_as_at_first(world: World, elsewhere: World) -> None:
    await fill(world)
    records = await exported(world)
    first = await imported(elsewhere, records, "k")
    await elsewhere.put("b", "oat milk")
    assert await imported(elsewhere, records, "k") == first
    with refused(Reason.IDEMPOTENCY_KEY_REUSED):
        await elsewhere.app.transfer.import_(elsewhere.request("ImportNamespace", "k", asks="other"), records)


async def test_a_repeated_import_is_not_answered_from_a_request_that_the_store_has_lost_since(
    world: World, elsewhere: World
) -> None:
    records = await exported(world)
    await imported(elsewhere, records, "import")
    store = HookedStore(elsewhere.store)
    transfer = TransferService(store, elsewhere.clock, elsewhere.ids)
    assert isinstance(elsewhere.store, MemoryStore)
    partitions = elsewhere.store._partitions

    async def lose() -> None:
        partitions.clear()

    store.before["transact"] = lose
    with refused(Reason.DEPENDENCY_UNAVAILABLE):
        await transfer.import_(elsewhere.request("ImportNamespace", "import"), records)
    assert (await transfer.import_(elsewhere.request("ImportNamespace", "import"), records)).counts.nodes == 0


async def test_two_attempts_of_one_import_at_once_have_one_result(world: World, elsewhere: World) -> None:
    await fill(world)
    records = await exported(world)
    one, other = await asyncio.gather(imported(elsewhere, records, "k"), imported(elsewhere, records, "k"))
    assert one == other


async def test_nothing_is_imported_over_what_is_there(world: World, elsewhere: World) -> None:
    await fill(world)
    records = await exported(world)
    await elsewhere.open()
    with refused(Reason.REVISION_CONFLICT, expected=0):
        await imported(elsewhere, records)
    with refused(Reason.REVISION_CONFLICT, expected=0):
        await imported(world, records)
    assert await elsewhere.revision() == 0


async def test_an_export_goes_into_a_namespace_of_its_own_name(world: World, elsewhere: World) -> None:
    await fill(world)
    with refused(Reason.INVALID_FIELD, field="namespace"):
        await imported(elsewhere.at(OTHER_NAMESPACE), await exported(world))


# Writes during an export


@pytest.mark.parametrize(
    "held_up", ["export_requests", "list_sessions", "export_bindings", "export_runs", "list_events"]
)
async def test_an_export_that_others_write_beside_can_be_imported(world: World, elsewhere: World, held_up: str) -> None:
    await fill(world)
    hooked = _HookedExports(world.store)
    gate = hooked.before[held_up] = Gate()
    service = TransferService(hooked, world.clock, world.ids)

    async def export() -> Records:
        return [record async for record in service.export(world.call)]

    exporting = asyncio.create_task(export())
    await gate.reached.wait()
    session = await world.app.sessions.get(world.call, "assistant")
    await world.app.sessions.rebind(
        world.request("RebindSession"), "assistant", session.binding.digest(), PolicyRequest(max_results=3)
    )
    await world.open("late")
    run = (await world.begin("late")).run
    node = await world.remember("written meanwhile")
    await world.app.access.admit(world.request("AdmitMemories"), "late", run.context_id, items(node.ref))
    earlier = (await world.begin(run_id="turn-2")).run
    await world.app.access.admit(
        world.request("AdmitMemories"), "assistant", earlier.context_id, items((await world.node("c")).ref)
    )
    gate.open()
    records = await exporting
    await imported(elsewhere, records)
    assert "assistant" in [record.session.session_id for record in records if isinstance(record, SessionExport)]
    with refused(Reason.NODE_NOT_FOUND):
        await elsewhere.node(node.node_id)


class _HookedExports(HookedStore):
    """Holds up the export streams too."""

    async def _held_up(self, name: str, namespace: Any) -> Any:
        if name in self.before:
            await self.before[name]()
        async for record in getattr(self._store, name)(namespace):
            yield record

    def export_requests(self, namespace: Any) -> Any:
        return self._held_up("export_requests", namespace)

    def export_bindings(self, namespace: Any) -> Any:
        return self._held_up("export_bindings", namespace)

    def export_runs(self, namespace: Any) -> Any:
        return self._held_up("export_runs", namespace)
