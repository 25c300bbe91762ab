import { create } from "@bufbuild/protobuf";
import type { CallOptions } from "../calls.js";
import {
  GetUsageSummaryRequestSchema,
  PreviewRecallRequestSchema,
  RecallService,
} from "../gen/durablememory/v1/recall_service_pb.js";
import { Pages, type PageOptions } from "../paging.js";
import { toUsageSummary, type UsageSummary } from "../values/access.js";
import { texts } from "../values/memory.js";
import { fromNamespace, toChangeToken } from "../values/namespace.js";
import { fromFilter, toRecall, type Recall, type RecallFilter } from "../values/recall.js";
import { fromPolicy, type Policy } from "../values/session.js";
import { SessionCalls } from "./session_calls.js";

/** How to preview a recall: by a policy of this call. */
export interface PreviewOptions extends Policy, CallOptions {
  readonly filter?: RecallFilter | undefined;
  readonly includeSurroundings?: boolean | undefined;
}

/** Previews and usage. To recall for a model, open a session and begin a run. */
export class RecallCalls extends SessionCalls {
  /**
   * Recall without a session, by a policy of this call, for people and tools.
   *
   * Nothing is recorded, and so nothing of it may enter a model's input.
   *
   * Reasons: SEMANTIC_UNAVAILABLE, NAMESPACE_TOO_LARGE.
   */
  async preview(query: string, options: PreviewOptions = {}): Promise<Recall> {
    const request = create(PreviewRecallRequestSchema, {
      namespace: fromNamespace(this.ref),
      query,
      policy: fromPolicy(options),
      filter: fromFilter(options.filter),
      includeSurroundings: options.includeSurroundings ?? false,
    });
    return toRecall(this.ref, await this.calls.unary(RecallService.method.previewRecall, request, options));
  }

  /** Admissions and uses per node revision, of some nodes (at most 128) or of all that have any. */
  usage(nodeIds: readonly string[] = [], options: PageOptions & CallOptions = {}): Pages<UsageSummary> {
    const wanted = texts(nodeIds, "nodeIds");
    return new Pages(async (pageToken) => {
      const request = create(GetUsageSummaryRequestSchema, {
        namespace: fromNamespace(this.ref),
        nodeIds: wanted,
        pageSize: options.pageSize ?? 0,
        pageToken,
      });
      const response = await this.calls.unary(RecallService.method.getUsageSummary, request, options);
      return {
        items: response.summaries.map(toUsageSummary),
        nextPageToken: response.nextPageToken,
        changeToken: toChangeToken(response.changeToken),
      };
    });
  }
}
