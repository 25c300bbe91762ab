/** Following a namespace: its changes in order, without gaps, across lost streams. */
import { create } from "@bufbuild/protobuf";
import { backoffMs, callPolicy } from "./call_policy.js";
import type { Calls } from "./calls.js";
import { IncompleteStreamError, MemoryUnavailableError } from "./errors.js";
import {
  RepositoryService,
  WatchNamespaceRequestSchema,
  type WatchNamespaceResponse,
} from "./gen/durablememory/v1/repository_service_pb.js";
import { toWatchedChange, type WatchedChange } from "./values/change_set.js";
import { fromNamespace, toChangeToken, type ChangeToken, type Namespace, type Revision } from "./values/namespace.js";
import { LinkedAbort, sleep } from "./waiting.js";

const METHOD = RepositoryService.method.watchNamespace;
const MAX_EXPONENT = 10;

/** How to watch. */
export interface WatchOptions {
  /** Where to start; a token also makes sure that it is still the same history. Default: now. */
  readonly after?: ChangeToken | Revision | undefined;
  /** Whether to send the revisions that each change made. */
  readonly includeNodes?: boolean | undefined;
  /** Give up when the service was out of reach for so many milliseconds. Default: never. */
  readonly giveUpAfterMs?: number | undefined;
  /** Ends the watch: reading rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The changes of a namespace, without an end. Leave the loop, or close it, to end it.
 *
 *     for await (const change of memory.watch({ after: token })) { ... }
 */
export class Watch implements AsyncIterableIterator<WatchedChange> {
  readonly #calls: Calls;
  readonly #namespace: Namespace;
  readonly #options: WatchOptions;
  #abort: LinkedAbort | undefined;
  #after: bigint | undefined;
  #historyId: string | undefined;
  #position: ChangeToken | undefined;
  #stream: AsyncGenerator<WatchNamespaceResponse, void, undefined> | undefined;
  #failures = 0;
  #lostAt: number | undefined;
  #closed = false;

  constructor(calls: Calls, namespace: Namespace, options: WatchOptions) {
    const { after } = options;
    this.#calls = calls;
    this.#namespace = namespace;
    this.#options = options;
    if (typeof after === "object") {
      this.#after = after.namespaceRevision;
      this.#historyId = after.historyId;
      this.#position = after;
    } else {
      this.#after = after === undefined ? undefined : BigInt(after);
    }
  }

  /**
   * The change token up to which everything has been read: keep it to go on from there another time. Undefined until
   * the first message when the watch was not told where to start.
   */
  get position(): ChangeToken | undefined {
    return this.#position;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next change. A watch that throws is closed. */
  async next(): Promise<IteratorResult<WatchedChange, undefined>> {
    try {
      return await this.#next();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<WatchedChange, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  /** End the watch; a reader that waits gets the end of the iteration. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#abort?.abort();
    this.#abort?.release();
    await this.#drop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #next(): Promise<IteratorResult<WatchedChange, undefined>> {
    while (!this.#closed) {
      let message: WatchNamespaceResponse | undefined;
      try {
        message = await this.#read();
        if (message === undefined) {
          await this.#lost(undefined);
          continue;
        }
      } catch (error) {
        if (this.#isClosed()) {
          break;
        }
        if (!(error instanceof MemoryUnavailableError)) {
          throw error;
        }
        await this.#lost(error);
        continue;
      }
      this.#failures = 0;
      this.#lostAt = undefined;
      if (message.event.case === "heartbeat") {
        this.#heard(toChangeToken(message.event.value.changeToken));
      } else if (message.event.case === "change") {
        const change = toWatchedChange(message.event.value);
        if (this.#moved(change.changeToken)) {
          return { done: false, value: change };
        }
      }
    }
    return { done: true, value: undefined };
  }

  /** The next message, or undefined at the end of the stream. */
  async #read(): Promise<WatchNamespaceResponse | undefined> {
    this.#stream ??= this.#calls.stream(
      METHOD,
      create(WatchNamespaceRequestSchema, {
        namespace: fromNamespace(this.#namespace),
        afterNamespaceRevision: this.#after,
        historyId: this.#historyId,
        includeNodes: this.#options.includeNodes ?? false,
      }),
      { signal: this.#signal() },
    );
    try {
      const result = await this.#stream.next();
      if (result.done !== true) {
        return result.value;
      }
    } catch (error) {
      this.#stream = undefined;
      throw error;
    }
    this.#stream = undefined;
    return undefined;
  }

  /** Wait before the next attempt. @throws the error, when the time to give up has come. */
  async #lost(error: MemoryUnavailableError | undefined): Promise<void> {
    const now = performance.now();
    this.#lostAt ??= now;
    const { giveUpAfterMs } = this.#options;
    if (error !== undefined && giveUpAfterMs !== undefined && now - this.#lostAt >= giveUpAfterMs) {
      throw error;
    }
    this.#failures += 1;
    const { retry } = callPolicy(METHOD);
    if (retry === undefined) {
      throw new TypeError("the service config has no retry policy for watches");
    }
    try {
      const backoff = backoffMs(retry, Math.min(this.#failures, MAX_EXPONENT));
      await sleep(Math.max(backoff, error?.retryAfterMs ?? 0), this.#signal());
    } catch (reason) {
      if (!this.#closed) {
        throw reason;
      }
    }
  }

  #heard(token: ChangeToken): void {
    // The watch began now, and now has a name: from here on it can be resumed.
    this.#after ??= token.namespaceRevision;
    this.#historyId = token.historyId;
    this.#position = { historyId: token.historyId, namespaceRevision: this.#after };
  }

  /** Whether the change is the next one. @throws IncompleteStreamError for a gap. */
  #moved(token: ChangeToken): boolean {
    if (this.#after !== undefined && token.namespaceRevision <= this.#after) {
      return false;
    }
    if (this.#after !== undefined && token.namespaceRevision !== this.#after + 1n) {
      throw new IncompleteStreamError(
        `the watch went from namespace revision ${this.#after} to ${token.namespaceRevision}`,
      );
    }
    this.#after = token.namespaceRevision;
    this.#historyId = token.historyId;
    this.#position = token;
    return true;
  }

  /** What ends the reading. It follows the caller's only from then on: a watch that nobody reads leaves no trace. */
  #signal(): AbortSignal {
    this.#abort ??= new LinkedAbort(this.#options.signal);
    return this.#abort.signal;
  }

  // The flag changes while a reader waits, which control flow analysis cannot see.
  #isClosed(): boolean {
    return this.#closed;
  }

  async #drop(): Promise<void> {
    const stream = this.#stream;
    this.#stream = undefined;
    await stream?.return().catch(() => undefined);
  }
}
