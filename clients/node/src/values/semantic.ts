/** How the vector index of a namespace stands, and what its refreshes did. */
import { create } from "@bufbuild/protobuf";
import {
  IndexStatusSchema,
  RefreshReceiptSchema,
  RefreshWorkSchema,
  type IndexStatus as IndexStatusMessage,
  type MaintenanceRun as MaintenanceRunMessage,
  type PublishedIndex as PublishedIndexMessage,
  type RefreshProgress as RefreshProgressMessage,
  type RefreshReceipt as RefreshReceiptMessage,
  type RefreshSchedule as RefreshScheduleMessage,
  type RefreshWork as RefreshWorkMessage,
} from "../gen/durablememory/v1/semantic_pb.js";
import type { GetMaintenanceHealthResponse } from "../gen/durablememory/v1/semantic_service_pb.js";
import {
  indexConsistency,
  indexState,
  maintenancePhase,
  maintenanceRunOutcome,
  refreshPhase,
} from "../generated/enum_codecs.js";
import type {
  IndexConsistency,
  IndexState,
  MaintenancePhase,
  MaintenanceRunOutcome,
  RefreshPhase,
} from "../generated/enums.js";
import { toChangeToken, type ChangeToken } from "./namespace.js";
import { toSemanticGeneration, type SemanticGeneration } from "./session.js";
import { toDate, toDateIf, toMs, toMsIf } from "./times.js";

/** What a refresh has reached: `done` of `total` texts have their vectors, as far as it knows. */
export interface RefreshProgress {
  readonly phase: RefreshPhase;
  readonly done: number;
  readonly total: number;
}

/** What one refresh did. `providerCalls` is 0 when every vector was cached; `refused` texts have none. */
export interface RefreshWork {
  readonly added: number;
  readonly replaced: number;
  readonly removed: number;
  readonly cacheHits: number;
  readonly providerCalls: number;
  readonly providerInputs: number;
  readonly providerBytes: number;
  readonly stagedBytes: number;
  readonly durationMs: number;
  readonly refused: number;
}

/** The record of one refresh: what the index covers since then. `indexRevision` 0: nothing is published. */
export interface RefreshReceipt {
  readonly authorityDigest: string;
  readonly fence: bigint;
  readonly indexRevision: bigint;
  readonly indexHistoryDigest: string;
  readonly source: ChangeToken;
  readonly activeCount: number;
  readonly indexedCount: number;
  readonly consistency: IndexConsistency;
  readonly work: RefreshWork;
  readonly completedBySuccessor: boolean;
  readonly writtenAt: Date;
}

/** When an index is refreshed by itself, in milliseconds; undefined is off. */
export interface RefreshSchedule {
  readonly intervalMs: number | undefined;
  readonly onChangeDelayMs: number | undefined;
  readonly setBy: string;
  readonly setAt: Date;
}

/** A published index. `deadCount` vectors are stored and no longer count; `storedBytes` includes them. */
export interface PublishedIndex {
  readonly indexRevision: bigint;
  readonly indexHistoryDigest: string;
  readonly fence: bigint;
  readonly source: ChangeToken;
  readonly liveCount: number;
  readonly deadCount: number;
  readonly storedBytes: number;
  readonly segmentCount: number;
  readonly floatBits: number;
}

/** How the index of a namespace stands. */
export interface IndexStatus {
  readonly changeToken: ChangeToken;
  readonly generation: SemanticGeneration;
  readonly state: IndexState;
  readonly published: PublishedIndex | undefined;
  readonly lastReceipt: RefreshReceipt | undefined;
  /** ACTIVE memories that are found by words only, as of `changeToken`. */
  readonly unindexedActiveCount: number;
  /** Those of the last receipt's that are, because the provider refuses to embed them. */
  readonly refusedCount: number;
  /** Why the latest run failed; empty if it did not, or a refresh has come through since. */
  readonly lastFailure: string;
  /** Undefined where the server's default holds. */
  readonly schedule: RefreshSchedule | undefined;
}

/** A refresh that was run by schedule, or that failed. `error` names the reason and its cause, without content. */
export interface MaintenanceRun {
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly outcome: MaintenanceRunOutcome;
  readonly error: string;
  readonly indexRevision: bigint;
  /** That of its lease, 0 if it ended before it had one. */
  readonly fence: bigint;
}

/**
 * The namespace's last receipt and runs, newest first, whoever ran them; and how the answering process is doing.
 *
 * What is of the process, `phase` to `lastErrorAt`, is told to operators, and undefined for everybody else.
 */
export interface MaintenanceHealth {
  readonly phase: MaintenancePhase | undefined;
  readonly workerCount: number | undefined;
  readonly runningCount: number | undefined;
  readonly runCount: number | undefined;
  readonly failureCount: number | undefined;
  readonly lastError: string | undefined;
  readonly lastErrorAt: Date | undefined;
  readonly lastReceipt: RefreshReceipt | undefined;
  readonly runs: readonly MaintenanceRun[];
}

export function toRefreshProgress(message: RefreshProgressMessage): RefreshProgress {
  return { phase: refreshPhase.name(message.phase), done: Number(message.done), total: Number(message.total) };
}

export function toRefreshReceipt(given: RefreshReceiptMessage | undefined): RefreshReceipt {
  const message = given ?? create(RefreshReceiptSchema);
  return {
    authorityDigest: message.authorityDigest,
    fence: message.fence,
    indexRevision: message.indexRevision,
    indexHistoryDigest: message.indexHistoryDigest,
    source: toChangeToken(message.source),
    activeCount: Number(message.activeCount),
    indexedCount: Number(message.indexedCount),
    consistency: indexConsistency.name(message.consistency),
    work: toRefreshWork(message.work ?? create(RefreshWorkSchema)),
    completedBySuccessor: message.completedBySuccessor,
    writtenAt: toDate(message.writtenAt),
  };
}

export function toRefreshSchedule(message: RefreshScheduleMessage | undefined): RefreshSchedule {
  return {
    intervalMs: toMsIf(message?.interval),
    onChangeDelayMs: toMsIf(message?.onChangeDelay),
    setBy: message?.setBy ?? "",
    setAt: toDate(message?.setAt),
  };
}

export function toIndexStatus(given: IndexStatusMessage | undefined): IndexStatus {
  const message = given ?? create(IndexStatusSchema);
  return {
    changeToken: toChangeToken(message.changeToken),
    generation: toSemanticGeneration(message.generation),
    state: indexState.name(message.state),
    published: message.published === undefined ? undefined : toPublishedIndex(message.published),
    lastReceipt: message.lastReceipt === undefined ? undefined : toRefreshReceipt(message.lastReceipt),
    unindexedActiveCount: Number(message.unindexedActiveCount),
    refusedCount: Number(message.refusedCount),
    lastFailure: message.lastFailure,
    schedule: message.schedule === undefined ? undefined : toRefreshSchedule(message.schedule),
  };
}

export function toMaintenanceHealth(message: GetMaintenanceHealthResponse): MaintenanceHealth {
  const { health } = message;
  return {
    phase: health === undefined ? undefined : maintenancePhase.name(health.phase),
    workerCount: health?.workerCount,
    runningCount: health?.runningCount,
    runCount: health === undefined ? undefined : Number(health.runCount),
    failureCount: health === undefined ? undefined : Number(health.failureCount),
    lastError: health?.lastError,
    lastErrorAt: toDateIf(health?.lastErrorAt),
    lastReceipt: message.lastReceipt === undefined ? undefined : toRefreshReceipt(message.lastReceipt),
    runs: message.runs.map(toMaintenanceRun),
  };
}

function toRefreshWork(message: RefreshWorkMessage): RefreshWork {
  return {
    added: Number(message.added),
    replaced: Number(message.replaced),
    removed: Number(message.removed),
    cacheHits: Number(message.cacheHits),
    providerCalls: Number(message.providerCalls),
    providerInputs: Number(message.providerInputs),
    providerBytes: Number(message.providerBytes),
    stagedBytes: Number(message.stagedBytes),
    durationMs: toMs(message.duration),
    refused: Number(message.refused),
  };
}

function toPublishedIndex(message: PublishedIndexMessage): PublishedIndex {
  return {
    indexRevision: message.indexRevision,
    indexHistoryDigest: message.indexHistoryDigest,
    fence: message.fence,
    source: toChangeToken(message.source),
    liveCount: Number(message.liveCount),
    deadCount: Number(message.deadCount),
    storedBytes: Number(message.storedBytes),
    segmentCount: message.segmentCount,
    floatBits: message.floatBits,
  };
}

function toMaintenanceRun(message: MaintenanceRunMessage): MaintenanceRun {
  return {
    startedAt: toDate(message.startedAt),
    endedAt: toDate(message.endedAt),
    outcome: maintenanceRunOutcome.name(message.outcome),
    error: message.error,
    indexRevision: message.indexRevision,
    fence: message.fence,
  };
}
