"""Durable Memory for Python: the memory of record for AI agents.

    async with MemoryClient(tenant="acme", principal="user-1", scope="project-a") as memory:
        session = await memory.open_session("assistant", max_results=5)
        async with session.run("turn-17") as run:
            recall = await run.recall("what does the user drink?", admit=True)

`durable_memory_client.sync` is the same without `await`.
"""

from __future__ import annotations

from durable_memory_client.aio.calls import (
    OnUnavailable,
)
from durable_memory_client.aio.client import (
    MemoryClient,
)
from durable_memory_client.aio.namespace import (
    MemoryNamespace,
)
from durable_memory_client.aio.paging import (
    Page,
    Pages,
)
from durable_memory_client.aio.refresh import (
    Refresh,
)
from durable_memory_client.aio.run import (
    MemoryRun,
)
from durable_memory_client.aio.session import (
    MemorySession,
)
from durable_memory_client.aio.several import (
    admit_all,
    recall_all,
    record_use_all,
)
from durable_memory_client.aio.snapshot import (
    Snapshot,
)
from durable_memory_client.aio.watch import (
    Watch,
)
from durable_memory_client.connection import (
    VERSION,
    Tls,
)
from durable_memory_client.errors import (
    DurableMemoryError,
    IncompleteStreamError,
    MemoryServiceError,
    MemoryUnavailableError,
    Reason,
)
from durable_memory_client.rendering import (
    Rendering,
    cited,
    render,
)
from durable_memory_client.values.access import (
    Admission,
    AdmissionOutcome,
    UsageSummary,
    UseOutcome,
)
from durable_memory_client.values.change_set import (
    Activate,
    AddRelation,
    ChangeSet,
    Corroborate,
    Create,
    NodeChange,
    Operation,
    RemoveRelation,
    Revise,
    SetStatus,
    WatchedChange,
    relate,
    unrelate,
)
from durable_memory_client.values.citation import (
    Citable,
    Citation,
    NodeRevision,
)
from durable_memory_client.values.enums import (
    ActivationOutcome,
    AdmissionVerdict,
    BeginRunOutcome,
    DecisionKind,
    DegradationReason,
    EvidenceKind,
    IndexConsistency,
    IndexState,
    MaintenancePhase,
    MaintenanceRunOutcome,
    NodeKind,
    NodeStatus,
    OpenSessionOutcome,
    OperationKind,
    ProposalOutcome,
    PutMemoryOutcome,
    ReactivateMemoryOutcome,
    RecallChannel,
    RecallExclusion,
    RecallMode,
    RefreshPhase,
    RejectionOutcome,
    RelationKind,
    RememberOutcome,
    RevisionKind,
    RunState,
    SessionState,
    Trust,
    UseVerdict,
    VectorMetric,
    VectorNormalization,
    VectorState,
)
from durable_memory_client.values.evidence import (
    Decision,
    Evidence,
)
from durable_memory_client.values.memory import (
    CitedMemory,
    Draft,
    Node,
    Relation,
)
from durable_memory_client.values.namespace import (
    ChangeToken,
    Namespace,
)
from durable_memory_client.values.recall import (
    BranchScore,
    Degradation,
    Explanation,
    Hit,
    HitRelation,
    MergedRecall,
    Recall,
    RecallFilter,
    SemanticSearch,
    TermExplanation,
)
from durable_memory_client.values.results import (
    Activated,
    Proposed,
    Put,
    Reactivated,
    Rejected,
    Remembered,
    Retired,
    Revised,
    Superseded,
)
from durable_memory_client.values.semantic import (
    IndexStatus,
    MaintenanceHealth,
    MaintenanceRun,
    PublishedIndex,
    RefreshProgress,
    RefreshReceipt,
    RefreshSchedule,
    RefreshWork,
)
from durable_memory_client.values.session import (
    PolicyFields,
    Run,
    SemanticGeneration,
    SemanticPolicy,
    ServerInfo,
    Session,
    SessionBinding,
)
from durable_memory_client.values.transfer import (
    Imported,
)

__version__ = VERSION

__all__ = [
    "Activate",
    "Activated",
    "ActivationOutcome",
    "AddRelation",
    "Admission",
    "AdmissionOutcome",
    "AdmissionVerdict",
    "BeginRunOutcome",
    "BranchScore",
    "ChangeSet",
    "ChangeToken",
    "Citable",
    "Citation",
    "CitedMemory",
    "Corroborate",
    "Create",
    "Decision",
    "DecisionKind",
    "Degradation",
    "DegradationReason",
    "Draft",
    "DurableMemoryError",
    "Evidence",
    "EvidenceKind",
    "Explanation",
    "Hit",
    "HitRelation",
    "Imported",
    "IncompleteStreamError",
    "IndexConsistency",
    "IndexState",
    "IndexStatus",
    "MaintenanceHealth",
    "MaintenancePhase",
    "MaintenanceRun",
    "MaintenanceRunOutcome",
    "MemoryClient",
    "MemoryNamespace",
    "MemoryRun",
    "MemoryServiceError",
    "MemorySession",
    "MemoryUnavailableError",
    "MergedRecall",
    "Namespace",
    "Node",
    "NodeChange",
    "NodeKind",
    "NodeRevision",
    "NodeStatus",
    "OnUnavailable",
    "OpenSessionOutcome",
    "Operation",
    "OperationKind",
    "Page",
    "Pages",
    "PolicyFields",
    "ProposalOutcome",
    "Proposed",
    "PublishedIndex",
    "Put",
    "PutMemoryOutcome",
    "ReactivateMemoryOutcome",
    "Reactivated",
    "Reason",
    "Recall",
    "RecallChannel",
    "RecallExclusion",
    "RecallFilter",
    "RecallMode",
    "Refresh",
    "RefreshPhase",
    "RefreshProgress",
    "RefreshReceipt",
    "RefreshSchedule",
    "RefreshWork",
    "Rejected",
    "RejectionOutcome",
    "Relation",
    "RelationKind",
    "RememberOutcome",
    "Remembered",
    "RemoveRelation",
    "Rendering",
    "Retired",
    "Revise",
    "Revised",
    "RevisionKind",
    "Run",
    "RunState",
    "SemanticGeneration",
    "SemanticPolicy",
    "SemanticSearch",
    "ServerInfo",
    "Session",
    "SessionBinding",
    "SessionState",
    "SetStatus",
    "Snapshot",
    "Superseded",
    "TermExplanation",
    "Tls",
    "Trust",
    "UsageSummary",
    "UseOutcome",
    "UseVerdict",
    "VectorMetric",
    "VectorNormalization",
    "VectorState",
    "Watch",
    "WatchedChange",
    "__version__",
    "admit_all",
    "cited",
    "recall_all",
    "record_use_all",
    "relate",
    "render",
    "unrelate",
]
