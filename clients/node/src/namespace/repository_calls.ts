import { create } from "@bufbuild/protobuf";
import type { CallOptions, WriteOptions } from "../calls.js";
import {
  ApplyChangeSetRequestSchema,
  BatchGetNodesRequestSchema,
  GetChangeSetRequestSchema,
  GetChangeTokenRequestSchema,
  GetNodeRequestSchema,
  GetRevisionRequestSchema,
  ListChangeSetsRequestSchema,
  ListNodesRequestSchema,
  ListRevisionsRequestSchema,
  RepositoryService,
  SnapshotRequestSchema,
} from "../gen/durablememory/v1/repository_service_pb.js";
import { nodeKind, nodeStatus } from "../generated/enum_codecs.js";
import type { NodeKind, NodeStatus } from "../generated/enums.js";
import { Pages, type PageOptions } from "../paging.js";
import { Snapshot } from "../snapshot.js";
import { fromOperation, toChangeSet, type ChangeSet, type Operation } from "../values/change_set.js";
import { fromCitable, type Citable, type NodeRevision } from "../values/citation.js";
import { texts, toNode, type MemoryNode } from "../values/memory.js";
import { fromNamespace, revisionIf, toChangeToken, type ChangeToken, type Revision } from "../values/namespace.js";
import { toTimestamp } from "../values/times.js";
import { Watch, type WatchOptions } from "../watch.js";
import { MemoryCalls } from "./memory_calls.js";

/** How to apply a change set. */
export interface ApplyChangeSetOptions extends WriteOptions {
  readonly occurredAt?: Date | undefined;
  /** What the namespace must be at. Default: not compared. */
  readonly expectedNamespaceRevision?: Revision | undefined;
  readonly note?: string | undefined;
}

/** Where in the history to read. */
export interface AtRevision {
  /** Default: now. */
  readonly atNamespaceRevision?: Revision | undefined;
}

/** How to read several nodes. */
export interface GetNodesOptions extends AtRevision, CallOptions {
  readonly omitContent?: boolean | undefined;
  readonly includeSurroundings?: boolean | undefined;
}

/** Which nodes to list, and how. */
export interface ListNodesOptions extends GetNodesOptions, PageOptions {
  readonly statuses?: readonly NodeStatus[] | undefined;
  readonly kinds?: readonly NodeKind[] | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Which change set to read: by the namespace revision it made, or by the request id and bare method that made it. */
export type ChangeSetName =
  | { readonly namespaceRevision: Revision }
  | {
      readonly requestId: string;
      /** Default: ApplyChangeSet. */
      readonly method?: string | undefined;
    };

/** What a snapshot has. */
export interface SnapshotOptions extends AtRevision, CallOptions {
  readonly statuses?: readonly NodeStatus[] | undefined;
  readonly omitContent?: boolean | undefined;
}

/** Change sets in, nodes and their whole history out. Reads are pure, and answer for one namespace revision. */
export class RepositoryCalls extends MemoryCalls {
  /**
   * Apply 1..128 operations: all of them or none, once.
   *
   * Reasons: REVISION_CONFLICT, NODE_NOT_FOUND, NODE_ALREADY_EXISTS, NODE_FROZEN, CHANGE_SET_EMPTY, EVIDENCE_REQUIRED,
   * INVALID_TRANSITION, RELATION_INVALID, NAMESPACE_TOO_LARGE.
   */
  async applyChangeSet(operations: Iterable<Operation>, options: ApplyChangeSetOptions = {}): Promise<ChangeSet> {
    const request = create(ApplyChangeSetRequestSchema, {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
      operations: Array.from(operations, fromOperation),
      occurredAt: toTimestamp(options.occurredAt, "occurredAt"),
      expectedNamespaceRevision: revisionIf(options.expectedNamespaceRevision),
      note: options.note ?? "",
    });
    return toChangeSet((await this.calls.unary(RepositoryService.method.applyChangeSet, request, options)).changeSet);
  }

  /**
   * Read a node as it is, or as it was at a namespace revision.
   *
   * Reasons: NODE_NOT_FOUND (also when it did not exist yet), REVISION_NOT_FOUND, HISTORY_COMPACTED.
   */
  async getNode(nodeId: string, options: AtRevision & CallOptions = {}): Promise<MemoryNode> {
    const request = create(GetNodeRequestSchema, {
      namespace: fromNamespace(this.ref),
      nodeId,
      atNamespaceRevision: revisionIf(options.atNamespaceRevision),
    });
    return toNode((await this.calls.unary(RepositoryService.method.getNode, request, options)).node);
  }

  /**
   * Read up to 128 nodes at one namespace revision, by id; what does not exist is left out.
   *
   * Reasons: REVISION_NOT_FOUND, HISTORY_COMPACTED.
   */
  async getNodes(nodeIds: readonly string[], options: GetNodesOptions = {}): Promise<Map<string, MemoryNode>> {
    const request = create(BatchGetNodesRequestSchema, {
      namespace: fromNamespace(this.ref),
      nodeIds: texts(nodeIds, "nodeIds"),
      atNamespaceRevision: revisionIf(options.atNamespaceRevision),
      omitContent: options.omitContent ?? false,
      includeSurroundings: options.includeSurroundings ?? false,
    });
    const response = await this.calls.unary(RepositoryService.method.batchGetNodes, request, options);
    return new Map(response.nodes.map((node) => [node.id, toNode(node)]));
  }

  /** The nodes of the namespace in id order, all pages at one namespace revision. */
  listNodes(options: ListNodesOptions = {}): Pages<MemoryNode> {
    return new Pages(async (pageToken) => {
      const request = create(ListNodesRequestSchema, {
        namespace: fromNamespace(this.ref),
        statuses: (options.statuses ?? []).map((status) => nodeStatus.number(status)),
        kinds: (options.kinds ?? []).map((kind) => nodeKind.number(kind)),
        labels: { ...options.labels },
        atNamespaceRevision: revisionIf(options.atNamespaceRevision),
        omitContent: options.omitContent ?? false,
        includeSurroundings: options.includeSurroundings ?? false,
        pageSize: options.pageSize ?? 0,
        pageToken,
      });
      const response = await this.calls.unary(RepositoryService.method.listNodes, request, options);
      return {
        items: response.nodes.map(toNode),
        nextPageToken: response.nextPageToken,
        changeToken: toChangeToken(response.changeToken),
      };
    });
  }

  /** The revisions of a node, oldest first. Reasons: NODE_NOT_FOUND. */
  listRevisions(
    nodeId: string,
    options: PageOptions & CallOptions & { readonly omitContent?: boolean | undefined } = {},
  ): Pages<MemoryNode> {
    return new Pages(async (pageToken) => {
      const request = create(ListRevisionsRequestSchema, {
        namespace: fromNamespace(this.ref),
        nodeId,
        omitContent: options.omitContent ?? false,
        pageSize: options.pageSize ?? 0,
        pageToken,
      });
      const response = await this.calls.unary(RepositoryService.method.listRevisions, request, options);
      return {
        items: response.revisions.map(toNode),
        nextPageToken: response.nextPageToken,
        changeToken: toChangeToken(response.changeToken),
      };
    });
  }

  /**
   * Read one exact revision of a node, however old. `get` also says what has become of it.
   *
   * Reasons: NODE_NOT_FOUND, REVISION_NOT_FOUND, CONTENT_ERASED.
   */
  async getRevision(revision: Citable | NodeRevision, options: CallOptions = {}): Promise<MemoryNode> {
    const request = create(GetRevisionRequestSchema, {
      namespace: fromNamespace(this.ref),
      target: isNodeRevision(revision)
        ? { case: "nodeRevision", value: { nodeId: revision.nodeId, revision: revision.revision } }
        : { case: "citation", value: fromCitable(revision) },
    });
    return toNode((await this.calls.unary(RepositoryService.method.getRevision, request, options)).node);
  }

  /** The change sets after a namespace revision, oldest first. Reasons: HISTORY_COMPACTED. */
  listChangeSets(
    options: PageOptions & CallOptions & { readonly afterNamespaceRevision?: Revision | undefined } = {},
  ): Pages<ChangeSet> {
    return new Pages(async (pageToken) => {
      const request = create(ListChangeSetsRequestSchema, {
        namespace: fromNamespace(this.ref),
        afterNamespaceRevision: BigInt(options.afterNamespaceRevision ?? 0),
        pageSize: options.pageSize ?? 0,
        pageToken,
      });
      const response = await this.calls.unary(RepositoryService.method.listChangeSets, request, options);
      return {
        items: response.changeSets.map(toChangeSet),
        nextPageToken: response.nextPageToken,
        changeToken: toChangeToken(response.changeToken),
      };
    });
  }

  /** Read one change set. Reasons: REVISION_NOT_FOUND, HISTORY_COMPACTED. */
  async getChangeSet(name: ChangeSetName, options: CallOptions = {}): Promise<ChangeSet> {
    const request = create(GetChangeSetRequestSchema, {
      namespace: fromNamespace(this.ref),
      selector:
        "namespaceRevision" in name
          ? { case: "namespaceRevision", value: BigInt(name.namespaceRevision) }
          : { case: "key", value: { method: name.method ?? "ApplyChangeSet", idempotencyKey: name.requestId } },
    });
    return toChangeSet((await this.calls.unary(RepositoryService.method.getChangeSet, request, options)).changeSet);
  }

  /** Where the namespace stands. */
  async getChangeToken(options: CallOptions = {}): Promise<ChangeToken> {
    const request = create(GetChangeTokenRequestSchema, { namespace: fromNamespace(this.ref) });
    const response = await this.calls.unary(RepositoryService.method.getChangeToken, request, options);
    return toChangeToken(response.changeToken);
  }

  /**
   * The complete view of the namespace at one revision, node by node.
   *
   * Reasons: SNAPSHOT_TOO_LARGE, REVISION_NOT_FOUND, HISTORY_COMPACTED. Reading throws IncompleteStreamError for one
   * that does not match its footer.
   */
  snapshot(options: SnapshotOptions = {}): Snapshot {
    const request = create(SnapshotRequestSchema, {
      namespace: fromNamespace(this.ref),
      statuses: (options.statuses ?? []).map((status) => nodeStatus.number(status)),
      atNamespaceRevision: revisionIf(options.atNamespaceRevision),
      omitContent: options.omitContent ?? false,
    });
    return new Snapshot(this.calls, request, options);
  }

  /**
   * The changes of the namespace, in order and without gaps, across restarts of the service.
   *
   *     for await (const change of memory.watch({ after: token })) { ... }
   *
   * A lost stream is resumed after the last change that was read, for as long as it takes, or until the service was out
   * of reach for `giveUpAfterMs`.
   *
   * Reasons: HISTORY_COMPACTED, HISTORY_CHANGED (start again from a snapshot), REVISION_NOT_FOUND.
   */
  watch(options: WatchOptions = {}): Watch {
    return new Watch(this.calls, this.ref, options);
  }
}

function isNodeRevision(revision: Citable | NodeRevision): revision is NodeRevision {
  return typeof revision === "object" && !("citation" in revision) && "revision" in revision;
}
