/** The complete view of a namespace at one revision, checked as it is read. */
import type { CallOptions, Calls } from "./calls.js";
import { IncompleteStreamError } from "./errors.js";
import {
  RepositoryService,
  type SnapshotFooter,
  type SnapshotHeader,
  type SnapshotRequest,
} from "./gen/durablememory/v1/repository_service_pb.js";
import { nodeStatus } from "./generated/enum_codecs.js";
import type { NodeStatus } from "./generated/enums.js";
import { toNode, type MemoryNode } from "./values/memory.js";
import { toChangeToken, toNamespace, type ChangeToken, type Namespace } from "./values/namespace.js";

/** What the footer of a snapshot says, once it has been checked. Equal node state has an equal digest, in any store. */
export interface SnapshotSummary {
  readonly nodeCount: number;
  readonly contentBytes: number;
  readonly digest: string;
}

/** Iterate it for the nodes, in id order. Only an iteration that ends without an error has seen a snapshot. */
export class Snapshot implements AsyncIterable<MemoryNode> {
  readonly #calls: Calls;
  readonly #request: SnapshotRequest;
  readonly #options: CallOptions;

  /** Known from the first node on. */
  namespace: Namespace | undefined;
  /** Known from the first node on. */
  changeToken: ChangeToken | undefined;
  /** Known from the first node on. */
  statuses: readonly NodeStatus[] = [];
  /** Known at the end. */
  summary: SnapshotSummary | undefined;

  constructor(calls: Calls, request: SnapshotRequest, options: CallOptions) {
    this.#calls = calls;
    this.#request = request;
    this.#options = options;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<MemoryNode, void, undefined> {
    this.#reset();
    let nodes = 0;
    let contentBytes = 0;
    let footer: SnapshotFooter | undefined;
    for await (const { message } of this.#calls.stream(
      RepositoryService.method.snapshot,
      this.#request,
      this.#options,
    )) {
      if (footer !== undefined) {
        throw new IncompleteStreamError("the snapshot goes on after its footer");
      }
      if (message.case === "header") {
        this.#begin(message.value);
      } else if (message.case === "node") {
        nodes += 1;
        contentBytes += Buffer.byteLength(message.value.content);
        yield toNode(message.value);
      } else if (message.case === "footer") {
        footer = message.value;
      }
    }
    if (this.changeToken === undefined || footer === undefined) {
      throw new IncompleteStreamError("the snapshot ended before its footer");
    }
    if (footer.nodeCount !== BigInt(nodes)) {
      throw new IncompleteStreamError(`the snapshot has ${footer.nodeCount} nodes, of which ${nodes} arrived`);
    }
    if (!this.#request.omitContent && footer.contentBytes !== BigInt(contentBytes)) {
      throw new IncompleteStreamError(
        `the snapshot has ${footer.contentBytes} bytes of content, of which ${contentBytes} arrived`,
      );
    }
    this.summary = { nodeCount: nodes, contentBytes: Number(footer.contentBytes), digest: footer.digest };
  }

  /** All nodes at once, complete. */
  async all(): Promise<MemoryNode[]> {
    const nodes: MemoryNode[] = [];
    for await (const node of this) {
      nodes.push(node);
    }
    return nodes;
  }

  /** Another iteration is another snapshot. */
  #reset(): void {
    this.namespace = undefined;
    this.changeToken = undefined;
    this.statuses = [];
    this.summary = undefined;
  }

  #begin(header: SnapshotHeader): void {
    this.namespace = toNamespace(header.namespace);
    this.changeToken = toChangeToken(header.changeToken);
    this.statuses = header.statuses.map((status) => nodeStatus.name(status));
  }
}
