/** A refresh of the vector index: how far it has come, and its receipt. */
import { callPolicy, retryDelayMs } from "./call_policy.js";
import { deadlineOf, remaining, type CallOptions, type Calls } from "./calls.js";
import { IncompleteStreamError, MemoryServiceError } from "./errors.js";
import { unrepeated } from "./failures.js";
import { SemanticService, type RefreshSemanticRecallRequest } from "./gen/durablememory/v1/semantic_service_pb.js";
import { newRequestId } from "./identity.js";
import { toRefreshProgress, toRefreshReceipt, type RefreshProgress, type RefreshReceipt } from "./values/semantic.js";
import { sleep } from "./waiting.js";

const METHOD = SemanticService.method.refreshSemanticRecall;

/**
 * Wait for it, or iterate it to see how far it has come. It begins then, and leaving the loop ends it. Doing so again
 * repeats the call: of a refresh that has ended, the service then gives the first receipt.
 *
 *     const receipt = await memory.refreshSemanticRecall("assistant").wait(console.log);
 *
 * Only one that ends without an error is a refresh; `receipt` is known from then on. A lost connection is taken up
 * again by the retry policy of all calls, and vectors that were made are not made twice.
 */
export class Refresh implements AsyncIterable<RefreshProgress> {
  readonly #calls: Calls;
  readonly #request: RefreshSemanticRecallRequest;
  readonly #options: CallOptions;
  #receipt: RefreshReceipt | undefined;

  constructor(calls: Calls, request: RefreshSemanticRecallRequest, options: CallOptions) {
    request.requestId ||= newRequestId();
    this.#calls = calls;
    this.#request = request;
    this.#options = options;
  }

  /** The record of the refresh; undefined until it has ended without an error. */
  get receipt(): RefreshReceipt | undefined {
    return this.#receipt;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RefreshProgress, void, undefined> {
    const { signal } = this.#options;
    const endsAt = deadlineOf(this.#options.timeoutMs);
    this.#receipt = undefined;
    let failed: MemoryServiceError | undefined; // of the attempt before
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#receipt = yield* this.#attempt({ timeoutMs: remaining(endsAt), signal }, attempt);
        break;
      } catch (error) {
        if (!(error instanceof MemoryServiceError) || error.attempts === 0) {
          throw unrepeated(failed, error, signal);
        }
        failed = error;
        const delay = retryDelayMs(callPolicy(METHOD), error, attempt);
        if (delay === undefined || (endsAt !== undefined && performance.now() + delay >= endsAt)) {
          throw error;
        }
        await sleep(delay, signal);
      }
    }
    this.#ended();
  }

  /**
   * Refresh, and return the receipt. `onProgress` is called with every step.
   *
   * Reasons: SESSION_NOT_FOUND, SESSION_CLOSED, SEMANTIC_UNAVAILABLE (no generation, or the provider failed),
   * CONSISTENCY_UNSUPPORTED, LEASE_HELD (somebody else refreshes it now), LEASE_FENCED, INDEX_REVISION_CONFLICT,
   * SOURCE_DRIFT, QUOTA_EXCEEDED.
   */
  async wait(onProgress?: (progress: RefreshProgress) => void): Promise<RefreshReceipt> {
    for await (const progress of this) {
      onProgress?.(progress);
    }
    return this.#ended();
  }

  async *#attempt(
    options: CallOptions,
    attempt: number,
  ): AsyncGenerator<RefreshProgress, RefreshReceipt | undefined, undefined> {
    let receipt: RefreshReceipt | undefined;
    for await (const { message } of this.#calls.stream(METHOD, this.#request, options, attempt)) {
      if (message.case === "receipt") {
        receipt = toRefreshReceipt(message.value);
      } else if (message.case === "progress") {
        yield toRefreshProgress(message.value);
      }
    }
    return receipt;
  }

  #ended(): RefreshReceipt {
    if (this.#receipt === undefined) {
      throw new IncompleteStreamError("the refresh ended before its receipt");
    }
    return this.#receipt;
  }
}
