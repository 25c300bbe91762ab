/**
 * Durable Memory for Node: the memory of record for AI agents.
 *
 *     await using memory = new MemoryClient({ tenant: "acme", principal: "user-1", scope: "project-a" });
 *     const session = await memory.openSession("assistant", { maxResults: 5 });
 *     await using run = await session.beginRun("turn-17");
 *     const recall = await run.recall("what does the user drink?", { admit: true });
 *
 * @module
 */
export type { CallOptions, OnUnavailable, WriteOptions } from "./calls.js";
export { MemoryClient, type MemoryClientOptions } from "./client.js";
export type { TlsOptions, Token } from "./connection.js";
export * from "./errors.js";
export * from "./generated/enums.js";
export { Reason } from "./generated/reasons.js";
export type * from "./namespace/candidate_calls.js";
export type * from "./namespace/memory_calls.js";
export { MemoryNamespace } from "./namespace/memory_namespace.js";
export type * from "./namespace/recall_calls.js";
export type * from "./namespace/repository_calls.js";
export type * from "./namespace/semantic_calls.js";
export type * from "./namespace/session_calls.js";
export { Pages, type Page, type PageOptions } from "./paging.js";
export { Refresh } from "./refresh.js";
export { cited, render, Rendering, type RenderOptions } from "./rendering.js";
export { MemoryRun, type AdmitOptions, type RunRecallOptions } from "./run.js";
export { MemorySession, type ExplainOptions, type RebindOptions, type SessionRecallOptions } from "./session.js";
export { admitAll, recallAll, recordUseAll, type RecallAllOptions, type SeveralOptions } from "./several.js";
export { Snapshot, type SnapshotSummary } from "./snapshot.js";
export type { Admission, AdmissionOutcome, UsageSummary, UseOutcome } from "./values/access.js";
export {
  relate,
  unrelate,
  type Activate,
  type AddRelation,
  type ChangeSet,
  type Corroborate,
  type Create,
  type NodeChange,
  type Operation,
  type RelationEnd,
  type RemoveRelation,
  type Revise,
  type RevisionFields,
  type SetStatus,
  type WatchedChange,
} from "./values/change_set.js";
export { Citation, type Citable, type Cited, type NodeRevision } from "./values/citation.js";
export { Decision, Evidence, type DecisionFields } from "./values/evidence.js";
export type { CitedMemory, Draft, DraftFields, MemoryNode, Relation } from "./values/memory.js";
export type { ChangeToken, Namespace, Revision } from "./values/namespace.js";
export {
  MergedRecall,
  Recall,
  type BranchScore,
  type Degradation,
  type Explanation,
  type Hit,
  type HitRelation,
  type RecallFields,
  type RecallFilter,
  type SemanticSearch,
  type TermExplanation,
} from "./values/recall.js";
export {
  Decided,
  type Activated,
  type Proposed,
  type Put,
  type Reactivated,
  type Rejected,
  type Remembered,
  type Retired,
  type Revised,
  type Superseded,
  type Written,
} from "./values/results.js";
export type {
  IndexStatus,
  MaintenanceHealth,
  MaintenanceRun,
  PublishedIndex,
  RefreshProgress,
  RefreshReceipt,
  RefreshSchedule,
  RefreshWork,
} from "./values/semantic.js";
export type {
  Policy,
  Run,
  SemanticGeneration,
  SemanticPolicy,
  ServerInfo,
  ServerLimits,
  Session,
  SessionBinding,
} from "./values/session.js";
export type { Imported } from "./values/transfer.js";
export { VERSION } from "./version.js";
export { Watch, type WatchOptions } from "./watch.js";
