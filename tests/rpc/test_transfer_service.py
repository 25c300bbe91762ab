"""TransferService: a whole namespace out of one store and into another, through real channels."""

import asyncio

import pytest

from durable_memory.domain.errors import Reason
from durable_memory.rpc import transfer_servicer
from durablememory.v1 import change_set_pb2, transfer_pb2
from durablememory.v1 import memory_service_pb2 as memory_pb
from durablememory.v1 import recall_service_pb2 as recall_pb
from durablememory.v1 import repository_service_pb2 as repository_pb
from durablememory.v1 import session_service_pb2 as session_pb
from durablememory.v1 import transfer_service_pb2 as pb
from tests.processes.polling import wait_until_async
from tests.rpc.messages import call, change_token, draft, namespace, ref, remember, request_id, turn
from tests.rpc.refusals import refused


@pytest.fixture
async def source(server_app):
    """Stubs of a server whose namespace has something of everything."""
    stubs = await server_app.stubs()
    first = await remember(stubs, "Zoë drinks 茶.", memory=draft("Zoë drinks 茶.", labels={"type": "x"}), node_id="a")
    await stubs.memories.ReviseMemory(
        memory_pb.ReviseMemoryRequest(
            **call(
                citation=first,
                revision_kind=change_set_pb2.REVISION_KIND_CORRECTION,
                content="Zoë drinks coffee.",
                evidence=[turn(2)],
            )
        )
    )
    await stubs.sessions.OpenSession(session_pb.OpenSessionRequest(**call(session_id="assistant")))
    run = await stubs.sessions.BeginRun(
        session_pb.BeginRunRequest(**call(session_id="assistant", run_id="turn-1", host_instance="host-1"))
    )
    await stubs.recall.RecordUse(
        recall_pb.RecordUseRequest(
            **call(session_id="assistant", context_id=run.run.context_id, items=[{"node_revision": ref(first)}])
        )
    )
    return stubs


@pytest.fixture
async def target(serve_application):
    """Stubs of a server that holds nothing."""
    return await (await serve_application("memory:")).stubs()


async def export(stubs, where=None):
    stream = stubs.transfer.ExportNamespace(pb.ExportNamespaceRequest(namespace=where or namespace()), timeout=60)
    return [record async for message in stream for record in message.records]


async def import_(stubs, records, *, size=100, key=None, where=None):
    async def messages():
        yield pb.ImportNamespaceRequest(namespace=where or namespace(), request_id=key or request_id())
        for start in range(0, len(records), size):
            yield pb.ImportNamespaceRequest(records=records[start : start + size])

    return await stubs.transfer.ImportNamespace(messages())


async def test_an_export_is_complete_between_header_and_footer(source):
    records = await export(source)

    kinds = [record.WhichOneof("record") for record in records]
    assert kinds == [
        "header",
        *("node_revision", "change_set") * 2,
        *("request",) * 5,
        "session",
        "run",
        "access_event",
        "footer",
    ]
    header, footer = records[0].header, records[-1].footer
    assert (header.format_version, header.namespace) == (1, namespace())
    assert header.change_token == await change_token(source)
    assert header.chain_digest == records[4].change_set.chain_digest
    assert footer.counts == transfer_pb2.TransferCounts(
        nodes=1, node_revisions=2, change_sets=2, requests=5, sessions=1, runs=1, access_events=1
    )


async def test_an_imported_namespace_says_what_the_exported_one_said(source, target):
    records = await export(source)

    answer = await import_(target, records, size=3)

    then, now = await change_token(source), await change_token(target)
    assert answer.change_token == now
    assert answer.counts == records[-1].footer.counts
    assert now.namespace_revision == then.namespace_revision
    assert now.history_id != then.history_id
    listing = repository_pb.ListRevisionsRequest(namespace=namespace(), node_id="a")
    assert (await target.repository.ListRevisions(listing)).revisions == (
        await source.repository.ListRevisions(listing)
    ).revisions
    usage = recall_pb.GetUsageSummaryRequest(namespace=namespace())
    assert (await target.recall.GetUsageSummary(usage)).summaries == (
        await source.recall.GetUsageSummary(usage)
    ).summaries
    session = session_pb.GetSessionRequest(namespace=namespace(), session_id="assistant")
    assert await target.sessions.GetSession(session) == await source.sessions.GetSession(session)
    again = await export(target)
    assert again[-1].footer.counts.node_revisions == 2
    assert again[1:5] == records[1:5]


async def test_a_repeated_import_returns_the_first_answer(source, target):
    records = await export(source)

    first = await import_(target, records, key="import-1")
    again = await import_(target, records, size=2, key="import-1")

    assert again == first
    async with refused(Reason.REVISION_CONFLICT, expected=0):
        await import_(target, records)


async def test_a_retry_after_an_import_is_answered_as_before_it(serve_application, target):
    source = await (await serve_application("memory:")).stubs()
    request = memory_pb.RememberRequest(**call(memory=draft()))
    first = await source.memories.Remember(request)
    await import_(target, await export(source))

    again = await target.memories.Remember(request)

    assert again.citation == first.citation
    assert again.outcome == first.outcome
    assert (await change_token(target)).namespace_revision == 1


def drop_footer(records):
    del records[-1]


def change_content(records):
    records[1].node_revision.content = "Zoë drinks poison."


def change_kind(records):
    records[1].node_revision.kind = 9


def change_version(records):
    records[0].header.format_version = 2


def change_note(records):
    records[2].change_set.note = "nothing happened"


def change_count(records):
    records[-1].footer.counts.requests += 1


def drop_request(records):
    del records[5]


def change_result(records):
    records[5].request.result_json = "[]"


def empty_record(records):
    records.insert(1, transfer_pb2.ExportRecord())


@pytest.mark.parametrize(
    ("damage", "reason", "metadata"),
    [
        (drop_footer, Reason.DATA_CORRUPTED, {"record": 12}),
        (change_content, Reason.DATA_CORRUPTED, {"record": 1}),
        (change_kind, Reason.INVALID_FIELD, {"field": "records[1].node_revision.kind"}),
        (change_version, Reason.INVALID_FIELD, {"field": "records[0].header.format_version"}),
        (change_note, Reason.INVALID_FIELD, {"field": "records[2].change_set.digest"}),
        (change_count, Reason.DATA_CORRUPTED, {"record": 13}),
        (drop_request, Reason.DATA_CORRUPTED, {"record": 12}),
        (change_result, Reason.INVALID_FIELD, {"field": "records[5].request.result_json"}),
        (empty_record, Reason.INVALID_FIELD, {"field": "records[1].record"}),
    ],
)
async def test_what_does_not_verify_is_refused_and_nothing_is_written(source, target, damage, reason, metadata):
    records = await export(source)
    damage(records)

    async with refused(reason, **metadata):
        await import_(target, records)
    assert (await change_token(target)).namespace_revision == 0
    listing = session_pb.ListSessionsRequest(namespace=namespace())
    assert not (await target.sessions.ListSessions(listing)).sessions


async def test_an_export_of_another_namespace_is_refused(source, target):
    records = await export(source)

    async with refused(Reason.INVALID_FIELD, field="namespace"):
        await import_(target, records, where=namespace(scope="elsewhere"))


async def test_messages_of_one_import_must_not_contradict_each_other(source, target):
    records = await export(source)

    async def import_with(second):
        async def messages():
            yield pb.ImportNamespaceRequest(namespace=namespace(), request_id="one")
            yield second

        return await target.transfer.ImportNamespace(messages())

    async with refused(Reason.INVALID_FIELD, field="request_id"):
        await import_with(pb.ImportNamespaceRequest(request_id="two", records=records))
    async with refused(Reason.INVALID_FIELD, field="namespace"):
        await import_with(pb.ImportNamespaceRequest(namespace=namespace(scope="other"), records=records))
    async with refused(Reason.LIMIT_EXCEEDED, field="records", limit=256, actual=257):
        await import_with(pb.ImportNamespaceRequest(records=[records[1]] * 257))


async def test_an_import_without_any_message_is_refused(target):
    async def messages():
        return
        yield

    async with refused(Reason.INVALID_FIELD, field="namespace.tenant_id"):
        await target.transfer.ImportNamespace(messages())


async def test_an_import_over_its_bound_is_refused_and_nothing_is_written(source, target, monkeypatch):
    records = await export(source)
    monkeypatch.setattr("durable_memory.rpc.transfer_servicer.IMPORT_MAX_BYTES", 1_000)
    before = await change_token(target)

    async with refused(Reason.LIMIT_EXCEEDED, field="records", limit=1_000):
        await import_(target, records, size=2)

    assert await change_token(target) == before


async def test_what_no_import_would_take_is_not_exported_as_if_one_did(source, monkeypatch):
    size = sum(record.ByteSize() for record in await export(source))
    monkeypatch.setattr("durable_memory.rpc.transfer_servicer.IMPORT_MAX_BYTES", size - 1)

    async with refused(Reason.LIMIT_EXCEEDED, field="records", limit=size - 1):
        await export(source)


async def test_imports_at_once_hold_no_more_than_one_may(source, target, monkeypatch):
    records = await export(source)
    size = sum(record.ByteSize() for record in records) + 500
    monkeypatch.setattr("durable_memory.rpc.transfer_servicer.IMPORT_MAX_BYTES", size)
    go_on = asyncio.Event()
    take, taken = transfer_servicer._take, []

    def noted(part, *held):
        take(part, *held)
        taken.append(part)

    monkeypatch.setattr(transfer_servicer, "_take", noted)

    async def slow():
        yield pb.ImportNamespaceRequest(namespace=namespace(), request_id="slow", records=records[:-1])
        await go_on.wait()
        yield pb.ImportNamespaceRequest(records=records[-1:])

    first = asyncio.ensure_future(target.transfer.ImportNamespace(slow()))
    # By what it took, and not by a try: that could be the one that is held, and this one refused.
    await wait_until_async(lambda: taken, what="the first is held")
    async with refused(Reason.OVERLOADED, limit=size):
        await import_(target, records[:-1])
    go_on.set()
    assert (await first).counts == records[-1].footer.counts
    async with refused(Reason.REVISION_CONFLICT):  # there is room again
        await import_(target, records)
