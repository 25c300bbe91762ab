"""RepositoryService: change sets in, nodes and their whole history out, through a real channel."""

import asyncio
from datetime import timedelta

import grpc
import pytest

from durable_memory.config import CallSettings
from durable_memory.domain.errors import Reason
from durablememory.v1 import change_set_pb2, node_pb2
from durablememory.v1 import memory_service_pb2 as memory_pb
from durablememory.v1 import repository_service_pb2 as pb
from tests.rpc.messages import call, change_token, draft, manual_evidence, namespace, remember, turn
from tests.rpc.refusals import refused

ACTIVE = node_pb2.NODE_STATUS_ACTIVE
RELATED_TO = node_pb2.RELATION_KIND_RELATED_TO
# Less than can be set, so that little fills one.
SMALL_ANSWERS = CallSettings.model_construct(max_response_bytes=1024 * 1024)


@pytest.fixture
async def stubs(server_app):
    return await server_app.stubs()


def create(node_id="a", content=None, status=None, relations=(), **fields):
    memory = draft(content or f"content of {node_id}", evidence=[manual_evidence()], **fields)
    return {"create": {"node_id": node_id, "memory": memory, "status": status, "relations": relations}}


async def apply(stubs, *operations, **fields):
    return await stubs.repository.ApplyChangeSet(pb.ApplyChangeSetRequest(**call(operations=operations, **fields)))


async def get(stubs, node_id, at=None):
    return await stubs.repository.GetNode(
        pb.GetNodeRequest(namespace=namespace(), node_id=node_id, at_namespace_revision=at)
    )


async def test_a_change_set_answers_with_what_it_committed(stubs):
    answer = await apply(
        stubs,
        create("b", status=ACTIVE),
        create("a"),
        note="first import",
        expected_namespace_revision=0,
        occurred_at={"seconds": 1_700_000_000},
    )

    record = answer.change_set
    assert answer.change_token.namespace_revision == record.namespace_revision == 1
    assert (record.method, record.caller, record.note) == ("ApplyChangeSet", "development", "first import")
    assert record.namespace == namespace()
    assert record.occurred_at.seconds == 1_700_000_000
    assert [change.citation.node_id for change in record.changes] == ["a", "b"]
    assert [change.status_after for change in record.changes] == [node_pb2.NODE_STATUS_CANDIDATE, ACTIVE]
    assert all(change.content_changed and not change.HasField("status_before") for change in record.changes)
    assert [list(change.operations) for change in record.changes] == [[change_set_pb2.OPERATION_KIND_CREATE]] * 2
    node = (await get(stubs, "b")).node
    assert node.citation == record.changes[1].citation
    assert node.valid_from_namespace_revision == 1


async def test_every_operation_does_what_it_says(stubs):
    await apply(stubs, create("a", labels={"old": "1"}), create("b"))

    await apply(stubs, {"activate": {"node_id": "a", "expected_revision": 1, "evidence": [manual_evidence(2)]}})
    await apply(stubs, {"corroborate": {"node_id": "b", "expected_revision": 1, "evidence": [turn(4)]}})
    await apply(
        stubs,
        {
            "revise": {
                "node_id": "a",
                "expected_revision": 2,
                "kind": change_set_pb2.REVISION_KIND_REFINEMENT,
                "content": "more exact",
                "author": "user-1",
                "set_labels": {"new": "2"},
                "remove_labels": ["old", "never there"],
                "evidence": [manual_evidence(3)],
            }
        },
    )
    await apply(
        stubs,
        {"add_relation": {"node_id": "a", "expected_revision": 3, "relation": {"kind": RELATED_TO, "node_id": "b"}}},
        {"add_relation": {"node_id": "b", "expected_revision": 2, "relation": {"kind": RELATED_TO, "node_id": "a"}}},
    )
    related = (await get(stubs, "a")).node
    await apply(
        stubs,
        {"remove_relation": {"node_id": "a", "expected_revision": 4, "relation": {"kind": RELATED_TO, "node_id": "b"}}},
        {"remove_relation": {"node_id": "b", "expected_revision": 3, "relation": {"kind": RELATED_TO, "node_id": "a"}}},
        {"set_status": {"node_id": "b", "expected_revision": 3, "status": node_pb2.NODE_STATUS_TOMBSTONED}},
    )

    a, b = (await get(stubs, "a")).node, (await get(stubs, "b")).node
    assert (a.status, a.content, a.author, dict(a.labels)) == (ACTIVE, "more exact", "user-1", {"new": "2"})
    assert [(item.kind, item.node_id) for item in related.relations] == [(RELATED_TO, "b")]
    assert not a.relations
    assert b.status == node_pb2.NODE_STATUS_TOMBSTONED


async def test_a_created_node_without_an_id_gets_one(stubs):
    answer = await apply(stubs, {"create": {"memory": draft(evidence=[turn()])}})

    (change,) = answer.change_set.changes
    assert change.citation.node_id


async def test_the_same_key_returns_the_first_answer_and_never_conflicts_with_itself(stubs):
    request = pb.ApplyChangeSetRequest(**call(operations=[create()], expected_namespace_revision=0))
    first = await stubs.repository.ApplyChangeSet(request)
    await remember(stubs)

    assert await stubs.repository.ApplyChangeSet(request) == first


@pytest.mark.parametrize(
    ("operations", "reason", "metadata"),
    [
        (
            [{"corroborate": {"node_id": "z", "expected_revision": 1, "evidence": [turn()]}}],
            Reason.NODE_NOT_FOUND,
            {"node_id": "z", "operation_index": 0},
        ),
        ([create("b"), create("a")], Reason.NODE_ALREADY_EXISTS, {"node_id": "a", "operation_index": 1}),
        (
            [{"corroborate": {"node_id": "a", "expected_revision": 7, "evidence": [turn()]}}],
            Reason.REVISION_CONFLICT,
            {"node_id": "a", "expected": 7, "actual": 1, "operation_index": 0},
        ),
        (
            [{"activate": {"node_id": "a", "expected_revision": 1, "evidence": [turn(5)]}}],
            Reason.EVIDENCE_REQUIRED,
            {"node_id": "a", "accepted_kinds": "MANUAL,VERIFICATION", "operation_index": 0},
        ),
        (
            [{"set_status": {"node_id": "a", "expected_revision": 1, "status": node_pb2.NODE_STATUS_ARCHIVED}}],
            Reason.INVALID_TRANSITION,
            {"node_id": "a", "from": "CANDIDATE", "to": "ARCHIVED", "operation_index": 0},
        ),
        (
            [{"corroborate": {"node_id": "a", "expected_revision": 1, "evidence": [manual_evidence()]}}],
            Reason.CHANGE_SET_EMPTY,
            {},
        ),
        (
            [create("c", relations=[{"kind": RELATED_TO, "node_id": "a"}])],
            Reason.RELATION_INVALID,
            {"node_id": "c", "target_node_id": "a", "relation": "RELATED_TO"},
        ),
        (
            [create("c", relations=[{"kind": RELATED_TO, "node_id": "c"}])],
            Reason.RELATION_INVALID,
            {"node_id": "c", "target_node_id": "c", "operation_index": 0},
        ),
    ],
)
async def test_a_change_set_that_may_not_happen_is_refused_whole(stubs, operations, reason, metadata):
    await apply(stubs, create("a"))
    token = await change_token(stubs)

    async with refused(reason, **metadata):
        await apply(stubs, *operations)
    assert await change_token(stubs) == token


async def test_the_expected_namespace_revision_is_compared(stubs):
    await apply(stubs, create("a"))

    async with refused(Reason.REVISION_CONFLICT, expected=0, actual=1) as info:
        await apply(stubs, create("b"), expected_namespace_revision=0)
    assert "node_id" not in info.metadata


async def test_a_namespace_can_be_read_as_it_was(stubs):
    await apply(stubs, create("a", "first"))
    await apply(stubs, create("b"))
    await apply(
        stubs,
        {
            "revise": {
                "node_id": "a",
                "expected_revision": 1,
                "kind": change_set_pb2.REVISION_KIND_CORRECTION,
                "content": "second",
                "evidence": [turn(2)],
            }
        },
    )

    then = await get(stubs, "a", at=1)
    now = await get(stubs, "a")
    batch = await stubs.repository.BatchGetNodes(
        pb.BatchGetNodesRequest(namespace=namespace(), node_ids=["b", "z", "a"], at_namespace_revision=1)
    )
    listed = await stubs.repository.ListNodes(pb.ListNodesRequest(namespace=namespace(), at_namespace_revision=2))

    assert (then.node.content, then.change_token.namespace_revision) == ("first", 1)
    assert (now.node.content, now.change_token.namespace_revision) == ("second", 3)
    assert [node.id for node in batch.nodes] == ["a"]
    assert list(batch.missing_node_ids) == ["b", "z"]
    assert [(node.id, node.content) for node in listed.nodes] == [("a", "first"), ("b", "content of b")]
    async with refused(Reason.NODE_NOT_FOUND, node_id="b"):
        await get(stubs, "b", at=1)
    async with refused(Reason.REVISION_NOT_FOUND, namespace_revision=9, actual=3):
        await get(stubs, "a", at=9)


async def test_content_and_surroundings_come_as_they_are_asked_for(stubs):
    await apply(stubs, create("a", surroundings=["around"]))

    async def listed(**fields):
        answer = await stubs.repository.ListNodes(pb.ListNodesRequest(namespace=namespace(), **fields))
        return answer.nodes[0].content, list(answer.nodes[0].surroundings)

    assert await listed() == ("content of a", [])
    assert await listed(include_surroundings=True) == ("content of a", ["around"])
    assert await listed(omit_content=True, include_surroundings=True) == ("", [])


async def test_pages_of_nodes_stay_at_the_revision_of_the_first(stubs):
    await apply(stubs, *(create(f"n{number}") for number in range(5)))
    request = pb.ListNodesRequest(namespace=namespace(), page_size=2)
    first = await stubs.repository.ListNodes(request)
    await apply(stubs, create("n3b"))

    ids = [node.id for node in first.nodes]
    page = first
    while page.next_page_token:
        request.page_token = page.next_page_token
        page = await stubs.repository.ListNodes(request)
        assert page.change_token == first.change_token
        ids += [node.id for node in page.nodes]
    assert ids == [f"n{number}" for number in range(5)]


async def test_a_page_ends_early_where_the_answer_would_grow_too_large(serve_application):
    app = await serve_application(calls=SMALL_ANSWERS)
    stubs = await app.stubs()
    await apply(stubs, *(create(f"n{number:02}", f"{number} " + "x" * 60_000) for number in range(40)))
    request = pb.ListNodesRequest(namespace=namespace(), page_size=500)

    sizes = []
    while True:
        page = await stubs.repository.ListNodes(request)
        sizes.append(len(page.nodes))
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    assert sum(sizes) == 40
    assert max(sizes) < 18
    async with refused(Reason.LIMIT_EXCEEDED, field="response"):
        await stubs.repository.BatchGetNodes(
            pb.BatchGetNodesRequest(namespace=namespace(), node_ids=[f"n{number:02}" for number in range(40)])
        )


async def test_a_page_token_works_for_its_own_listing_only(stubs):
    await apply(stubs, *(create(f"n{number}") for number in range(3)))
    token = (await stubs.repository.ListNodes(pb.ListNodesRequest(namespace=namespace(), page_size=1))).next_page_token

    for request in (
        pb.ListNodesRequest(namespace=namespace(), page_token=token + "x"),
        pb.ListNodesRequest(namespace=namespace(), page_token=token[:-2]),
        pb.ListNodesRequest(namespace=namespace(scope="other"), page_token=token),
        pb.ListNodesRequest(namespace=namespace(), page_token=token, omit_content=True),
        pb.ListNodesRequest(namespace=namespace(), page_token="\0"),
        pb.ListNodesRequest(namespace=namespace(), page_token="é"),
    ):
        async with refused(Reason.INVALID_PAGE_TOKEN):
            await stubs.repository.ListNodes(request)
    async with refused(Reason.INVALID_PAGE_TOKEN):
        await stubs.repository.ListChangeSets(pb.ListChangeSetsRequest(namespace=namespace(), page_token=token))
    larger = await stubs.repository.ListNodes(
        pb.ListNodesRequest(namespace=namespace(), page_size=50, page_token=token)
    )
    assert [node.id for node in larger.nodes] == ["n1", "n2"]


async def test_page_sizes_out_of_bounds_are_refused(stubs):
    async with refused(Reason.INVALID_FIELD, field="page_size"):
        await stubs.repository.ListNodes(pb.ListNodesRequest(namespace=namespace(), page_size=-1))
    async with refused(Reason.LIMIT_EXCEEDED, field="page_size", limit=500, actual=501):
        await stubs.repository.ListNodes(pb.ListNodesRequest(namespace=namespace(), page_size=501))


async def test_revisions_are_listed_oldest_first_in_pages(stubs):
    citation = await remember(stubs, "0", node_id="a")
    for number in range(1, 5):
        answer = await stubs.memories.PutMemory(
            memory_pb.PutMemoryRequest(**call(node_id="a", memory=draft(f"{number}")))
        )
        citation = answer.citation
    request = pb.ListRevisionsRequest(namespace=namespace(), node_id="a", page_size=2)
    first = await stubs.repository.ListRevisions(request)
    await stubs.memories.RetireMemory(memory_pb.RetireMemoryRequest(**call(citation=citation)))

    contents = [node.content for node in first.revisions]
    page = first
    while page.next_page_token:
        request.page_token = page.next_page_token
        page = await stubs.repository.ListRevisions(request)
        assert page.change_token == first.change_token
        contents += [node.content for node in page.revisions]
    assert contents == ["0", "1", "2", "3", "4"]
    async with refused(Reason.NODE_NOT_FOUND, node_id="z"):
        await stubs.repository.ListRevisions(pb.ListRevisionsRequest(namespace=namespace(), node_id="z"))


async def test_one_revision_is_read_by_citation_or_reference(stubs):
    citation = await remember(stubs, node_id="a")
    await stubs.memories.RetireMemory(memory_pb.RetireMemoryRequest(**call(citation=citation)))

    by_citation = await stubs.repository.GetRevision(pb.GetRevisionRequest(namespace=namespace(), citation=citation))
    by_ref = await stubs.repository.GetRevision(
        pb.GetRevisionRequest(namespace=namespace(), node_revision={"node_id": "a", "revision": 1})
    )

    assert by_citation == by_ref
    assert by_ref.node.status == ACTIVE
    async with refused(Reason.REVISION_NOT_FOUND, node_id="a", revision=3):
        await stubs.repository.GetRevision(
            pb.GetRevisionRequest(namespace=namespace(), node_revision={"node_id": "a", "revision": 3})
        )
    async with refused(Reason.INVALID_FIELD, field="target"):
        await stubs.repository.GetRevision(pb.GetRevisionRequest(namespace=namespace()))


async def test_change_sets_are_listed_in_order_and_found_by_revision_and_key(stubs):
    request_ids = []
    for number in range(4):
        request = pb.ApplyChangeSetRequest(**call(operations=[create(f"n{number}")]))
        request_ids.append(request.request_id)
        await stubs.repository.ApplyChangeSet(request)
    listing = pb.ListChangeSetsRequest(namespace=namespace(), after_namespace_revision=1, page_size=2)
    first = await stubs.repository.ListChangeSets(listing)
    await apply(stubs, create("later"))
    listing.page_token = first.next_page_token
    second = await stubs.repository.ListChangeSets(listing)

    assert [item.namespace_revision for item in (*first.change_sets, *second.change_sets)] == [2, 3, 4]
    assert second.next_page_token == ""
    assert second.change_token == first.change_token
    by_revision = await stubs.repository.GetChangeSet(
        pb.GetChangeSetRequest(namespace=namespace(), namespace_revision=3)
    )
    by_key = await stubs.repository.GetChangeSet(
        pb.GetChangeSetRequest(namespace=namespace(), key={"idempotency_key": request_ids[2]})
    )
    assert by_revision == by_key
    async with refused(Reason.REVISION_NOT_FOUND, namespace_revision=9):
        await stubs.repository.GetChangeSet(pb.GetChangeSetRequest(namespace=namespace(), namespace_revision=9))
    async with refused(Reason.REVISION_NOT_FOUND, method="Remember", request_id=request_ids[2]):
        await stubs.repository.GetChangeSet(
            pb.GetChangeSetRequest(namespace=namespace(), key={"method": "Remember", "idempotency_key": request_ids[2]})
        )
    async with refused(Reason.INVALID_FIELD, field="selector"):
        await stubs.repository.GetChangeSet(pb.GetChangeSetRequest(namespace=namespace()))


async def test_a_snapshot_has_header_nodes_and_footer(stubs):
    await apply(stubs, create("b", status=ACTIVE), create("a"))

    async def snapshot(**fields):
        stream = stubs.repository.Snapshot(pb.SnapshotRequest(namespace=namespace(), **fields), timeout=60)
        return [message async for message in stream]

    whole = await snapshot()
    bare = await snapshot(omit_content=True)
    active = await snapshot(statuses=[ACTIVE])

    assert [message.WhichOneof("message") for message in whole] == ["header", "node", "node", "footer"]
    assert whole[0].header.namespace == namespace()
    assert len(whole[0].header.statuses) == 6
    assert [message.node.id for message in whole[1:-1]] == ["a", "b"]
    assert whole[-1].footer.node_count == 2
    assert whole[-1].footer.content_bytes == len("content of a" + "content of b")
    assert bare[1].node.content == ""
    assert bare[-1].footer == whole[-1].footer
    assert [message.node.id for message in active[1:-1]] == ["b"]
    assert list(active[0].header.statuses) == [ACTIVE]


async def next_change(stream):
    """The next change; heartbeats before it are passed over."""
    while True:
        message = await stream.read()
        assert message is not grpc.aio.EOF
        if message.WhichOneof("event") == "change":
            return message.change


async def test_a_watch_begins_with_a_heartbeat_and_sends_every_change_in_order(stubs):
    await apply(stubs, create("a"))
    stream = stubs.repository.WatchNamespace(
        pb.WatchNamespaceRequest(namespace=namespace(), after_namespace_revision=0, include_nodes=True)
    )

    first = await stream.read()
    assert first.heartbeat.change_token.namespace_revision == 0
    old = await next_change(stream)
    await apply(stubs, create("b"))
    new = await next_change(stream)
    stream.cancel()

    assert [old.change_token.namespace_revision, new.change_token.namespace_revision] == [1, 2]
    assert [node.id for node in new.nodes] == ["b"]
    assert new.change_set.changes[0].citation == new.nodes[0].citation


async def test_a_watch_from_now_on_sees_what_comes_after_its_first_heartbeat(stubs):
    await apply(stubs, create("a"))
    stream = stubs.repository.WatchNamespace(pb.WatchNamespaceRequest(namespace=namespace()))
    assert (await stream.read()).heartbeat.change_token == await change_token(stubs)

    await apply(stubs, create("b"))
    change = await next_change(stream)
    stream.cancel()

    assert change.change_token.namespace_revision == 2
    assert not change.nodes


async def test_a_watch_tells_a_changed_history_from_a_revision_that_has_not_come(stubs):
    token = await change_token(stubs)

    async with refused(Reason.HISTORY_CHANGED, expected="another", actual=token.history_id):
        await stubs.repository.WatchNamespace(
            pb.WatchNamespaceRequest(namespace=namespace(), history_id="another")
        ).read()
    async with refused(Reason.REVISION_NOT_FOUND, namespace_revision=5, actual=0):
        await stubs.repository.WatchNamespace(
            pb.WatchNamespaceRequest(namespace=namespace(), after_namespace_revision=5)
        ).read()


async def test_a_watched_change_that_would_not_fit_comes_without_text(serve_application):
    app = await serve_application(calls=SMALL_ANSWERS)
    stubs = await app.stubs()
    await apply(stubs, *(create(f"n{number:02}", f"{number} " + "x" * 60_000) for number in range(30)))
    stream = stubs.repository.WatchNamespace(
        pb.WatchNamespaceRequest(namespace=namespace(), after_namespace_revision=0, include_nodes=True)
    )

    change = await next_change(stream)
    stream.cancel()

    assert len(change.nodes) == 30
    assert {node.content for node in change.nodes} == {""}


async def test_concurrent_attempts_with_one_key_make_one_change_set(stubs):
    request = pb.ApplyChangeSetRequest(**call(operations=[create("a")]))

    answers = await asyncio.gather(*(stubs.repository.ApplyChangeSet(request) for _ in range(8)))

    assert all(answer == answers[0] for answer in answers)
    assert (await change_token(stubs)).namespace_revision == 1


async def test_a_snapshot_over_its_budget_fails_instead_of_leaving_something_out(stubs, monkeypatch):
    monkeypatch.setattr("durable_memory.app.repository.SNAPSHOT_MAX_NODES", 1)
    await apply(stubs, create("a"), create("b"))

    async with refused(Reason.SNAPSHOT_TOO_LARGE, max_nodes=1):
        async for message in stubs.repository.Snapshot(pb.SnapshotRequest(namespace=namespace()), timeout=60):
            assert message.WhichOneof("message") != "footer"


async def test_a_page_token_is_good_for_three_days(serve_application):
    app = await serve_application(manual_clock=True)
    stubs = await app.stubs()
    await apply(stubs, create("a"), create("b"))
    request = pb.ListNodesRequest(namespace=namespace(), page_size=1)
    request.page_token = (await stubs.repository.ListNodes(request)).next_page_token

    app.clock.advance(timedelta(days=3))
    assert [node.id for node in (await stubs.repository.ListNodes(request)).nodes] == ["b"]
    app.clock.advance(timedelta(seconds=1))
    async with refused(Reason.INVALID_PAGE_TOKEN):
        await stubs.repository.ListNodes(request)
