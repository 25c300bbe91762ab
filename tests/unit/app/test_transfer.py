"""Export and import: a namespace is elsewhere what it was here, or is not there at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from durable_memory.adapters.memory import MemoryStore
from durable_memory.app.candidates import Proposal
from durable_memory.app.memories import MemoryOutcome
from durable_memory.app.sessions import PolicyRequest
from durable_memory.app.transfer import TransferService
from durable_memory.app.transfer_records import ExportFooter, ExportHeader, ExportRecord, RecordDigest, SessionExport
from durable_memory.domain.access import AccessEvent
from durable_memory.domain.change_set import ChangeSetRecord, SetStatus, chain
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import Reason
from durable_memory.domain.node import NodeRef, NodeRevision, NodeStatus, Relation, RelationKind, content_digest
from durable_memory.domain.session import Run
from durable_memory.ports.store import NodeSelection, RequestRecord
from tests.unit.app.stores import Gate, HookedStore
from tests.unit.app.world import DEFAULTS, MANUAL, OTHER_NAMESPACE, World, draft, evidence, items, refused, relate

Records = list[ExportRecord]


async def fill(world: World) -> None:
    """A namespace with something of everything."""
    await world.app.memories.remember(world.request("Remember", "first"), "a", draft("tea"), DEFAULTS)
    await world.remember("milk", "b", labels={"type": "drink"}, surroundings=("with cereal",), author="user-1")
    await world.apply(*relate(RelationKind.RELATED_TO, await world.node("a"), await world.node("b")))
    proposals = [
        Proposal(node_id=name, draft=draft(name, evidence=(evidence(name),))) for name in ("yes", "no", "open")
    ]
    await world.app.candidates.propose(world.request("ProposeCandidates", "proposals"), proposals)
    await world.app.candidates.activate(world.request("ActivateCandidates"), [NodeRef("yes", 1)], MANUAL)
    await world.app.candidates.reject(world.request("RejectCandidates"), [NodeRef("no", 1)], MANUAL)
    await world.open(related_lookups=4)
    run = (await world.app.sessions.begin_run(world.request("BeginRun", "begin"), "assistant", "turn-1", "host-1")).run
    await world.app.recall.active_admitted(world.request("ActiveRecall", "recall"), "assistant", run.context_id, "tea")
    await world.app.access.record_use(
        world.request("RecordUse", "use"), "assistant", run.context_id, items(NodeRef("a", 2), NodeRef("missing", 1))
    )
    await world.begin(host="host-2")
    await world.put("a", "coffee")
    await world.app.memories.supersede(
        world.request("SupersedeMemory"), Citation.of(await world.node("a")), "c", draft("espresso"), DEFAULTS
    )
    session = await world.app.sessions.get(world.call, "assistant")
    await world.app.sessions.rebind(
        world.request("RebindSession"), "assistant", session.binding.digest(), PolicyRequest(max_results=9)
    )
    await world.open("closed")
    await world.app.sessions.close(world.request("CloseSession"), "closed")


async def exported(world: World) -> Records:
    return [record async for record in world.app.transfer.export(world.call)]


async def imported(world: World, records: Sequence[ExportRecord], key: str | None = None) -> Any:
    return await world.app.transfer.import_(world.request("ImportNamespace", key), records)


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


# Damage


def resealed(records: Sequence[ExportRecord]) -> Records:
    """The same body with a footer that agrees, as somebody would make who edits a file on purpose."""
    digest = RecordDigest()
    for record in records[1:-1]:
        digest.add(record)
    return [*records[:-1], ExportFooter(counts=digest.counts(), digest=digest.hex())]


def rechained(records: Sequence[ExportRecord]) -> Records:
    """With every digest of node revisions and change sets made to agree again."""
    result: Records = []
    nodes: dict[NodeRef, NodeRevision] = {}
    before: dict[str, NodeRevision] = {}
    digest = "0" * 64
    for record in records:
        if isinstance(record, NodeRevision):
            nodes[record.ref] = record
        elif isinstance(record, ChangeSetRecord):
            changed = []
            for change in record.changes:
                node = nodes[NodeRef(change.node_id, change.revision)]
                last = before.get(change.node_id)
                changed.append(
                    replace(
                        change,
                        revision_digest=node.digest(),
                        content_digest=node.content_digest,
                        content_changed=last is None or last.content_digest != node.content_digest,
                        status_before=None if last is None else last.status,
                        status_after=node.status,
                    )
                )
                before[change.node_id] = node
            record = replace(record, changes=tuple(changed), chain_digest="")
            digest = chain(digest, record.namespace_revision, record.digest())
            record = replace(record, chain_digest=digest)
        result.append(record)
    header = result[0]
    assert isinstance(header, ExportHeader)
    return resealed([replace(header, chain_digest=digest), *result[1:]])


def place_of(records: Sequence[ExportRecord], matches: Callable[[ExportRecord], bool]) -> int:
    return next(place for place, record in enumerate(records) if matches(record))


def node_at(records: Sequence[ExportRecord], node_id: str, revision: int) -> int:
    return place_of(
        records, lambda record: isinstance(record, NodeRevision) and record.ref == NodeRef(node_id, revision)
    )


def changed(records: Sequence[ExportRecord], place: int, **changes: Any) -> Records:
    return [*records[:place], replace(records[place], **changes), *records[place + 1 :]]


def swapped(records: Sequence[ExportRecord], place: int) -> Records:
    return [*records[:place], records[place + 1], records[place], *records[place + 2 :]]


def without(records: Sequence[ExportRecord], place: int) -> Records:
    return [*records[:place], *records[place + 1 :]]


async def refuses(world: World, records: Sequence[ExportRecord], place: int | None, problem: str) -> None:
    metadata: dict[str, object] = {"problem": problem}
    if place is not None:
        metadata["record"] = place
    with refused(Reason.DATA_CORRUPTED, **metadata):
        await imported(world, records)
    head = await world.store.head(world.namespace)
    assert (head.revision, head.node_count, head.session_revision) == (0, 0, 0)
    assert await world.app.sessions.list(world.call, after_session_id="", limit=9) == []
    assert [record async for record in world.store.export_requests(world.namespace)] == []


@pytest.fixture
async def records(world: World) -> Records:
    await fill(world)
    return await exported(world)


async def test_a_byte_of_content_that_changed_is_found(records: Records, elsewhere: World) -> None:
    place = node_at(records, "a", 1)
    await refuses(elsewhere, changed(records, place, content="tea!"), place, "a content digest does not agree")
    sealed = resealed(changed(records, place, content="tea!", content_digest=content_digest("tea!")))
    await refuses(elsewhere, sealed, place + 1, "a node revision's digest does not agree")


@pytest.mark.parametrize(
    "change",
    [{"author": "somebody"}, {"labels": {}}, {"surroundings": ()}, {"confidence": 0.9}, {"decided_by": "somebody"}],
    ids=["author", "labels", "surroundings", "confidence", "decider"],
)
async def test_any_field_of_a_revision_that_changed_is_found(
    records: Records, elsewhere: World, change: dict[str, Any]
) -> None:
    place = node_at(records, "b", 1)
    await refuses(
        elsewhere, resealed(changed(records, place, **change)), place + 1, "a node revision's digest does not agree"
    )


async def test_a_change_set_that_is_missing_is_found(records: Records, elsewhere: World) -> None:
    place = place_of(records, lambda record: isinstance(record, ChangeSetRecord))
    await refuses(elsewhere, resealed(without(records, place)), place, "a node revision is out of order")


async def test_a_history_that_was_cut_short_is_found(world: World, elsewhere: World) -> None:
    await world.remember("tea", "a")
    await world.remember("coffee", "b")
    header, first, made_first, _, _, request, *_, footer = await exported(world)
    await refuses(elsewhere, resealed([header, first, made_first, request, footer]), 4, "change sets are missing")


async def test_a_note_of_a_change_set_that_changed_is_found(records: Records, elsewhere: World) -> None:
    place = place_of(records, lambda record: isinstance(record, ChangeSetRecord))
    await refuses(
        elsewhere, resealed(changed(records, place, note="another")), place, "the chain digest does not agree"
    )
    await refuses(
        elsewhere, resealed(changed(records, place, chain_digest="1" * 64)), place, "the chain digest does not agree"
    )


async def test_records_that_changed_places_are_found(records: Records, elsewhere: World) -> None:
    place = place_of(records, lambda record: isinstance(record, ChangeSetRecord))
    await refuses(
        elsewhere,
        resealed(swapped(records, place - 1)),
        place - 1,
        "a change set names a node revision that is not there",
    )
    pair = node_at(records, "a", 2)
    await refuses(elsewhere, resealed(swapped(records, pair)), pair + 1, "a node revision is out of order")


async def test_a_node_revision_that_is_missing_or_that_nobody_made_is_found(records: Records, elsewhere: World) -> None:
    place = node_at(records, "a", 3)
    await refuses(
        elsewhere, resealed(without(records, place)), place, "a change set names a node revision that is not there"
    )
    first = records[1]
    assert isinstance(first, NodeRevision)
    more = [*records[:2], replace(first, node_id="forged"), *records[2:]]
    await refuses(elsewhere, resealed(more), 3, "a node revision belongs to no change set")


async def test_an_active_node_without_a_decision_is_found_though_all_digests_agree(
    records: Records, elsewhere: World
) -> None:
    place = node_at(records, "open", 1)
    forged = rechained(changed(records, place, status=NodeStatus.ACTIVE, decided_by="owner"))
    await refuses(elsewhere, forged, place, "a memory is ACTIVE without a decision")
    place = node_at(records, "a", 1)
    await refuses(
        elsewhere, rechained(changed(records, place, decided_by="")), place, "a memory is ACTIVE without a decision"
    )
    place = node_at(records, "yes", 2)
    candidate = records[node_at(records, "yes", 1)]
    assert isinstance(candidate, NodeRevision)
    await refuses(
        elsewhere,
        rechained(changed(records, place, evidence=candidate.evidence)),
        place,
        "a memory is ACTIVE without a decision",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"content": "cocoa", "content_digest": content_digest("cocoa")},
        {"author": "somebody"},
        {"surroundings": ("something to be found by",)},
        {"labels": {"type": "order"}},
    ],
    ids=["content", "author", "surroundings", "labels"],
)
async def test_an_active_memory_that_was_revised_without_a_decision_is_found(
    records: Records, elsewhere: World, change: dict[str, Any]
) -> None:
    place = node_at(records, "b", 2)
    forged = rechained(changed(records, place, decided_by="owner", **change))  # it still has its first decision
    await refuses(elsewhere, forged, place, "a memory is ACTIVE without a decision")


async def test_a_frozen_memory_that_was_revised_is_found(world: World, elsewhere: World) -> None:
    await world.remember("tea", "a")
    await world.app.memories.supersede(
        world.request("SupersedeMemory"), Citation.of(await world.node("a")), "b", draft("coffee"), DEFAULTS
    )
    await world.apply(SetStatus(node_id="a", expected_revision=2, status=NodeStatus.TOMBSTONED))
    records = await exported(world)
    place = node_at(records, "a", 3)
    other = records[node_at(records, "b", 1)]
    assert isinstance(other, NodeRevision)
    for change in (
        {"content": "x", "content_digest": content_digest("x")},
        {"relations": (*other.relations, Relation(RelationKind.RELATED_TO, "b"))},
        {"evidence": other.evidence, "status": NodeStatus.SUPERSEDED},
    ):
        forged = rechained(changed(records, place, **change))
        await refuses(elsewhere, forged, place, "a frozen memory was revised")


async def test_more_active_memories_than_a_namespace_may_hold_are_not_taken_in(
    world: World, records: Records, elsewhere: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await world.store.head(world.namespace)
    counts = {"active_nodes": held.active_count, "active_bytes": held.active_bytes}
    for bound, most in (("NODES", held.active_count - 1), ("BYTES", held.active_bytes - 1)):
        with monkeypatch.context() as patch, refused(Reason.NAMESPACE_TOO_LARGE, **counts):
            patch.setattr(f"durable_memory.app.transfer_verification.NAMESPACE_MAX_ACTIVE_{bound}", most)
            await imported(elsewhere, records)
        assert await elsewhere.revision() == 0
    await imported(elsewhere, records)


async def test_an_import_has_a_context_for_each_of_its_records_and_a_bounded_number_besides(
    world: World, elsewhere: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run says only how many contexts it has had: what was admitted into them is what bears it out."""
    monkeypatch.setattr("durable_memory.app.transfer_verification.IMPORT_MAX_EMPTY_CONTEXTS", 2)
    await world.remember("tea", "a")
    await world.open()
    context_id = (await world.begin()).run.context_id
    for number in range(30):
        request = world.request("AdmitMemories", str(number))
        admitted = await world.app.access.admit(request, "assistant", context_id, items(NodeRef("a", 1)))
        context_id = admitted.next_context_id or ""
    records = await exported(world)
    bare = resealed([record for record in records if not isinstance(record, AccessEvent | RequestRecord)])

    problem = "the runs have more contexts than an import may bring"
    await refuses(elsewhere, bare, place_of(bare, lambda record: isinstance(record, Run)), problem)
    await imported(elsewhere, records)
    # What no import would take does not end as an export either.
    monkeypatch.setattr("durable_memory.app.transfer.IMPORT_MAX_EMPTY_CONTEXTS", -len(records))
    with refused(Reason.LIMIT_EXCEEDED, field="runs", actual=31):
        await exported(world)


async def test_a_move_that_the_status_machine_does_not_have_is_found(records: Records, elsewhere: World) -> None:
    place = node_at(records, "a", 3)
    forged = rechained(changed(records, place, status=NodeStatus.CANDIDATE))
    await refuses(elsewhere, forged, place, "a status move does not exist")
    place = node_at(records, "a", 1)
    forged = rechained(changed(records, place, status=NodeStatus.ARCHIVED))
    await refuses(elsewhere, forged, place, "a node begins with a status that none can begin with")


async def test_a_relation_with_one_end_is_found(records: Records, elsewhere: World) -> None:
    place = node_at(records, "b", 2)
    await refuses(elsewhere, rechained(changed(records, place, relations=())), None, "a relation has one end only")
    node = records[place]
    assert isinstance(node, NodeRevision)
    lost = (*node.relations, Relation(RelationKind.RELATED_TO, "missing"))
    await refuses(elsewhere, rechained(changed(records, place, relations=lost)), None, "a relation leads nowhere")


async def test_a_change_set_that_tells_another_story_is_found(records: Records, elsewhere: World) -> None:
    place = place_of(records, lambda record: isinstance(record, ChangeSetRecord))
    record = records[place]
    assert isinstance(record, ChangeSetRecord)
    (change,) = record.changes
    told = replace(record, changes=(replace(change, status_after=NodeStatus.CANDIDATE),))
    await refuses(
        elsewhere,
        [*records[:place], told, *records[place + 1 :]],
        place,
        "a change set says something else than its node revision",
    )


async def test_an_export_without_its_ends_is_found(records: Records, elsewhere: World) -> None:
    problem = "the export is not complete: its header or footer is missing"
    await refuses(elsewhere, records[:-1], len(records) - 2, problem)
    await refuses(elsewhere, records[1:], len(records) - 2, problem)
    await refuses(elsewhere, [], 0, problem)
    await refuses(elsewhere, [*records[:3], records[0], *records[3:]], 3, "a header or footer stands inside the export")


async def test_a_footer_that_does_not_agree_is_found(records: Records, elsewhere: World) -> None:
    last = len(records) - 1
    footer = records[-1]
    assert isinstance(footer, ExportFooter)
    for wrong, problem in (
        (replace(footer, digest="0" * 64), "the digest over all records does not agree"),
        (replace(footer, counts=replace(footer.counts, runs=0)), "the counts do not agree"),
    ):
        await refuses(elsewhere, [*records[:-1], wrong], last, problem)


async def test_what_a_request_answered_cannot_be_changed(records: Records, elsewhere: World) -> None:
    place = place_of(records, lambda record: isinstance(record, RequestRecord))
    altered = changed(records, place, result={})
    await refuses(elsewhere, altered, len(records) - 1, "the digest over all records does not agree")
    ahead = changed(records, place, namespace_revision=99)
    await refuses(elsewhere, ahead, place, "a request has no revision")
    twice = [*records[: place + 1], records[place], *records[place + 1 :]]
    await refuses(elsewhere, twice, place + 1, "a request occurs twice")


async def test_sessions_runs_and_events_have_to_hang_together(records: Records, elsewhere: World) -> None:
    session = place_of(records, lambda record: isinstance(record, SessionExport))
    run = place_of(records, lambda record: isinstance(record, Run))
    event = place_of(records, lambda record: isinstance(record, AccessEvent))
    held = records[session]
    assert isinstance(held, SessionExport)
    for damaged, place, problem in (
        (without(records, session), run - 1, "a run belongs to no session"),
        ([*records[:run], records[session], *records[run:]], run, "a session occurs twice"),
        (changed(records, session, bindings=held.bindings[1:]), session, "a binding is missing"),
        (changed(records, session, bindings=held.bindings[:1]), session, "a session's binding is not its last one"),
        (without(records, run), event - 1, "an access event belongs to no context"),
        (changed(records, run, sequence=9), run, "a context id does not agree"),
        ([*records[: run + 1], records[run], *records[run + 1 :]], run + 1, "a run occurs twice"),
        (changed(records, event, revision=9), event, "an access event names a revision that is not there"),
        (changed(records, event, context_id="0" * 64), event, "an access event belongs to no context"),
        ([*records[: event + 1], records[event], *records[event + 1 :]], event + 1, "an access event occurs twice"),
    ):
        await refuses(elsewhere, resealed(damaged), place, problem)


async def test_an_admission_of_what_was_not_active_is_found(records: Records, elsewhere: World) -> None:
    event = place_of(records, lambda record: isinstance(record, AccessEvent) and record.kind.name == "ADMISSION")
    forged = resealed(changed(records, event, node_id="open", revision=1))
    await refuses(elsewhere, forged, event, "a revision was admitted that was not ACTIVE")
