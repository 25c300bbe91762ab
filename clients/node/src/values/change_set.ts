/** Change sets: the operations that make one, and what it did. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ChangeSetSchema,
  type ChangeSet as ChangeSetMessage,
  type NodeChange as NodeChangeMessage,
  type OperationSchema,
  type SurroundingsSchema,
} from "../gen/durablememory/v1/change_set_pb.js";
import type { WatchedChange as WatchedChangeMessage } from "../gen/durablememory/v1/repository_service_pb.js";
import { nodeStatus, operationKind, revisionKind } from "../generated/enum_codecs.js";
import type { NodeStatus, OperationKind, RelationKind, RevisionKind, UnknownValue } from "../generated/enums.js";
import { toCitation, type Citation } from "./citation.js";
import { fromEvidence, type Evidence } from "./evidence.js";
import { fromDraft, fromRelation, texts, toNode, type Draft, type MemoryNode, type Relation } from "./memory.js";
import { toChangeToken, toNamespace, type ChangeToken, type Namespace, type Revision } from "./namespace.js";
import { toDate, toTimestamp } from "./times.js";

interface OfNode {
  readonly nodeId: string;
  readonly expectedRevision: Revision;
}

/** Creates a node: a CANDIDATE, or with MANUAL or VERIFICATION evidence in the draft an ACTIVE one. */
export interface Create {
  readonly type: "create";
  readonly memory: Draft;
  readonly nodeId?: string | undefined;
  readonly status?: NodeStatus | undefined;
  readonly relations?: readonly Relation[] | undefined;
  readonly createdAt?: Date | undefined;
}

/** Makes a CANDIDATE, CONFLICTED or ARCHIVED node ACTIVE, by new MANUAL or VERIFICATION evidence. */
export interface Activate extends OfNode {
  readonly type: "activate";
  readonly evidence: readonly Evidence[];
}

/** Adds evidence and changes nothing else. */
export interface Corroborate extends OfNode {
  readonly type: "corroborate";
  readonly evidence: readonly Evidence[];
}

/** What a revision changes; what is left out stays. */
export interface RevisionFields {
  readonly content?: string | undefined;
  /** `[]` removes them. */
  readonly surroundings?: readonly string[] | undefined;
  readonly author?: string | undefined;
  readonly occurredAt?: Date | undefined;
  readonly confidence?: number | undefined;
  readonly importance?: number | undefined;
  readonly setLabels?: Readonly<Record<string, string>> | undefined;
  readonly removeLabels?: readonly string[] | undefined;
  readonly evidence?: Iterable<Evidence> | undefined;
}

/** Changes content or annotations. */
export interface Revise extends OfNode, RevisionFields {
  readonly type: "revise";
  /** Default: CORRECTION. */
  readonly kind?: RevisionKind | undefined;
}

/** Adds one end of a relation; the same change set must add the inverse. `relate` makes both. */
export interface AddRelation extends OfNode {
  readonly type: "addRelation";
  readonly relation: Relation;
}

/** Removes one end of a relation; the same change set must remove the inverse. `unrelate` makes both. */
export interface RemoveRelation extends OfNode {
  readonly type: "removeRelation";
  readonly relation: Relation;
}

/** Moves a node to CONFLICTED, SUPERSEDED, ARCHIVED or TOMBSTONED. */
export interface SetStatus extends OfNode {
  readonly type: "setStatus";
  readonly status: NodeStatus;
  readonly evidence?: readonly Evidence[] | undefined;
}

/** One step of a change set. */
export type Operation = Create | Activate | Corroborate | Revise | AddRelation | RemoveRelation | SetStatus;

/** What a change set did to one node. */
export interface NodeChange {
  readonly citation: Citation;
  readonly revisionDigest: string;
  readonly operations: readonly OperationKind[];
  /** Undefined when the change set created the node. */
  readonly statusBefore: NodeStatus | undefined;
  readonly statusAfter: NodeStatus;
  readonly contentChanged: boolean;
}

/** One committed change set. It names what changed and never holds text. */
export interface ChangeSet {
  readonly namespace: Namespace;
  readonly namespaceRevision: bigint;
  readonly method: string;
  readonly idempotencyKey: string;
  readonly occurredAt: Date;
  readonly committedAt: Date;
  readonly caller: string;
  readonly changes: readonly NodeChange[];
  readonly note: string;
  readonly digest: string;
  readonly chainDigest: string;
}

/** One change of a watched namespace: where it took the namespace, what changed, and the revisions it made. */
export interface WatchedChange {
  readonly changeToken: ChangeToken;
  readonly changeSet: ChangeSet;
  /** There if the watch asked for them; where they would not fit into one message, without content. */
  readonly nodes: readonly MemoryNode[];
}

const INVERSE: Readonly<Record<Exclude<RelationKind, UnknownValue>, RelationKind>> = {
  SUPERSEDES: "SUPERSEDED_BY",
  SUPERSEDED_BY: "SUPERSEDES",
  CONFLICTS_WITH: "CONFLICTS_WITH",
  RELATED_TO: "RELATED_TO",
};

/** What both ends of a relation are named by. */
export type RelationEnd = Pick<MemoryNode, "id" | "revision">;

/** Both ends of a new relation between two nodes at their present revisions. */
export function relate(
  node: RelationEnd,
  kind: Exclude<RelationKind, UnknownValue>,
  other: RelationEnd,
): [AddRelation, AddRelation] {
  const [here, there] = ends(node, kind, other);
  return [
    { type: "addRelation", ...here },
    { type: "addRelation", ...there },
  ];
}

/** Both ends of a relation that is to go, of two nodes at their present revisions. */
export function unrelate(
  node: RelationEnd,
  kind: Exclude<RelationKind, UnknownValue>,
  other: RelationEnd,
): [RemoveRelation, RemoveRelation] {
  const [here, there] = ends(node, kind, other);
  return [
    { type: "removeRelation", ...here },
    { type: "removeRelation", ...there },
  ];
}

export function fromOperation(operation: Operation): MessageInitShape<typeof OperationSchema> {
  switch (operation.type) {
    case "create":
      return {
        operation: {
          case: "create",
          value: {
            nodeId: operation.nodeId,
            status: nodeStatus.numberIf(operation.status),
            memory: fromDraft(operation.memory),
            relations: (operation.relations ?? []).map(fromRelation),
            createdAt: toTimestamp(operation.createdAt, "createdAt"),
          },
        },
      };
    case "activate":
    case "corroborate":
      return {
        operation: {
          case: operation.type,
          value: { ...target(operation), evidence: fromEvidence(operation.evidence) },
        },
      };
    case "revise":
      return {
        operation: {
          case: "revise",
          value: {
            ...target(operation),
            ...fromRevision(operation),
            kind: revisionKind.number(operation.kind ?? "CORRECTION"),
          },
        },
      };
    case "addRelation":
    case "removeRelation":
      return {
        operation: {
          case: operation.type,
          value: { ...target(operation), relation: fromRelation(operation.relation) },
        },
      };
    case "setStatus":
      return {
        operation: {
          case: "setStatus",
          value: {
            ...target(operation),
            status: nodeStatus.number(operation.status),
            evidence: fromEvidence(operation.evidence),
          },
        },
      };
    default:
      throw new TypeError(`no such operation: ${JSON.stringify((operation as { type?: unknown }).type)}`);
  }
}

/** What a revision changes, for a request. */
export function fromRevision(fields: RevisionFields): {
  content: string | undefined;
  surroundings: MessageInitShape<typeof SurroundingsSchema> | undefined;
  author: string | undefined;
  occurredAt: ReturnType<typeof toTimestamp>;
  confidence: number | undefined;
  importance: number | undefined;
  setLabels: Record<string, string>;
  removeLabels: string[];
  evidence: ReturnType<typeof fromEvidence>;
} {
  return {
    content: fields.content,
    surroundings: fields.surroundings === undefined ? undefined : { texts: texts(fields.surroundings, "surroundings") },
    author: fields.author,
    occurredAt: toTimestamp(fields.occurredAt, "occurredAt"),
    confidence: fields.confidence,
    importance: fields.importance,
    setLabels: { ...fields.setLabels },
    removeLabels: texts(fields.removeLabels, "removeLabels"),
    evidence: fromEvidence(fields.evidence),
  };
}

export function toChangeSet(given: ChangeSetMessage | undefined): ChangeSet {
  const message = given ?? create(ChangeSetSchema);
  return {
    namespace: toNamespace(message.namespace),
    namespaceRevision: message.namespaceRevision,
    method: message.method,
    idempotencyKey: message.idempotencyKey,
    occurredAt: toDate(message.occurredAt),
    committedAt: toDate(message.committedAt),
    caller: message.caller,
    changes: message.changes.map(toNodeChange),
    note: message.note,
    digest: message.digest,
    chainDigest: message.chainDigest,
  };
}

export function toWatchedChange(message: WatchedChangeMessage): WatchedChange {
  return {
    changeToken: toChangeToken(message.changeToken),
    changeSet: toChangeSet(message.changeSet),
    nodes: message.nodes.map(toNode),
  };
}

function toNodeChange(message: NodeChangeMessage): NodeChange {
  return {
    citation: toCitation(message.citation),
    revisionDigest: message.revisionDigest,
    operations: message.operations.map((operation) => operationKind.name(operation)),
    statusBefore: message.statusBefore === undefined ? undefined : nodeStatus.name(message.statusBefore),
    statusAfter: nodeStatus.name(message.statusAfter),
    contentChanged: message.contentChanged,
  };
}

function target(operation: OfNode): { nodeId: string; expectedRevision: bigint } {
  return { nodeId: operation.nodeId, expectedRevision: BigInt(operation.expectedRevision) };
}

function ends(node: RelationEnd, kind: Exclude<RelationKind, UnknownValue>, other: RelationEnd) {
  return [
    { nodeId: node.id, expectedRevision: node.revision, relation: { kind, nodeId: other.id } },
    { nodeId: other.id, expectedRevision: other.revision, relation: { kind: INVERSE[kind], nodeId: node.id } },
  ] as const;
}
