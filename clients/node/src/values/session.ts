/** Sessions and runs, what they are bound to, and what a server can do. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  RunSchema,
  SemanticGenerationSchema,
  SessionBindingSchema,
  SessionSchema,
  type RecallPolicy,
  type RecallPolicySchema,
  type Run as RunMessage,
  type SemanticGeneration as SemanticGenerationMessage,
  type Session as SessionMessage,
  type SessionBinding as SessionBindingMessage,
} from "../gen/durablememory/v1/session_pb.js";
import {
  ServerLimitsSchema,
  type GetServerInfoResponse,
  type ServerLimits as ServerLimitsMessage,
} from "../gen/durablememory/v1/session_service_pb.js";
import { recallMode, runState, sessionState, vectorMetric, vectorNormalization } from "../generated/enum_codecs.js";
import type { RecallMode, RunState, SessionState, VectorMetric, VectorNormalization } from "../generated/enums.js";
import { fromNamespace, toNamespace, type Namespace } from "./namespace.js";
import { toDate, toDateIf, toMs } from "./times.js";

/** What is asked of the semantic branch; what is left out takes the server's default. */
export interface SemanticPolicy {
  readonly authorityDigest?: string | undefined;
  readonly candidateLimit?: number | undefined;
  readonly minSimilarity?: number | undefined;
}

/** How to recall; what is left out takes the server's default, once. */
export interface Policy {
  readonly mode?: RecallMode | undefined;
  /** 1..100. */
  readonly maxResults?: number | undefined;
  /** The lowest lexical score, 0..1. */
  readonly minScore?: number | undefined;
  /** The lowest share of the best lexical score, 0..1. */
  readonly minRelativeScore?: number | undefined;
  /** How many RELATED_TO targets to read, 0..64. */
  readonly relatedLookups?: number | undefined;
  readonly lexicalProfile?: string | undefined;
  readonly fusionProfile?: string | undefined;
  readonly semantic?: SemanticPolicy | undefined;
}

/** Which vectors a session searches, and the bounds of the search. */
export interface SemanticGeneration {
  readonly authorityDigest: string;
  readonly provider: string;
  readonly model: string;
  readonly modelRevision: string;
  readonly dimension: number;
  readonly normalization: VectorNormalization;
  readonly metric: VectorMetric;
  readonly candidateLimit: number;
  readonly minSimilarity: number;
}

/**
 * Everything that decides what a session recalls and how, with no default left open. A plain value to keep.
 *
 * A binding that a newer server wrote may have fields that this version does not know. They are not here, so such a
 * binding is resumed by its digest (`Session.bindingDigest`).
 */
export interface SessionBinding {
  readonly schemaVersion: number;
  readonly namespace: Namespace;
  readonly mode: RecallMode;
  readonly maxResults: number;
  readonly minScore: number;
  readonly minRelativeScore: number;
  readonly relatedLookups: number;
  readonly lexicalProfile: string;
  readonly fusionProfile: string;
  readonly semanticGeneration: SemanticGeneration | undefined;
}

/** A session as the service has it. `bindingDigest` is enough to resume it with. */
export interface Session {
  readonly sessionId: string;
  readonly binding: SessionBinding;
  readonly bindingDigest: string;
  readonly state: SessionState;
  readonly bindingVersion: bigint;
  readonly openedBy: string;
  readonly openedAt: Date;
  readonly reboundAt: Date | undefined;
  readonly closedAt: Date | undefined;
}

/** A run as the service has it: one incarnation of a run id. `contextId` is the next one to use. */
export interface Run {
  readonly sessionId: string;
  readonly runId: string;
  readonly incarnation: string;
  readonly hostInstance: string;
  readonly state: RunState;
  readonly openedAt: Date;
  readonly activeAt: Date;
  readonly endedAt: Date | undefined;
  readonly contextId: string;
  readonly sequence: bigint;
  readonly begunBy: string;
}

type WithoutMessage<T> = Omit<T, "$typeName" | "$unknown" | "maxClockSkew" | "runIdleTimeout">;

/** What a server accepts, in bytes and items; 64-bit values are bigint. */
export type ServerLimits = Readonly<WithoutMessage<ServerLimitsMessage>> & {
  readonly maxClockSkewMs: number;
  readonly runIdleTimeoutMs: number;
};

/** What a server is and can do, and who it takes the caller for. */
export interface ServerInfo {
  readonly version: string;
  readonly caller: string;
  readonly lexicalProfiles: readonly string[];
  readonly fusionProfiles: readonly string[];
  readonly semanticGenerations: readonly SemanticGeneration[];
  readonly recallModes: readonly RecallMode[];
  readonly defaultPolicy: Policy;
  readonly limits: ServerLimits;
}

export function fromPolicy(policy: Policy): MessageInitShape<typeof RecallPolicySchema> {
  return {
    mode: recallMode.numberIf(policy.mode),
    maxResults: policy.maxResults,
    minScore: policy.minScore,
    minRelativeScore: policy.minRelativeScore,
    relatedLookups: policy.relatedLookups,
    lexicalProfile: policy.lexicalProfile,
    fusionProfile: policy.fusionProfile,
    semantic: policy.semantic === undefined ? undefined : { ...policy.semantic },
  };
}

export function fromBinding(binding: SessionBinding): MessageInitShape<typeof SessionBindingSchema> {
  const generation = binding.semanticGeneration;
  return {
    ...binding,
    namespace: fromNamespace(binding.namespace),
    mode: recallMode.number(binding.mode),
    semanticGeneration:
      generation === undefined
        ? undefined
        : {
            ...generation,
            normalization: vectorNormalization.number(generation.normalization),
            metric: vectorMetric.number(generation.metric),
          },
  };
}

export function toSession(given: SessionMessage | undefined): Session {
  const message = given ?? create(SessionSchema);
  return {
    sessionId: message.sessionId,
    binding: toBinding(message.binding),
    bindingDigest: message.bindingDigest,
    state: sessionState.name(message.state),
    bindingVersion: message.bindingVersion,
    openedBy: message.openedBy,
    openedAt: toDate(message.openedAt),
    reboundAt: toDateIf(message.reboundAt),
    closedAt: toDateIf(message.closedAt),
  };
}

export function toRun(given: RunMessage | undefined): Run {
  const message = given ?? create(RunSchema);
  return {
    sessionId: message.sessionId,
    runId: message.runId,
    incarnation: message.incarnation,
    hostInstance: message.hostInstance,
    state: runState.name(message.state),
    openedAt: toDate(message.openedAt),
    activeAt: toDate(message.activeAt),
    endedAt: toDateIf(message.endedAt),
    contextId: message.contextId,
    sequence: message.sequence,
    begunBy: message.begunBy,
  };
}

export function toSemanticGeneration(given: SemanticGenerationMessage | undefined): SemanticGeneration {
  const message = given ?? create(SemanticGenerationSchema);
  return {
    authorityDigest: message.authorityDigest,
    provider: message.provider,
    model: message.model,
    modelRevision: message.modelRevision,
    dimension: message.dimension,
    normalization: vectorNormalization.name(message.normalization),
    metric: vectorMetric.name(message.metric),
    candidateLimit: message.candidateLimit,
    minSimilarity: message.minSimilarity,
  };
}

export function toServerInfo(message: GetServerInfoResponse): ServerInfo {
  return {
    version: message.version,
    caller: message.caller,
    lexicalProfiles: message.lexicalProfiles,
    fusionProfiles: message.fusionProfiles,
    semanticGenerations: message.semanticGenerations.map(toSemanticGeneration),
    recallModes: message.recallModes.map((mode) => recallMode.name(mode)),
    defaultPolicy: toPolicy(message.defaultPolicy),
    limits: toLimits(message.limits ?? create(ServerLimitsSchema)),
  };
}

function toBinding(given: SessionBindingMessage | undefined): SessionBinding {
  const message = given ?? create(SessionBindingSchema);
  return {
    schemaVersion: message.schemaVersion,
    namespace: toNamespace(message.namespace),
    mode: recallMode.name(message.mode),
    maxResults: message.maxResults,
    minScore: message.minScore,
    minRelativeScore: message.minRelativeScore,
    relatedLookups: message.relatedLookups,
    lexicalProfile: message.lexicalProfile,
    fusionProfile: message.fusionProfile,
    semanticGeneration:
      message.semanticGeneration === undefined ? undefined : toSemanticGeneration(message.semanticGeneration),
  };
}

function toPolicy(message: RecallPolicy | undefined): Policy {
  return {
    mode: message?.mode === undefined ? undefined : recallMode.name(message.mode),
    maxResults: message?.maxResults,
    minScore: message?.minScore,
    minRelativeScore: message?.minRelativeScore,
    relatedLookups: message?.relatedLookups,
    lexicalProfile: message?.lexicalProfile,
    fusionProfile: message?.fusionProfile,
    semantic:
      message?.semantic === undefined
        ? undefined
        : {
            authorityDigest: message.semantic.authorityDigest,
            candidateLimit: message.semantic.candidateLimit,
            minSimilarity: message.semantic.minSimilarity,
          },
  };
}

function toLimits(message: ServerLimitsMessage): ServerLimits {
  const { $typeName: _type, $unknown: _unknown, maxClockSkew, runIdleTimeout, ...limits } = message;
  return { ...limits, maxClockSkewMs: toMs(maxClockSkew), runIdleTimeoutMs: toMs(runIdleTimeout) };
}
