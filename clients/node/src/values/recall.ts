/** Recalls: what to look for, and what was found. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { MemoryUnavailableError } from "../errors.js";
import {
  RecallExplanationSchema,
  RecallResultSchema,
  type BranchScore as BranchScoreMessage,
  type Degradation as DegradationMessage,
  type RecallFilterSchema,
  type RecallHit,
  type SemanticSearch as SemanticSearchMessage,
  type TimeRangeSchema,
} from "../gen/durablememory/v1/recall_pb.js";
import type {
  ActiveRecallResponse,
  ExplainRecallResponse,
  PreviewRecallResponse,
} from "../gen/durablememory/v1/recall_service_pb.js";
import {
  degradationReason,
  nodeKind,
  nodeStatus,
  recallChannel,
  recallExclusion,
  recallMode,
  relationKind,
  trust,
  vectorState,
} from "../generated/enum_codecs.js";
import type {
  DegradationReason,
  NodeKind,
  NodeStatus,
  RecallChannel,
  RecallExclusion,
  RecallMode,
  RelationKind,
  Trust,
  VectorState,
} from "../generated/enums.js";
import type { AdmissionOutcome } from "./access.js";
import { toCitation, type Citation } from "./citation.js";
import { texts } from "./memory.js";
import { toChangeToken, type ChangeToken, type Namespace } from "./namespace.js";
import { toDate, toDateIf, toMs, toTimestamp } from "./times.js";

/** Narrows a recall; all parts must hold. Ranges of time include their start and not their end. */
export interface RecallFilter {
  readonly kinds?: readonly NodeKind[] | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly occurredFrom?: Date | undefined;
  readonly occurredUntil?: Date | undefined;
  readonly updatedFrom?: Date | undefined;
  readonly updatedUntil?: Date | undefined;
  readonly excludedNodeIds?: readonly string[] | undefined;
}

/** What every recall may state. */
export interface RecallFields {
  readonly filter?: RecallFilter | undefined;
  /** Default: the session's. */
  readonly mode?: RecallMode | undefined;
  readonly includeSurroundings?: boolean | undefined;
}

/** A place (from 1) and score in one branch of a recall. */
export interface BranchScore {
  readonly rank: number;
  readonly score: number;
}

/** A relation of a hit, and the status of its other end. */
export interface HitRelation {
  readonly kind: RelationKind;
  readonly nodeId: string;
  readonly status: NodeStatus;
}

/** One memory that was found, and in which namespace. History, not instruction: `render` before a model sees it. */
export interface Hit {
  readonly namespace: Namespace;
  readonly citation: Citation;
  readonly nodeId: string;
  readonly rank: number;
  /** Comparable within one recall only. */
  readonly score: number;
  readonly channel: RecallChannel;
  readonly lexical: BranchScore | undefined;
  readonly semantic: BranchScore | undefined;
  readonly relatedTo: string | undefined;
  readonly trust: Trust;
  readonly kind: NodeKind;
  readonly content: string;
  readonly surroundings: readonly string[];
  readonly author: string;
  readonly occurredAt: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly confidence: number;
  readonly importance: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly relations: readonly HitRelation[];
  /** Another ACTIVE memory says otherwise. */
  readonly disputed: boolean;
  /** Milliseconds since `updatedAt`, at the time of the answer. */
  readonly ageMs: number;
}

/** That and why AUTO searched by words only. */
export interface Degradation {
  readonly reason: DegradationReason;
  readonly message: string;
}

/** What the semantic branch searched, and how current that was. */
export interface SemanticSearch {
  readonly indexRevision: bigint;
  readonly indexHistoryDigest: string;
  readonly vectorsSearched: number;
  readonly candidatesDropped: number;
  readonly candidatesRefilled: number;
  readonly unindexedActiveCount: number;
}

interface RecallParts {
  readonly namespace: Namespace;
  readonly hits?: readonly Hit[];
  readonly changeToken?: ChangeToken | undefined;
  readonly modeUsed?: RecallMode | undefined;
  readonly degradation?: Degradation | undefined;
  readonly searchedNodeCount?: number;
  readonly semantic?: SemanticSearch | undefined;
  readonly admissions?: readonly AdmissionOutcome[] | undefined;
  readonly contextId?: string | undefined;
  readonly error?: MemoryUnavailableError | undefined;
}

/** What a recall found: iterate it for the hits, best first. Empty is normal. */
export class Recall implements Iterable<Hit> {
  readonly namespace: Namespace;
  readonly hits: readonly Hit[];
  /** What the answer is for; undefined if nothing was searched. */
  readonly changeToken: ChangeToken | undefined;
  /** Undefined if nothing was searched. */
  readonly modeUsed: RecallMode | undefined;
  readonly degradation: Degradation | undefined;
  readonly searchedNodeCount: number;
  readonly semantic: SemanticSearch | undefined;
  /** With `admit`: an outcome for each memory that was found, refused ones included; those are not among the hits. */
  readonly admissions: readonly AdmissionOutcome[];
  /** With `admit`: the assembly that the hits were admitted to. */
  readonly contextId: string | undefined;
  /** Why nothing was searched, where the caller chose an empty recall over an error. */
  readonly error: MemoryUnavailableError | undefined;

  constructor(parts: RecallParts) {
    this.namespace = parts.namespace;
    this.hits = parts.hits ?? [];
    this.changeToken = parts.changeToken;
    this.modeUsed = parts.modeUsed;
    this.degradation = parts.degradation;
    this.searchedNodeCount = parts.searchedNodeCount ?? 0;
    this.semantic = parts.semantic;
    this.admissions = parts.admissions ?? [];
    this.contextId = parts.contextId;
    this.error = parts.error;
  }

  /** Nothing was searched, because the service could not answer and the caller chose an empty recall. */
  get unavailable(): boolean {
    return this.error !== undefined;
  }

  [Symbol.iterator](): Iterator<Hit> {
    return this.hits[Symbol.iterator]();
  }
}

/**
 * Recalls of several namespaces as one sequence of hits; `hit.namespace` says where each comes from.
 *
 * Scores of different namespaces cannot be compared, so hits come by their rank, the namespaces in the order of the
 * call taking turns. `parts` has the recall of each, in that order.
 */
export class MergedRecall implements Iterable<Hit> {
  readonly hits: readonly Hit[];
  readonly parts: readonly Recall[];

  constructor(hits: readonly Hit[], parts: readonly Recall[]) {
    this.hits = hits;
    this.parts = parts;
  }

  /** Whether any namespace could not be searched; `errors` says why. */
  get unavailable(): boolean {
    return this.errors.length > 0;
  }

  get errors(): readonly MemoryUnavailableError[] {
    return this.parts.flatMap((part) => part.error ?? []);
  }

  [Symbol.iterator](): Iterator<Hit> {
    return this.hits[Symbol.iterator]();
  }
}

/** What one term of a query contributed. */
export interface TermExplanation {
  readonly term: string;
  readonly documentCount: number;
  readonly weight: number;
  readonly inOwnText: boolean;
  readonly inSurroundings: boolean;
  readonly contribution: number;
}

/** Why a node is, or is not, among the hits of a recall. `exclusion` is undefined if it is. */
export interface Explanation {
  readonly citation: Citation;
  readonly status: NodeStatus;
  readonly recalled: boolean;
  readonly exclusion: RecallExclusion | undefined;
  readonly rank: number | undefined;
  readonly modeUsed: RecallMode;
  readonly degradation: Degradation | undefined;
  readonly lexical: BranchScore | undefined;
  readonly terms: readonly TermExplanation[];
  readonly matchedShare: number;
  readonly lexicalFloor: number;
  readonly vectorState: VectorState;
  readonly semantic: BranchScore | undefined;
  readonly changeToken: ChangeToken;
}

export function fromFilter(filter: RecallFilter | undefined): MessageInitShape<typeof RecallFilterSchema> | undefined {
  if (filter === undefined) {
    return undefined;
  }
  return {
    kinds: (filter.kinds ?? []).map((kind) => nodeKind.number(kind)),
    labels: { ...filter.labels },
    occurred: range(filter.occurredFrom, filter.occurredUntil, "occurred"),
    updated: range(filter.updatedFrom, filter.updatedUntil, "updated"),
    excludedNodeIds: texts(filter.excludedNodeIds, "excludedNodeIds"),
  };
}

export function toHit(message: RecallHit, namespace: Namespace): Hit {
  const citation = toCitation(message.citation);
  return {
    namespace,
    citation,
    nodeId: citation.nodeId,
    rank: message.rank,
    score: message.score,
    channel: recallChannel.name(message.channel),
    lexical: toBranch(message.lexical),
    semantic: toBranch(message.semantic),
    relatedTo: message.relatedToNodeId,
    trust: trust.name(message.trust),
    kind: nodeKind.name(message.kind),
    content: message.content,
    surroundings: message.surroundings,
    author: message.author,
    occurredAt: toDateIf(message.occurredAt),
    createdAt: toDate(message.createdAt),
    updatedAt: toDate(message.updatedAt),
    confidence: message.confidence,
    importance: message.importance,
    labels: message.labels,
    relations: message.relations.map((relation) => ({
      kind: relationKind.name(relation.kind),
      nodeId: relation.nodeId,
      status: nodeStatus.name(relation.status),
    })),
    disputed: message.disputed,
    ageMs: toMs(message.freshness?.age),
  };
}

export function toRecall(
  namespace: Namespace,
  message: ActiveRecallResponse | PreviewRecallResponse,
  admitted: { readonly admissions?: readonly AdmissionOutcome[]; readonly contextId?: string } = {},
): Recall {
  const result = message.result ?? create(RecallResultSchema);
  return new Recall({
    namespace,
    hits: result.hits.map((hit) => toHit(hit, namespace)),
    changeToken: toChangeToken(message.changeToken),
    modeUsed: recallMode.name(result.modeUsed),
    degradation: toDegradation(result.degradation),
    searchedNodeCount: Number(result.searchedNodeCount),
    semantic: toSemanticSearch(result.semantic),
    ...admitted,
  });
}

export function toExplanation(response: ExplainRecallResponse): Explanation {
  const message = response.explanation ?? create(RecallExplanationSchema);
  return {
    citation: toCitation(message.citation),
    status: nodeStatus.name(message.status),
    recalled: message.recalled,
    exclusion: message.exclusion === undefined ? undefined : recallExclusion.name(message.exclusion),
    rank: message.rank,
    modeUsed: recallMode.name(message.modeUsed),
    degradation: toDegradation(message.degradation),
    lexical: toBranch(message.lexical),
    terms: message.terms.map((term) => ({
      term: term.term,
      documentCount: Number(term.documentCount),
      weight: term.weight,
      inOwnText: term.inOwnText,
      inSurroundings: term.inSurroundings,
      contribution: term.contribution,
    })),
    matchedShare: message.matchedShare,
    lexicalFloor: message.lexicalFloor,
    vectorState: vectorState.name(message.vectorState),
    semantic: toBranch(message.semantic),
    changeToken: toChangeToken(response.changeToken),
  };
}

function toBranch(message: BranchScoreMessage | undefined): BranchScore | undefined {
  return message === undefined ? undefined : { rank: message.rank, score: message.score };
}

function toDegradation(message: DegradationMessage | undefined): Degradation | undefined {
  return message === undefined
    ? undefined
    : { reason: degradationReason.name(message.reason), message: message.message };
}

function toSemanticSearch(message: SemanticSearchMessage | undefined): SemanticSearch | undefined {
  return message === undefined
    ? undefined
    : {
        indexRevision: message.indexRevision,
        indexHistoryDigest: message.indexHistoryDigest,
        vectorsSearched: Number(message.vectorsSearched),
        candidatesDropped: Number(message.candidatesDropped),
        candidatesRefilled: Number(message.candidatesRefilled),
        unindexedActiveCount: Number(message.unindexedActiveCount),
      };
}

function range(
  start: Date | undefined,
  end: Date | undefined,
  name: string,
): MessageInitShape<typeof TimeRangeSchema> | undefined {
  return start === undefined && end === undefined
    ? undefined
    : { start: toTimestamp(start, `${name}From`), end: toTimestamp(end, `${name}Until`) };
}
