/** One call of the contract: its request id, its deadline, its repetitions, and its errors. */
import type {
  DescMessage,
  DescMethod,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageShape,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { callPolicy, DEFAULT_TIMEOUT_MS, retryDelayMs } from "./call_policy.js";
import { MemoryUnavailableError, type MemoryServiceError } from "./errors.js";
import { checkEncodable, errorOfCall, ofNobodysCall, outOfTime, unrepeated, type Attempted } from "./failures.js";
import { newRequestId } from "./identity.js";
import type { Transport } from "./transport.js";
import { sleep } from "./waiting.js";

/** What every call takes. */
export interface CallOptions {
  /** The deadline of the whole call, all attempts together, in milliseconds. Default: 10 seconds; none for streams. */
  readonly timeoutMs?: number | undefined;
  /** Gives the call up: it rejects with the signal's reason. What it would have changed may still have happened. */
  readonly signal?: AbortSignal | undefined;
}

/** What every call takes that changes something. */
export interface WriteOptions extends CallOptions {
  /** Identifies the change: repeating it has the first result. Default: minted, once per call. */
  readonly requestId?: string | undefined;
}

/** What each of several calls takes that are one to their caller. */
export interface StepOptions extends CallOptions {
  /** Called when it has to wait for another call of its run or session. */
  readonly onWait?: (() => void) | undefined;
}

/** What a recall does when the service cannot answer: throw MemoryUnavailableError, or find nothing and say so. */
export type OnUnavailable = "throw" | "empty";

/** How long those try by default who can go on without an answer. */
export const PATIENCE_MS = 2_000;

/** How often they do. */
export const PATIENT_ATTEMPTS = 2;

/** After an outage, calls that may go without an answer do so at once for this long. */
const OUTAGE_PAUSE_MS = 2_000;

/** Makes calls over one transport. */
export class Calls {
  readonly onUnavailable: OnUnavailable;
  readonly #transport: Transport;
  #outage: { readonly endsAt: number; readonly error: MemoryUnavailableError } | undefined;

  constructor(transport: Transport, onUnavailable: OnUnavailable = "throw") {
    this.#transport = transport;
    this.onUnavailable = checked(onUnavailable);
  }

  /**
   * Make a call. A change without a request id gets one, which all attempts share. `maxAttempts` bounds them further.
   *
   * @throws MemoryServiceError; the signal's reason.
   */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    options: CallOptions = {},
    maxAttempts?: number,
  ): Promise<MessageShape<O>> {
    const policy = callPolicy(method);
    checkEncodable(method.input, request);
    const requestId = settledRequestId(method, request);
    const endsAt = deadlineOf(options.timeoutMs ?? policy.timeoutMs);
    let failed: MemoryServiceError | undefined; // of the attempt before
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await this.#transport.unary(method, request, someOf(endsAt, options.signal), options.signal);
        this.#outage = undefined;
        return response;
      } catch (failure) {
        if (!(failure instanceof ConnectError)) {
          throw unrepeated(failed, failure, options.signal);
        }
        failed = errorOfCall(failure, { method: nameOf(method), requestId, attempts: attempt });
        const delay = retryDelayMs(policy, failed, attempt, maxAttempts);
        if (delay === undefined || (endsAt !== undefined && performance.now() + delay >= endsAt)) {
          throw failed;
        }
        await sleep(delay, options.signal);
      }
    }
  }

  /** Stream messages up, `first` before the others; one attempt. @throws MemoryServiceError; the signal's reason. */
  async upload<I extends DescMessage, O extends DescMessage>(
    method: DescMethodClientStreaming<I, O>,
    first: MessageShape<I>,
    others: AsyncIterable<MessageShape<I>>,
    options: CallOptions,
  ): Promise<MessageShape<O>> {
    checkEncodable(method.input, first);
    const requestId = settledRequestId(method, first);
    const limit = options.timeoutMs ?? callPolicy(method).timeoutMs;
    async function* requests(): AsyncGenerator<MessageShape<I>> {
      yield first;
      for await (const other of others) {
        checkEncodable(method.input, other);
        yield other;
      }
    }
    try {
      const left = someOf(deadlineOf(limit), options.signal);
      return await this.#transport.upload(method, requests(), left, options.signal);
    } catch (failure) {
      throw translated(failure, { method: nameOf(method), requestId, attempts: 1 });
    }
  }

  /**
   * The messages of a streaming call. It is not repeated here: whoever reads it knows how far it got. `attempt` counts
   * how often the caller has started this one.
   */
  async *stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageShape<I>,
    options: CallOptions = {},
    attempt = 1,
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    checkEncodable(method.input, request);
    const requestId = settledRequestId(method, request);
    const limit = options.timeoutMs ?? callPolicy(method).timeoutMs;
    const left = someOf(deadlineOf(limit), options.signal);
    const replies = this.#transport.stream(method, request, left, options.signal);
    try {
      yield* replies;
    } catch (failure) {
      throw translated(failure, { method: nameOf(method), requestId, attempts: attempt });
    } finally {
      replies.cancel();
    }
  }

  /**
   * Do `calls`, which share what is left of one deadline. With "empty", an outage is returned instead of thrown, soon,
   * and at once while it lasts.
   */
  async guarded<T>(
    onUnavailable: OnUnavailable | undefined,
    options: CallOptions,
    calls: (left: () => StepOptions, maxAttempts?: number) => Promise<T>,
  ): Promise<T | MemoryUnavailableError> {
    if (checked(onUnavailable ?? this.onUnavailable) === "throw") {
      return calls(sharedDeadline(options));
    }
    if (this.#outage !== undefined && performance.now() < this.#outage.endsAt) {
      return ofNobodysCall(this.#outage.error);
    }
    const caller = { hurried: options.timeoutMs !== undefined && options.timeoutMs < PATIENCE_MS };
    const onWait = (): void => {
      caller.hurried = true;
    };
    try {
      return await calls(sharedDeadline({ ...options, onWait }, PATIENCE_MS), PATIENT_ATTEMPTS);
    } catch (error) {
      if (!(error instanceof MemoryUnavailableError) || options.signal?.aborted === true) {
        throw error;
      }
      // That a caller had less time than is usual, or waited for another call, says nothing about the service.
      if (error.attempts > 0 && !(caller.hurried && error.code === "DEADLINE_EXCEEDED")) {
        this.#outage = { endsAt: performance.now() + OUTAGE_PAUSE_MS, error };
      }
      return error;
    }
  }
}

/** The RPC as `Service.Method`. */
function nameOf(method: DescMethod): string {
  return `${method.parent.name}.${method.name}`;
}

/** The request id of a change, minted if there is none; undefined for a call that changes nothing. */
function settledRequestId(method: DescMethod, request: object): string | undefined {
  const fields = request as { requestId?: string; admit?: boolean };
  if (
    method.idempotency === IdempotencyLevel.NO_SIDE_EFFECTS ||
    !("requestId" in method.input.field) ||
    fields.admit === false
  ) {
    return undefined;
  }
  fields.requestId ||= newRequestId();
  return fields.requestId;
}

function translated(failure: unknown, attempted: Attempted): unknown {
  return failure instanceof ConnectError ? errorOfCall(failure, attempted) : failure;
}

/** The moment at which a call must be done. @throws RangeError. */
export function deadlineOf(timeoutMs: number | undefined): number | undefined {
  if (timeoutMs === undefined) {
    return undefined;
  }
  if (Number.isNaN(timeoutMs) || timeoutMs < 0) {
    throw new RangeError(`timeoutMs is ${timeoutMs}; expected milliseconds from 0`);
  }
  return performance.now() + timeoutMs;
}

/** Milliseconds until then. */
export function remaining(endsAt: number | undefined): number | undefined {
  return endsAt === undefined ? undefined : Math.max(0, endsAt - performance.now());
}

/** What is left for an attempt. @throws the signal's reason; MemoryServiceError, definite, when nothing is. */
function someOf(endsAt: number | undefined, signal: AbortSignal | undefined): number | undefined {
  signal?.throwIfAborted();
  const left = remaining(endsAt);
  if (left === 0) {
    throw outOfTime();
  }
  return left;
}

/** What each of several calls may take that are one to their caller, and share one deadline. @throws RangeError. */
export function sharedDeadline(options: StepOptions, unstatedMs = DEFAULT_TIMEOUT_MS): () => StepOptions {
  const { timeoutMs, signal, onWait } = options;
  const endsAt = deadlineOf(timeoutMs ?? unstatedMs);
  return () => ({ signal, onWait, timeoutMs: remaining(endsAt) });
}

function checked(choice: OnUnavailable): OnUnavailable {
  if (!["throw", "empty"].includes(choice)) {
    throw new RangeError(`onUnavailable is "throw" or "empty", not ${JSON.stringify(choice)}`);
  }
  return choice;
}
