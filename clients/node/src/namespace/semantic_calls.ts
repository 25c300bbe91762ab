import { create } from "@bufbuild/protobuf";
import type { CallOptions, WriteOptions } from "../calls.js";
import {
  ClearPartitionRequestSchema,
  GetIndexStatusRequestSchema,
  GetMaintenanceHealthRequestSchema,
  ListReceiptsRequestSchema,
  RefreshSemanticRecallRequestSchema,
  SemanticService,
  SetScheduleRequestSchema,
} from "../gen/durablememory/v1/semantic_service_pb.js";
import { indexConsistency } from "../generated/enum_codecs.js";
import type { IndexConsistency } from "../generated/enums.js";
import { Pages, type PageOptions } from "../paging.js";
import { Refresh } from "../refresh.js";
import { fromNamespace } from "../values/namespace.js";
import {
  toIndexStatus,
  toMaintenanceHealth,
  toRefreshReceipt,
  toRefreshSchedule,
  type IndexStatus,
  type MaintenanceHealth,
  type RefreshReceipt,
  type RefreshSchedule,
} from "../values/semantic.js";
import { toDuration } from "../values/times.js";
import { RepositoryCalls } from "./repository_calls.js";

/** How to refresh. Without a `timeoutMs` it takes as long as it takes. */
export interface RefreshOptions extends WriteOptions {
  /** What the backend of the index must promise. Default: INDEX_REVISION_CAS. */
  readonly requirement?: IndexConsistency | undefined;
  /** Write every segment anew, from cached vectors. */
  readonly rebuild?: boolean | undefined;
}

/** When an index is refreshed by itself from now on, each from 1 second to 366 days; left out, it is off. */
export interface ScheduleOptions extends WriteOptions {
  readonly intervalMs?: number | undefined;
  readonly onChangeDelayMs?: number | undefined;
}

/**
 * The vector index behind recall by meaning. Nobody has to call these for recall to be right: the service keeps the
 * index up to date by itself.
 *
 * All of them fail with SEMANTIC_UNAVAILABLE where the server has no semantic generation.
 */
export class SemanticCalls extends RepositoryCalls {
  /**
   * Make the index cover every ACTIVE memory: wait for the result, or iterate it. The session says which generation you
   * count on.
   */
  refreshSemanticRecall(sessionId: string, options: RefreshOptions = {}): Refresh {
    const request = create(RefreshSemanticRecallRequestSchema, {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
      sessionId,
      requirement: indexConsistency.number(options.requirement ?? "INDEX_REVISION_CAS"),
      rebuild: options.rebuild ?? false,
    });
    return new Refresh(this.calls, request, options);
  }

  /** How the index stands, and how many ACTIVE memories it does not cover. */
  async getIndexStatus(options: CallOptions = {}): Promise<IndexStatus> {
    const request = create(GetIndexStatusRequestSchema, { namespace: fromNamespace(this.ref) });
    return toIndexStatus((await this.calls.unary(SemanticService.method.getIndexStatus, request, options)).status);
  }

  /** The receipts of all refreshes, newest first. */
  listReceipts(options: PageOptions & CallOptions = {}): Pages<RefreshReceipt> {
    return new Pages(async (pageToken) => {
      const request = create(ListReceiptsRequestSchema, {
        namespace: fromNamespace(this.ref),
        pageSize: options.pageSize ?? 0,
        pageToken,
      });
      const response = await this.calls.unary(SemanticService.method.listReceipts, request, options);
      return {
        items: response.receipts.map(toRefreshReceipt),
        nextPageToken: response.nextPageToken,
        changeToken: undefined,
      };
    });
  }

  /**
   * Forget what is published. Memories are not touched; the next refresh builds it from cached vectors.
   *
   * Reasons: LEASE_HELD (a refresh is running), LEASE_FENCED.
   */
  async clearPartition(options: WriteOptions = {}): Promise<RefreshReceipt> {
    const request = create(ClearPartitionRequestSchema, {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
    });
    return toRefreshReceipt((await this.calls.unary(SemanticService.method.clearPartition, request, options)).receipt);
  }

  /** Say when the index is refreshed by itself. Reasons: INVALID_FIELD. */
  async setSchedule(options: ScheduleOptions = {}): Promise<RefreshSchedule> {
    const request = create(SetScheduleRequestSchema, {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
      interval: toDuration(options.intervalMs),
      onChangeDelay: toDuration(options.onChangeDelayMs),
    });
    return toRefreshSchedule((await this.calls.unary(SemanticService.method.setSchedule, request, options)).schedule);
  }

  /** How the maintenance of the answering process is doing, and what became of the namespace's refreshes. */
  async getMaintenanceHealth(options: CallOptions = {}): Promise<MaintenanceHealth> {
    const request = create(GetMaintenanceHealthRequestSchema, { namespace: fromNamespace(this.ref) });
    return toMaintenanceHealth(await this.calls.unary(SemanticService.method.getMaintenanceHealth, request, options));
  }
}
