"""Which roles each RPC asks for: the one table, which a test compares with reflection and with the proto's words.

What an RPC does may ask for more than its row says: a change set that activates, that revises an ACTIVE memory, or that
ends one for good needs the activator role too, which staging finds out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from durable_memory.domain.caller import Role

_ANYBODY: Final[tuple[Role, ...]] = ()
_READ: Final = (Role.READER,)
_WRITE: Final = (Role.WRITER,)
_DECIDE: Final = (Role.ACTIVATOR,)
_WRITE_AND_DECIDE: Final = (Role.WRITER, Role.ACTIVATOR)
_OPERATE: Final = (Role.OPERATOR,)
_ADMINISTER: Final = (Role.ADMINISTRATOR,)

ROLES: Final[Mapping[str, tuple[Role, ...]]] = MappingProxyType(
    {
        "SessionService.OpenSession": _READ,
        "SessionService.ResumeSession": _READ,
        "SessionService.RebindSession": _READ,
        "SessionService.GetSession": _READ,
        "SessionService.ListSessions": _READ,
        "SessionService.CloseSession": _READ,
        "SessionService.BeginRun": _READ,
        "SessionService.EndRun": _READ,
        "SessionService.GetServerInfo": _ANYBODY,
        "RecallService.ActiveRecall": _READ,
        "RecallService.PreviewRecall": _READ,
        "RecallService.ExplainRecall": _READ,
        "RecallService.AdmitMemories": _READ,
        "RecallService.RecordUse": _READ,
        "RecallService.GetUsageSummary": _READ,
        "CandidateService.ProposeCandidates": _WRITE,
        "CandidateService.ListCandidates": _READ,
        "CandidateService.ActivateCandidates": _DECIDE,
        "CandidateService.RejectCandidates": _DECIDE,
        "MemoryService.Remember": _WRITE_AND_DECIDE,
        "MemoryService.PutMemory": _WRITE_AND_DECIDE,
        "MemoryService.ReviseMemory": _WRITE,
        "MemoryService.RetireMemory": _WRITE,
        "MemoryService.ReactivateMemory": _WRITE_AND_DECIDE,
        "MemoryService.SupersedeMemory": _WRITE_AND_DECIDE,
        "MemoryService.GetMemory": _READ,
        "RepositoryService.ApplyChangeSet": _WRITE,
        "RepositoryService.GetNode": _READ,
        "RepositoryService.BatchGetNodes": _READ,
        "RepositoryService.ListNodes": _READ,
        "RepositoryService.ListRevisions": _READ,
        "RepositoryService.GetRevision": _READ,
        "RepositoryService.ListChangeSets": _READ,
        "RepositoryService.GetChangeSet": _READ,
        "RepositoryService.Snapshot": _READ,
        "RepositoryService.GetChangeToken": _READ,
        "RepositoryService.WatchNamespace": _READ,
        "SemanticService.RefreshSemanticRecall": _WRITE,
        "SemanticService.GetIndexStatus": _READ,
        "SemanticService.ListReceipts": _READ,
        "SemanticService.ClearPartition": _OPERATE,
        "SemanticService.SetSchedule": _OPERATE,
        "SemanticService.GetMaintenanceHealth": _READ,
        "TransferService.ExportNamespace": _OPERATE,
        "TransferService.ImportNamespace": _ADMINISTER,
    }
)
"""By `Service.Method`; a caller needs every role of the row."""
