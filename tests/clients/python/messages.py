"""Answers of the service that tests of the client need, as short as they may be."""

from google.protobuf.timestamp_pb2 import Timestamp

from durable_memory_client import Citation, Hit, Namespace
from durablememory.v1 import (
    access_pb2,
    change_set_pb2,
    change_token_pb2,
    citation_pb2,
    memory_service_pb2,
    namespace_pb2,
    node_pb2,
    recall_pb2,
    recall_service_pb2,
    repository_service_pb2,
    semantic_pb2,
    semantic_service_pb2,
    session_pb2,
    session_service_pb2,
)

Refreshing = semantic_service_pb2.RefreshSemanticRecallResponse

NAMESPACE = Namespace("acme", "user-1", "project-a")
HISTORY = "history-1"
DIGEST = "9f" * 32
NOW = Timestamp(seconds=1_900_000_000)


def token(revision: int, history_id: str = HISTORY) -> change_token_pb2.ChangeToken:
    return change_token_pb2.ChangeToken(history_id=history_id, namespace_revision=revision)


def citation(node_id: str = "prefers-tea", revision: int = 1, namespace_revision: int = 1) -> citation_pb2.Citation:
    return Citation(namespace_revision, node_id, revision, DIGEST).to_proto()


def node(node_id: str = "prefers-tea", content: str = "The user prefers tea.") -> node_pb2.Node:
    return node_pb2.Node(
        id=node_id,
        revision=1,
        kind=node_pb2.NODE_KIND_SEMANTIC,
        status=node_pb2.NODE_STATUS_ACTIVE,
        content=content,
        created_at=NOW,
        updated_at=NOW,
        committed_at=NOW,
        citation=citation(node_id),
    )


def remembered() -> memory_service_pb2.RememberResponse:
    return memory_service_pb2.RememberResponse(citation=citation(), change_token=token(1))


def opened(session_id: str = "assistant", namespace: Namespace = NAMESPACE) -> session_service_pb2.OpenSessionResponse:
    return session_service_pb2.OpenSessionResponse(
        outcome=session_service_pb2.OPEN_SESSION_OUTCOME_OPENED,
        session=session_pb2.Session(
            session_id=session_id,
            binding=session_pb2.SessionBinding(schema_version=1, namespace=namespace.to_proto(), max_results=5),
            binding_digest=DIGEST,
            state=session_pb2.SESSION_STATE_OPEN,
            binding_version=1,
            opened_at=NOW,
        ),
    )


def begun(run_id: str = "turn-17", context_id: str = "context-0") -> session_service_pb2.BeginRunResponse:
    return session_service_pb2.BeginRunResponse(
        outcome=session_service_pb2.BEGIN_RUN_OUTCOME_BEGUN,
        run=session_pb2.Run(
            session_id="assistant",
            run_id=run_id,
            incarnation="incarnation-1",
            state=session_pb2.RUN_STATE_OPEN,
            opened_at=NOW,
            active_at=NOW,
            context_id=context_id,
        ),
    )


def hit(node_id: str = "prefers-tea", rank: int = 1, content: str = "The user prefers tea.") -> recall_pb2.RecallHit:
    return recall_pb2.RecallHit(
        citation=citation(node_id),
        rank=rank,
        channel=recall_pb2.RECALL_CHANNEL_LEXICAL,
        trust=recall_pb2.TRUST_UNTRUSTED_HISTORY,
        kind=node_pb2.NODE_KIND_SEMANTIC,
        content=content,
        occurred_at=NOW,
        created_at=NOW,
        updated_at=NOW,
    )


def hit_value(
    content: str = "The user prefers tea.", node_id: str = "prefers-tea", namespace: Namespace = NAMESPACE
) -> Hit:
    return Hit.from_proto(hit(node_id, content=content), namespace)


def recalled(*hits: recall_pb2.RecallHit) -> recall_service_pb2.ActiveRecallResponse:
    return recall_service_pb2.ActiveRecallResponse(
        change_token=token(1),
        result=recall_pb2.RecallResult(hits=hits, mode_used=recall_pb2.RECALL_MODE_LEXICAL),
    )


def admitted(node_id: str = "prefers-tea", revision: int = 1) -> access_pb2.AdmissionOutcome:
    return access_pb2.AdmissionOutcome(
        node_revision=citation_pb2.NodeRevisionRef(node_id=node_id, revision=revision),
        verdict=access_pb2.ADMISSION_VERDICT_ADMITTED,
        citation=citation(node_id, revision),
        event_id=f"admission-of-{node_id}",
    )


def recorded(node_id: str = "prefers-tea") -> access_pb2.UseOutcome:
    return access_pb2.UseOutcome(
        verdict=access_pb2.USE_VERDICT_RECORDED, citation=citation(node_id), event_id=f"use-of-{node_id}"
    )


def change(revision: int, history_id: str = HISTORY) -> repository_service_pb2.WatchNamespaceResponse:
    return repository_service_pb2.WatchNamespaceResponse(
        change=repository_service_pb2.WatchedChange(
            change_token=token(revision, history_id),
            change_set=change_set_pb2.ChangeSet(
                namespace=namespace_pb2.NamespaceRef(),
                namespace_revision=revision,
                method="Remember",
                occurred_at=NOW,
                committed_at=NOW,
            ),
        )
    )


def heartbeat(revision: int, history_id: str = HISTORY) -> repository_service_pb2.WatchNamespaceResponse:
    return repository_service_pb2.WatchNamespaceResponse(
        heartbeat=repository_service_pb2.WatchHeartbeat(change_token=token(revision, history_id))
    )


def receipt(index_revision: int = 1) -> semantic_pb2.RefreshReceipt:
    return semantic_pb2.RefreshReceipt(
        authority_digest=DIGEST,
        fence=index_revision,
        index_revision=index_revision,
        index_history_digest=DIGEST,
        source=token(7),
        active_count=3,
        indexed_count=3,
        consistency=semantic_pb2.INDEX_CONSISTENCY_INDEX_REVISION_CAS,
        written_at=NOW,
    )


def progressed(phase: semantic_pb2.RefreshPhase, done: int = 0, total: int = 0) -> Refreshing:
    return Refreshing(progress=semantic_pb2.RefreshProgress(phase=phase, done=done, total=total))


def refreshed(index_revision: int = 1) -> list[Refreshing]:
    return [
        progressed(semantic_pb2.REFRESH_PHASE_EMBEDDING, 1, 3),
        progressed(semantic_pb2.REFRESH_PHASE_PUBLISHED),
        Refreshing(receipt=receipt(index_revision)),
    ]
