"""The client against the contract: every RPC has a method, every enum and reason its counterpart."""

import copy
import inspect
import json
import pickle
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool

import durable_memory_client
import durable_memory_client.sync
from durable_memory_client import Citation, Create, Decision, Draft, MemoryClient, Reason, errors
from durable_memory_client.call_policy import call_policy
from durable_memory_client.errors import BY_REASON, MemoryUnavailableError
from durable_memory_client.methods import METHODS
from durable_memory_client.reasons import PREFIX, reason_rows
from durable_memory_client.sync import MemoryClient as BlockingMemoryClient
from durable_memory_client.values import enums
from durable_memory_client.values.enums import OpenEnum
from durablememory.v1 import (
    candidate_service_pb2,
    error_reason_pb2,
    memory_service_pb2,
    recall_service_pb2,
    repository_service_pb2,
    semantic_service_pb2,
    session_service_pb2,
    transfer_service_pb2,
)
from tests.clients.python.fake_service import FakeService
from tests.clients.python.messages import (
    DIGEST,
    admitted,
    begun,
    change,
    citation,
    heartbeat,
    hit,
    node,
    opened,
    recalled,
    recorded,
    refreshed,
    token,
)

_FILES = (
    candidate_service_pb2,
    memory_service_pb2,
    recall_service_pb2,
    repository_service_pb2,
    semantic_service_pb2,
    session_service_pb2,
    transfer_service_pb2,
)
_ROOT = Path(__file__).resolve().parents[3]
_SHARED = _ROOT / "clients"

CITATION = Citation(1, "prefers-tea", 1, DIGEST)


def every_rpc() -> set[str]:
    return {
        f"{service.name}.{method.name}"
        for file in _FILES
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


async def use_everything(memory: MemoryClient) -> None:
    """A program that uses all there is."""
    await memory.server_info()
    session = await memory.open_session("assistant")
    await memory.resume_session("assistant", session.info.binding_digest)
    await memory.get_session("assistant")
    await memory.list_sessions().all()
    await session.rebind(max_results=8)
    async with session.run("turn-17") as run:
        recall = await run.recall("tea")
        await run.admit(recall)
        await run.record_use(recall)
    await session.explain("prefers-tea", "tea")
    await memory.close_session("assistant")
    await memory.preview("tea")
    await memory.usage().all()
    await memory.propose("The user prefers tea.")
    await memory.list_candidates().all()
    await memory.activate(CITATION, Decision.manual())
    await memory.reject(CITATION, Decision.manual())
    await memory.remember("The user prefers tea.")
    await memory.put("prefers-tea", "The user prefers tea.")
    await memory.revise(CITATION, content="The user prefers green tea.")
    await memory.retire(CITATION)
    await memory.reactivate(CITATION)
    await memory.supersede(CITATION, "The user prefers coffee.")
    await memory.get(CITATION)
    await memory.apply_change_set([Create(memory=Draft(content="The user prefers tea."))])
    await memory.get_node("prefers-tea")
    await memory.get_nodes(["prefers-tea"])
    await memory.list_nodes().all()
    await memory.list_revisions("prefers-tea").all()
    await memory.get_revision(CITATION)
    await memory.list_change_sets().all()
    await memory.get_change_set(1)
    await memory.get_change_token()
    await memory.snapshot().all()
    async with memory.watch(after=0) as changes:
        async for _ in changes:
            break
    await memory.refresh_semantic_recall("assistant").wait()
    await memory.get_index_status()
    await memory.list_receipts().all()
    await memory.clear_partition()
    await memory.set_schedule()
    await memory.get_maintenance_health()
    lines = [line async for line in memory.export_namespace()]
    await memory.import_namespace(lines)


def answer_everything(service: FakeService) -> None:
    service.will_answer("SessionService.OpenSession", opened())
    service.will_answer(
        "SessionService.ResumeSession", session_service_pb2.ResumeSessionResponse(session=opened().session)
    )
    service.will_answer(
        "SessionService.RebindSession", session_service_pb2.RebindSessionResponse(session=opened().session)
    )
    service.will_answer("SessionService.BeginRun", begun())
    service.will_answer("RecallService.ActiveRecall", recalled(hit()))
    service.will_answer(
        "RecallService.AdmitMemories",
        recall_service_pb2.AdmitMemoriesResponse(outcomes=[admitted()], next_context_id="context-1"),
    )
    service.will_answer("RecallService.RecordUse", recall_service_pb2.RecordUseResponse(outcomes=[recorded()]))
    service.will_answer(
        "CandidateService.ProposeCandidates",
        candidate_service_pb2.ProposeCandidatesResponse(results=[candidate_service_pb2.ProposalResult()]),
    )
    service.will_answer(
        "CandidateService.ActivateCandidates",
        candidate_service_pb2.ActivateCandidatesResponse(
            results=[candidate_service_pb2.ActivationResult(citation=citation())]
        ),
    )
    service.will_answer(
        "CandidateService.RejectCandidates",
        candidate_service_pb2.RejectCandidatesResponse(
            results=[candidate_service_pb2.RejectionResult(citation=citation())]
        ),
    )
    snapshot = repository_service_pb2.SnapshotResponse
    service.will_answer(
        "RepositoryService.Snapshot",
        [
            snapshot(header=repository_service_pb2.SnapshotHeader(change_token=token(1))),
            snapshot(node=node()),
            snapshot(footer=repository_service_pb2.SnapshotFooter(node_count=1, content_bytes=21, digest=DIGEST)),
        ],
    )
    service.will_answer("RepositoryService.WatchNamespace", [heartbeat(0), change(1)])
    service.will_answer("SemanticService.RefreshSemanticRecall", refreshed())
    export = transfer_service_pb2.ExportNamespaceResponse()
    export.records.add().footer.SetInParent()
    service.will_answer("TransferService.ExportNamespace", [export])


async def test_every_rpc_has_a_method(service: FakeService, memory: MemoryClient):
    answer_everything(service)

    await use_everything(memory)

    assert {asked.method for asked in service.asked} == every_rpc()


def test_every_rpc_has_a_method_of_the_blocking_twin(
    service: FakeService, blocking_memory: BlockingMemoryClient, monkeypatch: pytest.MonkeyPatch
):
    answer_everything(service)
    monkeypatch.syspath_prepend(str(_ROOT / "tools"))  # where a program finds what it imports when it is run
    loader = SourceFileLoader("gen_python_client", str(_ROOT / "tools" / "gen_python_client"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    generator = module_from_spec(spec)
    loader.exec_module(generator)
    program = dict(globals())
    exec(generator.twin(inspect.getsource(use_everything), __name__), program)

    program["use_everything"](blocking_memory)

    assert {asked.method for asked in service.asked} == every_rpc()


async def test_every_change_carries_a_request_id_of_its_own_and_no_read_has_one(
    service: FakeService, memory: MemoryClient
):
    answer_everything(service)

    await use_everything(memory)

    methods = {method.name: method for method in METHODS.values()}
    ids = []
    for asked in service.asked:
        request_id = getattr(asked.request, "request_id", "")
        changes = methods[asked.method].changes and getattr(asked.request, "admit", True)
        assert bool(request_id) is changes, asked.method
        ids += [request_id] if request_id else []
    assert len(set(ids)) == len(ids)


async def test_every_request_names_the_namespace(service: FakeService, memory: MemoryClient):
    answer_everything(service)

    await use_everything(memory)

    for asked in service.asked:
        if asked.method != "SessionService.GetServerInfo":
            assert asked.request.namespace.tenant_id == "acme", asked.method
            assert asked.request.namespace.principal_id == "user-1", asked.method
            assert asked.request.namespace.scope_id == "project-a", asked.method


async def test_every_unary_call_has_a_deadline_without_being_told(service: FakeService, memory: MemoryClient):
    answer_everything(service)

    await use_everything(memory)

    endless = {
        "RepositoryService.Snapshot",
        "RepositoryService.WatchNamespace",
        "SemanticService.RefreshSemanticRecall",
        "TransferService.ExportNamespace",
    }
    for asked in service.asked:
        limited = asked.seconds_left is not None and asked.seconds_left < 24 * 3600
        assert limited is (asked.method not in endless), asked.method


def public_surface(cls: type) -> dict[str, str]:
    """The public methods and properties, with their parameters."""
    surface = {}
    for name, member in inspect.getmembers(cls):
        if not name.startswith("_"):
            is_call = inspect.isfunction(member)
            surface[name] = str(inspect.signature(member, eval_str=False)) if is_call else "property"
    return surface


@pytest.mark.parametrize(
    "name", ["MemoryClient", "MemoryNamespace", "MemorySession", "MemoryRun", "Pages", "Refresh", "Snapshot", "Watch"]
)
def test_the_blocking_twin_has_the_same_surface(name: str):
    def blocking(surface: dict[str, str]) -> dict[str, str]:
        return {method: text.replace("Async", "") for method, text in surface.items()}

    asynchronous = public_surface(getattr(durable_memory_client, name))
    assert blocking(asynchronous) == public_surface(getattr(durable_memory_client.sync, name))


def test_nothing_of_the_blocking_twin_awaits():
    for name in durable_memory_client.sync.__all__:
        member = getattr(durable_memory_client.sync, name)
        for _, function in inspect.getmembers(member, inspect.isfunction):
            assert not inspect.iscoroutinefunction(function), function
            assert not inspect.isasyncgenfunction(function), function


def test_what_a_package_exports_is_there():
    for package in (durable_memory_client, durable_memory_client.sync):
        assert sorted(package.__all__) == sorted(set(package.__all__))
        assert all(hasattr(package, name) for name in package.__all__)


OPEN_ENUMS = [member for _, member in inspect.getmembers(enums, inspect.isclass) if issubclass(member, OpenEnum)]


@pytest.mark.parametrize("enum", [enum for enum in OPEN_ENUMS if enum is not OpenEnum], ids=lambda enum: enum.__name__)
def test_an_enum_has_the_values_of_the_contract(enum: type[OpenEnum]):
    contract = descriptor_pool.Default().FindEnumTypeByName(f"durablememory.v1.{enum.__name__}")
    numbers = {value.number for value in contract.values if value.number != 0}

    assert {member.number for member in enum} == numbers
    for number in numbers:
        assert enum.from_number(number).is_known
        assert contract.values_by_number[number].name.endswith(f"_{enum.from_number(number)}")


def test_an_enum_of_the_contract_that_a_caller_meets_is_an_enum_of_the_client():
    files = {file.DESCRIPTOR.name: file.DESCRIPTOR for file in _FILES}
    for file in list(files.values()):
        files |= {imported.name: imported for imported in file.dependencies if imported.package == file.package}
    contract = {name for file in files.values() for name in file.enum_types_by_name}

    # What an access event or a reason is called is met in exports and errors alone, as text.
    assert contract - {enum.__name__ for enum in OPEN_ENUMS} == {"AccessKind", "ErrorReason"} & contract


def test_reasons_and_their_classes_are_those_of_the_contract():
    contract = {name.removeprefix(PREFIX) for name in error_reason_pb2.ErrorReason.DESCRIPTOR.values_by_name} - {
        "UNSPECIFIED"
    }

    assert set(Reason) == contract
    assert set(reason_rows()) == contract
    assert set(BY_REASON) == contract
    for reason, kind in BY_REASON.items():
        assert kind.default_reason == reason
        assert issubclass(kind, MemoryUnavailableError) is reason_rows()[reason].outage
        assert getattr(errors, kind.__name__) is kind
    assert len(set(BY_REASON.values())) == len(contract)


def test_the_shared_table_says_what_the_server_says():
    from durable_memory.domain.errors import Reason as ServerReason
    from durable_memory.rpc.errors import ERROR_TABLE

    def retry(row: Any) -> str:
        return "retry_info" if row.retry_after_ms is not None else "backoff" if row.retryable else "never"

    server = {reason.value: (row.status.name, row.definite, retry(row)) for reason, row in ERROR_TABLE.items()}
    client = {reason: (row.code, row.definite, row.retry) for reason, row in reason_rows().items()}
    assert {reason.value for reason in ServerReason} == set(client)
    assert client == server


def test_the_package_has_the_data_that_all_languages_share():
    for name in ("reasons.json", "service_config.json"):
        packaged = files("durable_memory_client").joinpath(name).read_text("utf-8")
        assert json.loads(packaged) == json.loads((_SHARED / name).read_text("utf-8"))


def test_the_version_is_that_of_the_distribution():
    project = tomllib.loads((_ROOT / "clients" / "python" / "pyproject.toml").read_text("utf-8"))["project"]
    assert durable_memory_client.__version__ == project["version"]


def test_the_service_config_names_rpcs_that_exist():
    config = json.loads((_SHARED / "service_config.json").read_text("utf-8"))
    named = [name for entry in config["methodConfig"] for name in entry["name"] if name]
    paths = {method.path for method in METHODS.values()}
    for name in named:
        assert f"/{name['service']}/{name['method']}" in paths


def test_an_rpc_that_the_service_config_does_not_name_has_the_default_policy():
    policy = call_policy("durablememory.v1.FutureService", "Anything")
    assert policy == call_policy("durablememory.v1.MemoryService", "Remember")
    assert policy.timeout == 10.0
    assert policy.retry is not None


def test_errors_survive_being_pickled():
    error = errors.RevisionConflictError(
        "moved", code=grpc.StatusCode.ABORTED, metadata={"actual": "4"}, request_id="request-1", attempts=2
    )
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert vars(other) == vars(error)
        assert str(other) == str(error)


def test_type_checkers_are_told_that_there_are_types():
    assert files("durable_memory_client").joinpath("py.typed").is_file()
