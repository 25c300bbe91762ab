"""What an import refuses: an export that was damaged or forged, or that is more than a namespace may hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from durable_memory.app.transfer_records import ExportFooter, ExportHeader, ExportRecord, RecordDigest, SessionExport
from durable_memory.domain.access import AccessEvent
from durable_memory.domain.change_set import ChangeSetRecord, SetStatus, chain
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import Reason
from durable_memory.domain.node import NodeRef, NodeRevision, NodeStatus, Relation, RelationKind, content_digest
from durable_memory.domain.session import Run
from durable_memory.ports.store import RequestRecord
from tests.unit.app.exports import Records, exported, fill, imported
from tests.unit.app.world import DEFAULTS, World, draft, items, refused


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
