"""The table of roles: complete, said in the proto, and enforced."""

import hashlib
import json
import re
from pathlib import Path

import grpc
import pytest

from durable_memory.domain.caller import Role
from durable_memory.domain.errors import Reason
from durable_memory.rpc.roles import ROLES
from durablememory.v1 import change_set_pb2, node_pb2
from durablememory.v1 import memory_service_pb2 as memory_pb
from durablememory.v1 import repository_service_pb2 as repository_pb
from tests.rpc.conftest import token_of
from tests.rpc.messages import call, draft, manual_evidence, namespace, remember, turn
from tests.rpc.reflected import reflected_rpcs
from tests.rpc.refusals import answer_or_error, error_info, refused
from tests.rpc.semantic_parts import SemanticParts

PROTO = Path(__file__).parents[2] / "proto" / "durablememory" / "v1"


def only(rpc):
    """The credential that has the roles of the row and no other."""
    return f"only-{'-'.join(ROLES[rpc]) or 'nothing'}"


@pytest.fixture
async def by_roles(serve_application, tmp_path):
    """A server that knows a credential `only(rpc)` for each row, and `all-but-<role>` for each role."""
    keys = {f"all-but-{role}": [other for other in Role if other is not role] for role in Role}
    keys |= {only(rpc): list(roles or [Role.OPERATOR]) for rpc, roles in ROLES.items()}
    path = tmp_path / "roles.json"
    hashes = {name: hashlib.sha256(token_of(name).encode()).hexdigest() for name in keys}
    entries = [
        {"sha256": hashes[name], "name": name, "roles": roles, "tenants": ["acme"]} for name, roles in keys.items()
    ]
    path.write_text(json.dumps(entries))
    path.chmod(0o600)
    return await serve_application(credentials_file=path, semantic=SemanticParts())


def stated_roles():
    """For each RPC the roles that its comment in the proto says it needs."""
    stated = {}
    for path in PROTO.glob("*_service.proto"):
        (service,) = re.findall(r"^service (\w+)", path.read_text(), re.MULTILINE)
        for comment, method in re.findall(r"((?:  //.*\n)+)  rpc (\w+)\(", path.read_text()):
            text = " ".join(comment.replace("//", " ").split())
            sentence = re.search(r"Needs the (\w+)(?: and the (\w+))? role\b", text)
            stated[f"{service}.{method}"] = tuple(role for role in sentence.groups() if role) if sentence else ()
    return stated


async def test_every_rpc_has_a_row_and_every_row_an_rpc(server_app):
    stubs = await server_app.stubs()

    assert {rpc.name for rpc in await reflected_rpcs(stubs.channel)} == set(ROLES)


def test_the_proto_states_the_roles_of_the_table():
    assert stated_roles() == {rpc: tuple(role.value for role in roles) for rpc, roles in ROLES.items()}


async def test_a_caller_that_lacks_a_role_is_told_which_before_anything_else_is_looked_at(by_roles):
    stubs = await by_roles.stubs()

    for rpc in await reflected_rpcs(stubs.channel):
        for role in ROLES[rpc.name]:
            async with refused(Reason.PERMISSION_DENIED, required_role=role.value):
                await rpc.call(stubs.channel, rpc.request_class(), f"all-but-{role}")


async def test_the_roles_of_its_row_are_all_that_an_rpc_asks_for(by_roles):
    stubs = await by_roles.stubs()

    for rpc in await reflected_rpcs(stubs.channel):
        fields = {"namespace": namespace()} if "namespace" in rpc.request_class.DESCRIPTOR.fields_by_name else {}
        outcome = await answer_or_error(rpc.call(stubs.channel, rpc.request_class(**fields), only(rpc.name)))
        if isinstance(outcome, grpc.aio.AioRpcError):
            assert outcome.code() is grpc.StatusCode.INVALID_ARGUMENT, (rpc.name, error_info(outcome))


async def test_without_a_credential_every_rpc_is_refused(by_roles):
    stubs = await by_roles.stubs()

    for rpc in await reflected_rpcs(stubs.channel):
        async with refused(Reason.CREDENTIALS_INVALID):
            await rpc.call(stubs.channel, rpc.request_class())


async def test_a_writer_without_the_activator_role_proposes_but_does_not_decide(guarded_app):
    """Roles that depend on what is touched, which the table cannot say."""
    writer = await guarded_app.stubs("writer")
    activator = await guarded_app.stubs("activator")
    active = await remember(activator)

    def apply(operation):
        return writer.repository.ApplyChangeSet(repository_pb.ApplyChangeSetRequest(**call(operations=[operation])))

    created = await apply({"create": {"node_id": "b", "memory": draft("coffee", evidence=[turn()])}})
    assert created.change_set.changes[0].status_after == node_pb2.NODE_STATUS_CANDIDATE
    decisions = [manual_evidence(7)]
    for operation in (
        {"create": {"memory": draft("water", evidence=decisions), "status": node_pb2.NODE_STATUS_ACTIVE}},
        {"activate": {"node_id": "b", "expected_revision": 1, "evidence": decisions}},
        {
            "revise": {
                "node_id": active.node_id,
                "expected_revision": 1,
                "kind": change_set_pb2.REVISION_KIND_CORRECTION,
                "set_labels": {"a": "b"},
                "evidence": decisions,
            }
        },
    ):
        async with refused(Reason.PERMISSION_DENIED, required_role="activator", operation_index=0):
            await apply(operation)
    async with refused(Reason.PERMISSION_DENIED, required_role="activator") as info:
        await writer.memories.ReviseMemory(
            memory_pb.ReviseMemoryRequest(
                **call(citation=active, revision_kind=change_set_pb2.REVISION_KIND_CORRECTION, content="rum")
            )
        )
    assert "operation_index" not in info.metadata
    await writer.memories.RetireMemory(memory_pb.RetireMemoryRequest(**call(citation=active)))
