/** Memories: what callers state, and what the service keeps. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { GetMemoryResponse } from "../gen/durablememory/v1/memory_service_pb.js";
import {
  NodeSchema,
  type MemoryDraftSchema,
  type Node as NodeMessage,
  type RelationSchema,
} from "../gen/durablememory/v1/node_pb.js";
import { nodeKind, nodeStatus, relationKind } from "../generated/enum_codecs.js";
import type { NodeKind, NodeStatus, RelationKind } from "../generated/enums.js";
import { toCitation, type Citation } from "./citation.js";
import { fromEvidence, toEvidence, type Evidence } from "./evidence.js";
import { toChangeToken, type ChangeToken } from "./namespace.js";
import { toDate, toDateIf, toTimestamp } from "./times.js";

/** What a draft says beside its content. */
export interface DraftFields {
  /** Default: SEMANTIC. */
  readonly kind?: NodeKind | undefined;
  readonly evidence?: Iterable<Evidence> | undefined;
  /** Up to 4 texts that stood around it at its source, nearest first; they make it easier to find. */
  readonly surroundings?: readonly string[] | undefined;
  /** Who said it. */
  readonly author?: string | undefined;
  /** When what it tells of happened; default: the earliest evidence, else now. */
  readonly occurredAt?: Date | undefined;
  /** 0..1, an annotation that authorises nothing. */
  readonly confidence?: number | undefined;
  /** 0..1, an annotation that authorises nothing. */
  readonly importance?: number | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** What to remember. */
export interface Draft extends DraftFields {
  /** 1..65,536 UTF-8 bytes. */
  readonly content: string;
}

/** A typed link to another node, seen from the node that holds it. */
export interface Relation {
  readonly kind: RelationKind;
  readonly nodeId: string;
}

/** One revision of one memory. */
export interface MemoryNode {
  readonly id: string;
  readonly revision: bigint;
  readonly kind: NodeKind;
  readonly status: NodeStatus;
  /**
   * Untrusted text: show it to a model as history (`render`), never as instructions. Empty where the call asked to omit
   * content.
   */
  readonly content: string;
  /** There only where the call asked for them. */
  readonly surroundings: readonly string[];
  readonly contentDigest: string;
  readonly author: string;
  readonly occurredAt: Date | undefined;
  readonly confidence: number;
  readonly importance: number;
  readonly evidence: readonly Evidence[];
  readonly relations: readonly Relation[];
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly committedAt: Date;
  readonly decidedBy: string;
  readonly citation: Citation;
  /** The namespace revision that committed it. */
  readonly validFrom: bigint;
  /** The namespace revision that replaced it; undefined while it is the current one. */
  readonly supersededAt: bigint | undefined;
}

/** What a citation names, and what has become of it. */
export interface CitedMemory {
  readonly node: MemoryNode;
  readonly citation: Citation;
  readonly content: string;
  /** Whether the node still says exactly this. `currentStatus` may have changed all the same. */
  readonly isCurrent: boolean;
  readonly currentCitation: Citation;
  readonly currentStatus: NodeStatus;
  readonly changeToken: ChangeToken;
}

/** The draft that is meant: text with options, or a draft with some of its fields replaced. */
export function fromDraft(
  memory: string | Draft,
  fields: DraftFields = {},
): MessageInitShape<typeof MemoryDraftSchema> {
  const stated = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as DraftFields;
  const draft: Draft = typeof memory === "string" ? { ...stated, content: memory } : { ...memory, ...stated };
  return {
    kind: nodeKind.number(draft.kind ?? "SEMANTIC"),
    content: draft.content,
    surroundings: texts(draft.surroundings, "surroundings"),
    author: draft.author ?? "",
    occurredAt: toTimestamp(draft.occurredAt, "occurredAt"),
    confidence: draft.confidence,
    importance: draft.importance,
    labels: { ...draft.labels },
    evidence: fromEvidence(draft.evidence),
  };
}

/** The draft fields of options that have more than those. */
export function draftFields(options: DraftFields): DraftFields {
  const { kind, evidence, surroundings, author, occurredAt, confidence, importance, labels } = options;
  return { kind, evidence, surroundings, author, occurredAt, confidence, importance, labels };
}

export function fromRelation(relation: Relation): MessageInitShape<typeof RelationSchema> {
  return { kind: relationKind.number(relation.kind), nodeId: relation.nodeId };
}

export function toNode(given: NodeMessage | undefined): MemoryNode {
  const message = given ?? create(NodeSchema);
  return {
    id: message.id,
    revision: message.revision,
    kind: nodeKind.name(message.kind),
    status: nodeStatus.name(message.status),
    content: message.content,
    surroundings: message.surroundings,
    contentDigest: message.contentDigest,
    author: message.author,
    occurredAt: toDateIf(message.occurredAt),
    confidence: message.confidence,
    importance: message.importance,
    evidence: message.evidence.map(toEvidence),
    relations: message.relations.map((relation) => ({
      kind: relationKind.name(relation.kind),
      nodeId: relation.nodeId,
    })),
    labels: message.labels,
    createdAt: toDate(message.createdAt),
    updatedAt: toDate(message.updatedAt),
    committedAt: toDate(message.committedAt),
    decidedBy: message.decidedBy,
    citation: toCitation(message.citation),
    validFrom: message.validFromNamespaceRevision,
    supersededAt: message.supersededAtNamespaceRevision,
  };
}

export function toCitedMemory(message: GetMemoryResponse): CitedMemory {
  const node = toNode(message.node);
  return {
    node,
    citation: node.citation,
    content: node.content,
    isCurrent: node.supersededAt === undefined,
    currentCitation: toCitation(message.currentCitation),
    currentStatus: nodeStatus.name(message.currentStatus),
    changeToken: toChangeToken(message.changeToken),
  };
}

/** A copy of texts. @throws TypeError for one text, which would be taken for its characters. */
export function texts(given: readonly string[] | undefined, name: string): string[] {
  if (typeof given === "string") {
    throw new TypeError(`${name} is an array of texts, not one text`);
  }
  return [...(given ?? [])];
}
