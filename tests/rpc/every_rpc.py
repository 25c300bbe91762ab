"""A request for every RPC that names things by id, and what a namespace has that such ids may point at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from durablememory.v1 import (
    candidate_service_pb2,
    change_set_pb2,
    citation_pb2,
    memory_service_pb2,
    namespace_pb2,
    recall_service_pb2,
    repository_service_pb2,
    semantic_pb2,
    semantic_service_pb2,
    session_service_pb2,
    transfer_pb2,
    transfer_service_pb2,
)
from tests.rpc.messages import draft, manual, request_id, turn

CONTENT = "The user keeps the spare key under the third plant."
PROPOSED = "The user is allergic to peanuts."
_REQUIREMENT = semantic_pb2.INDEX_CONSISTENCY_INDEX_REVISION_CAS
QUERY = "spare key peanuts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What somebody who has seen a namespace could name of it."""

    active: citation_pb2.Citation
    candidate: citation_pb2.Citation
    session_id: str
    binding_digest: str
    run_id: str
    incarnation: str
    context_id: str
    apply_request_id: str
    export: tuple[transfer_pb2.ExportRecord, ...]


NOBODYS = Known(
    active=citation_pb2.Citation(node_id="nobody", node_revision=1, content_digest="0" * 64),
    candidate=citation_pb2.Citation(node_id="nobody", node_revision=1, content_digest="0" * 64),
    session_id="nobody",
    binding_digest="0" * 64,
    run_id="nobody",
    incarnation="nobody",
    context_id="0" * 64,
    apply_request_id="nobody",
    export=(),
)
"""What nobody could name, because it is nowhere."""


async def populate(stubs: Any, where: namespace_pb2.NamespaceRef) -> Known:
    """Put something of everything into a namespace."""

    def call(**fields: Any) -> dict[str, Any]:
        return {"namespace": where, "request_id": request_id(), **fields}

    remembered = await stubs.memories.Remember(
        memory_service_pb2.RememberRequest(**call(memory=draft(CONTENT), node_id="secret"))
    )
    proposals = [{"node_id": "rumour", "memory": draft(PROPOSED, evidence=[turn()])}]
    proposed = await stubs.candidates.ProposeCandidates(
        candidate_service_pb2.ProposeCandidatesRequest(**call(proposals=proposals))
    )
    applied = repository_service_pb2.ApplyChangeSetRequest(
        **call(operations=[{"create": {"node_id": "third", "memory": draft("A third thing.", evidence=[turn()])}}])
    )
    await stubs.repository.ApplyChangeSet(applied)
    opened = await stubs.sessions.OpenSession(
        session_service_pb2.OpenSessionRequest(**call(session_id="theirs", policy={"max_results": 7}))
    )
    begun = await stubs.sessions.BeginRun(
        session_service_pb2.BeginRunRequest(**call(session_id="theirs", run_id="turn-1", host_instance="host-1"))
    )
    await stubs.recall.RecordUse(
        recall_service_pb2.RecordUseRequest(
            **call(
                session_id="theirs",
                context_id=begun.run.context_id,
                items=[{"citation": remembered.citation, "event_id": "event-1"}],
            )
        )
    )
    info = await stubs.sessions.GetServerInfo(session_service_pb2.GetServerInfoRequest())
    if info.semantic_generations:
        refresh = semantic_service_pb2.RefreshSemanticRecallRequest(
            **call(session_id="theirs", requirement=_REQUIREMENT)
        )
        async for _ in stubs.semantic.RefreshSemanticRecall(refresh, timeout=60):
            pass
    stream = stubs.transfer.ExportNamespace(transfer_service_pb2.ExportNamespaceRequest(namespace=where), timeout=60)
    return Known(
        active=remembered.citation,
        candidate=proposed.results[0].citation,
        session_id="theirs",
        binding_digest=opened.session.binding_digest,
        run_id="turn-1",
        incarnation=begun.run.incarnation,
        context_id=begun.run.context_id,
        apply_request_id=applied.request_id,
        export=tuple([record async for message in stream for record in message.records]),
    )


def requests(where: namespace_pb2.NamespaceRef, known: Known) -> dict[str, Any]:
    """For every RPC but GetServerInfo, a request to `where` that names what is in `known`."""

    def call(**fields: Any) -> dict[str, Any]:
        return {"namespace": where, "request_id": request_id(), **fields}

    active = citation_pb2.NodeRevisionRef(node_id=known.active.node_id, revision=1)
    candidate = citation_pb2.NodeRevisionRef(node_id=known.candidate.node_id, revision=1)
    recall: dict[str, Any] = {"namespace": where, "session_id": known.session_id, "query": QUERY}
    correction = change_set_pb2.REVISION_KIND_CORRECTION
    operations = [{"corroborate": {"node_id": active.node_id, "expected_revision": 1, "evidence": [turn(5)]}}]
    return {
        "SessionService.OpenSession": session_service_pb2.OpenSessionRequest(**call(session_id=known.session_id)),
        "SessionService.ResumeSession": session_service_pb2.ResumeSessionRequest(
            namespace=where, session_id=known.session_id, binding_digest=known.binding_digest
        ),
        "SessionService.RebindSession": session_service_pb2.RebindSessionRequest(
            **call(session_id=known.session_id, expected_binding_digest=known.binding_digest)
        ),
        "SessionService.GetSession": session_service_pb2.GetSessionRequest(
            namespace=where, session_id=known.session_id
        ),
        "SessionService.ListSessions": session_service_pb2.ListSessionsRequest(namespace=where),
        "SessionService.CloseSession": session_service_pb2.CloseSessionRequest(**call(session_id=known.session_id)),
        "SessionService.BeginRun": session_service_pb2.BeginRunRequest(
            **call(session_id=known.session_id, run_id=known.run_id, host_instance="host-2")
        ),
        "SessionService.EndRun": session_service_pb2.EndRunRequest(
            **call(session_id=known.session_id, run_id=known.run_id, incarnation=known.incarnation)
        ),
        "RecallService.ActiveRecall": recall_service_pb2.ActiveRecallRequest(**recall),
        "RecallService.PreviewRecall": recall_service_pb2.PreviewRecallRequest(namespace=where, query=QUERY),
        "RecallService.ExplainRecall": recall_service_pb2.ExplainRecallRequest(**recall, node_id=active.node_id),
        "RecallService.AdmitMemories": recall_service_pb2.AdmitMemoriesRequest(
            **call(session_id=known.session_id, context_id=known.context_id, items=[{"node_revision": active}])
        ),
        "RecallService.RecordUse": recall_service_pb2.RecordUseRequest(
            **call(session_id=known.session_id, context_id=known.context_id, items=[{"citation": known.active}])
        ),
        "RecallService.GetUsageSummary": recall_service_pb2.GetUsageSummaryRequest(
            namespace=where, node_ids=[active.node_id]
        ),
        "CandidateService.ProposeCandidates": candidate_service_pb2.ProposeCandidatesRequest(
            **call(proposals=[{"node_id": "own-1", "memory": draft(PROPOSED, evidence=[turn()])}])
        ),
        "CandidateService.ListCandidates": candidate_service_pb2.ListCandidatesRequest(namespace=where),
        "CandidateService.ActivateCandidates": candidate_service_pb2.ActivateCandidatesRequest(
            **call(items=[candidate], decision=manual())
        ),
        "CandidateService.RejectCandidates": candidate_service_pb2.RejectCandidatesRequest(
            **call(items=[candidate], decision=manual())
        ),
        "MemoryService.Remember": memory_service_pb2.RememberRequest(**call(memory=draft(CONTENT), node_id="own-2")),
        "MemoryService.PutMemory": memory_service_pb2.PutMemoryRequest(
            **call(node_id=active.node_id, memory=draft(CONTENT))
        ),
        "MemoryService.ReviseMemory": memory_service_pb2.ReviseMemoryRequest(
            **call(citation=known.active, revision_kind=correction, content="Nothing.")
        ),
        "MemoryService.RetireMemory": memory_service_pb2.RetireMemoryRequest(**call(citation=known.active)),
        "MemoryService.ReactivateMemory": memory_service_pb2.ReactivateMemoryRequest(**call(citation=known.active)),
        "MemoryService.SupersedeMemory": memory_service_pb2.SupersedeMemoryRequest(
            **call(citation=known.active, memory=draft("Nothing."))
        ),
        "MemoryService.GetMemory": memory_service_pb2.GetMemoryRequest(namespace=where, citation=known.active),
        "RepositoryService.ApplyChangeSet": repository_service_pb2.ApplyChangeSetRequest(**call(operations=operations)),
        "RepositoryService.GetNode": repository_service_pb2.GetNodeRequest(namespace=where, node_id=active.node_id),
        "RepositoryService.BatchGetNodes": repository_service_pb2.BatchGetNodesRequest(
            namespace=where, node_ids=[active.node_id, candidate.node_id]
        ),
        "RepositoryService.ListNodes": repository_service_pb2.ListNodesRequest(namespace=where),
        "RepositoryService.ListRevisions": repository_service_pb2.ListRevisionsRequest(
            namespace=where, node_id=active.node_id
        ),
        "RepositoryService.GetRevision": repository_service_pb2.GetRevisionRequest(
            namespace=where, citation=known.active
        ),
        "RepositoryService.ListChangeSets": repository_service_pb2.ListChangeSetsRequest(namespace=where),
        "RepositoryService.GetChangeSet": repository_service_pb2.GetChangeSetRequest(
            namespace=where, key={"idempotency_key": known.apply_request_id}
        ),
        "RepositoryService.Snapshot": repository_service_pb2.SnapshotRequest(namespace=where),
        "RepositoryService.GetChangeToken": repository_service_pb2.GetChangeTokenRequest(namespace=where),
        "RepositoryService.WatchNamespace": repository_service_pb2.WatchNamespaceRequest(
            namespace=where, after_namespace_revision=0, include_nodes=True
        ),
        "SemanticService.RefreshSemanticRecall": semantic_service_pb2.RefreshSemanticRecallRequest(
            **call(session_id=known.session_id, requirement=_REQUIREMENT)
        ),
        "SemanticService.GetIndexStatus": semantic_service_pb2.GetIndexStatusRequest(namespace=where),
        "SemanticService.ListReceipts": semantic_service_pb2.ListReceiptsRequest(namespace=where),
        "SemanticService.ClearPartition": semantic_service_pb2.ClearPartitionRequest(**call()),
        "SemanticService.SetSchedule": semantic_service_pb2.SetScheduleRequest(**call()),
        "SemanticService.GetMaintenanceHealth": semantic_service_pb2.GetMaintenanceHealthRequest(namespace=where),
        "TransferService.ExportNamespace": transfer_service_pb2.ExportNamespaceRequest(namespace=where),
        "TransferService.ImportNamespace": transfer_service_pb2.ImportNamespaceRequest(**call(records=known.export)),
    }
