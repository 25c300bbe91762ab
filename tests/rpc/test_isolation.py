"""No RPC lets a namespace be seen, touched or guessed from outside of it."""

import grpc
import pytest

from durable_memory.domain.errors import Reason
from durablememory.v1 import error_reason_pb2
from tests.rpc.every_rpc import CONTENT, NOBODYS, PROPOSED, populate, requests
from tests.rpc.messages import change_token, namespace
from tests.rpc.reflected import reflected_rpcs
from tests.rpc.refusals import answer_or_error, error_info, refused
from tests.rpc.semantic_parts import SemanticParts

# What an RPC answers in one's own, empty namespace to ids of another one: a reason, or nothing to see.
REFUSALS = {
    "SessionService.ResumeSession": Reason.SESSION_NOT_FOUND,
    "SessionService.RebindSession": Reason.SESSION_NOT_FOUND,
    "SessionService.GetSession": Reason.SESSION_NOT_FOUND,
    "SessionService.CloseSession": Reason.SESSION_NOT_FOUND,
    "SessionService.BeginRun": Reason.SESSION_NOT_FOUND,
    "SessionService.EndRun": Reason.SESSION_NOT_FOUND,
    "RecallService.ActiveRecall": Reason.SESSION_NOT_FOUND,
    "RecallService.ExplainRecall": Reason.SESSION_NOT_FOUND,
    "RecallService.AdmitMemories": Reason.SESSION_NOT_FOUND,
    "RecallService.RecordUse": Reason.SESSION_NOT_FOUND,
    "MemoryService.ReviseMemory": Reason.NODE_NOT_FOUND,
    "MemoryService.RetireMemory": Reason.NODE_NOT_FOUND,
    "MemoryService.ReactivateMemory": Reason.NODE_NOT_FOUND,
    "MemoryService.SupersedeMemory": Reason.NODE_NOT_FOUND,
    "MemoryService.GetMemory": Reason.REVISION_NOT_FOUND,
    "RepositoryService.ApplyChangeSet": Reason.NODE_NOT_FOUND,
    "RepositoryService.GetNode": Reason.NODE_NOT_FOUND,
    "RepositoryService.ListRevisions": Reason.NODE_NOT_FOUND,
    "RepositoryService.GetRevision": Reason.REVISION_NOT_FOUND,
    "RepositoryService.GetChangeSet": Reason.REVISION_NOT_FOUND,
    "SemanticService.RefreshSemanticRecall": Reason.SESSION_NOT_FOUND,
    "TransferService.ImportNamespace": Reason.INVALID_FIELD,
}
SEEN = {
    "SessionService.ListSessions": lambda answer: answer.sessions,
    "RecallService.PreviewRecall": lambda answer: answer.result.hits or answer.result.searched_node_count,
    "RecallService.GetUsageSummary": lambda answer: answer.summaries,
    "CandidateService.ListCandidates": lambda answer: answer.candidates,
    "RepositoryService.BatchGetNodes": lambda answer: answer.nodes,
    "RepositoryService.ListNodes": lambda answer: answer.nodes,
    "RepositoryService.ListChangeSets": lambda answer: answer.change_sets,
    "RepositoryService.GetChangeToken": lambda answer: answer.change_token.namespace_revision,
    "SemanticService.GetIndexStatus": lambda answer: (
        answer.status.change_token.namespace_revision
        or answer.status.unindexed_active_count
        or any(answer.status.HasField(field) for field in ("published", "last_receipt", "schedule"))
    ),
    "SemanticService.ListReceipts": lambda answer: answer.receipts,
    "SemanticService.GetMaintenanceHealth": lambda answer: answer.HasField("last_receipt") or answer.runs,
}
ITEMS_NOT_FOUND = {"CandidateService.ActivateCandidates", "CandidateService.RejectCandidates"}
EMPTY_STREAMS = {
    "RepositoryService.Snapshot": ["header", "footer"],
    "RepositoryService.WatchNamespace": ["heartbeat"],
    "TransferService.ExportNamespace": ["header", "footer"],
}
# These make something new where nothing equal or equally named is: the number is the outcome CREATED or OPENED, or the
# first of its kind.
CREATIONS = {
    "SessionService.OpenSession": lambda answer: answer.outcome,
    "CandidateService.ProposeCandidates": lambda answer: answer.results[0].outcome,
    "MemoryService.Remember": lambda answer: answer.outcome,
    "MemoryService.PutMemory": lambda answer: answer.outcome,
    "SemanticService.ClearPartition": lambda answer: answer.receipt.fence,
    "SemanticService.SetSchedule": lambda answer: answer.HasField("schedule"),
}
NO_NAMESPACE = {"SessionService.GetServerInfo"}

PAIRS = {
    "a:b/c and a/b:c": (namespace("a:b", "c", "s"), namespace("a", "b:c", "s")),
    "acme and acme-corp": (namespace("acme-corp"), namespace("acme")),
    "A and a": (namespace(scope="A"), namespace(scope="a")),
    "x and x,y": (namespace(scope="x,y"), namespace(scope="x")),
    "principal and scope": (namespace("t", "a", "b"), namespace("t", "b", "a")),
    "with and without a space": (namespace(scope="x "), namespace(scope="x")),
    "composed and decomposed": (namespace(scope="\u00e9"), namespace(scope="e\u0301")),
    "a wildcard": (namespace(scope="project"), namespace(scope="%")),
}


@pytest.fixture(params=["memory:", "sqlite"])
async def guarded(request, serve_application, credentials_file):
    return await serve_application(request.param, credentials_file=credentials_file, semantic=SemanticParts())


@pytest.fixture(params=["memory:", "sqlite"])
async def server_app(request, serve_application):
    return await serve_application(request.param, semantic=SemanticParts())


async def test_the_tables_of_this_file_know_every_rpc(server_app):
    stubs = await server_app.stubs()

    names = {rpc.name for rpc in await reflected_rpcs(stubs.channel)}

    tables = [set(REFUSALS), set(SEEN), ITEMS_NOT_FOUND, set(EMPTY_STREAMS), set(CREATIONS), NO_NAMESPACE]
    assert set().union(*tables) == names
    assert sum(map(len, tables)) == len(names)
    assert set(requests(namespace(), NOBODYS)) == names - NO_NAMESPACE


async def test_a_foreign_namespace_is_denied_whether_or_not_anything_is_there(guarded):
    theirs = namespace("globex")
    known = await populate(await guarded.stubs("foreign"), theirs)
    stubs = await guarded.stubs("full")
    there, nowhere = requests(theirs, known), requests(theirs, NOBODYS)
    empty = requests(namespace("globex", "nobody", "nothing"), NOBODYS)
    token = await change_token(await guarded.stubs("foreign"), theirs)

    for rpc in await reflected_rpcs(stubs.channel):
        if rpc.name in NO_NAMESPACE:
            continue
        answers = []
        for request in (there[rpc.name], nowhere[rpc.name], empty[rpc.name]):
            async with refused(Reason.PERMISSION_DENIED, field="namespace.tenant_id") as info:
                await rpc.call(stubs.channel, request, "full")
            answers.append(info.SerializeToString(deterministic=True))
        assert len(set(answers)) == 1, rpc.name
    assert await change_token(await guarded.stubs("foreign"), theirs) == token


async def test_a_foreign_id_in_ones_own_namespace_is_one_that_nobody_has(guarded):
    known = await populate(await guarded.stubs("foreign"), namespace("globex"))
    stubs = await guarded.stubs("full")

    await assert_nothing_is_seen(stubs.channel, known, namespace("acme"), "full")


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
async def test_namespaces_that_look_alike_never_meet(server_app, pair):
    theirs, own = pair
    stubs = await server_app.stubs()
    known = await populate(stubs, theirs)
    before = await change_token(stubs, theirs)

    await assert_nothing_is_seen(stubs.channel, known, own)

    assert await change_token(stubs, theirs) == before
    assert (await change_token(stubs, own)).history_id != before.history_id


async def test_a_credential_bound_to_one_namespace_fills_it_in_and_reaches_no_other(guarded):
    stubs = await guarded.stubs("bound")
    for partial in ({}, {"tenant_id": "acme"}, {"principal_id": "user-1", "scope_id": "default"}):
        assert await change_token(stubs, type(namespace())(**partial)) == await change_token(stubs)
    for field, foreign in (
        ("tenant_id", namespace("globex")),
        ("principal_id", namespace(principal="user-2")),
        ("scope_id", namespace(scope="Default")),
    ):
        async with refused(Reason.PERMISSION_DENIED, field=f"namespace.{field}"):
            await change_token(stubs, foreign)
    async with refused(Reason.INVALID_FIELD, field="namespace.principal_id"):
        await change_token(await guarded.stubs("full"), type(namespace())(tenant_id="acme"))


async def test_the_same_request_id_in_two_namespaces_is_two_requests(server_app):
    stubs = await server_app.stubs()
    first, second = namespace(scope="one"), namespace(scope="two")
    request = requests(first, NOBODYS)["MemoryService.Remember"]

    one = await stubs.memories.Remember(request)
    request.namespace.CopyFrom(second)
    two = await stubs.memories.Remember(request)

    assert one.outcome == two.outcome
    assert one.change_token.history_id != two.change_token.history_id


async def assert_nothing_is_seen(channel, known, own, key=None):
    """In `own`, which is empty, every RPC answers to what is `known` of another as to what exists nowhere."""
    rpcs = {rpc.name: rpc for rpc in await reflected_rpcs(channel)}
    theirs, nobodys = requests(own, known), requests(own, NOBODYS)
    for name in [*REFUSALS, *SEEN, *EMPTY_STREAMS, *ITEMS_NOT_FOUND]:
        outcome = await answer_or_error(rpcs[name].call(channel, theirs[name], key))
        assert CONTENT not in str(outcome), name
        assert PROPOSED not in str(outcome), name
        if name in REFUSALS:
            assert isinstance(outcome, grpc.aio.AioRpcError), (name, outcome)
            assert error_info(outcome).reason == f"ERROR_REASON_{REFUSALS[name].value}", (name, outcome.details())
            if name != "TransferService.ImportNamespace":  # which says what is wrong with the file
                nobody = await answer_or_error(rpcs[name].call(channel, nobodys[name], key))
                assert isinstance(nobody, grpc.aio.AioRpcError)
                assert set(error_info(outcome).metadata) == set(error_info(nobody).metadata), name
                assert outcome.code() is nobody.code(), name
            continue
        assert not isinstance(outcome, grpc.aio.AioRpcError), (name, outcome.details())
        if name in EMPTY_STREAMS:
            assert [part for message in outcome for part in parts_of(message)] == EMPTY_STREAMS[name]
        elif name in ITEMS_NOT_FOUND:
            (item,) = outcome[0].results
            assert item.error.reason == error_reason_pb2.ERROR_REASON_NODE_NOT_FOUND, name
        else:
            assert not SEEN[name](outcome[0]), (name, outcome)
    for name, outcome_of in CREATIONS.items():
        (answer,) = await rpcs[name].call(channel, theirs[name], key)
        assert outcome_of(answer) == 1, (name, answer)


def parts_of(message):
    """The kinds of what a message of a stream carries."""
    if "records" in message.DESCRIPTOR.fields_by_name:
        return [record.WhichOneof("record") for record in message.records]
    return [message.WhichOneof(message.DESCRIPTOR.oneofs[0].name)]
