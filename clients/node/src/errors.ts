import type { Reason } from "./generated/reasons.js";

/** The gRPC status of a failed call. */
export type StatusCode =
  | "CANCELLED"
  | "UNKNOWN"
  | "INVALID_ARGUMENT"
  | "DEADLINE_EXCEEDED"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "OUT_OF_RANGE"
  | "UNIMPLEMENTED"
  | "INTERNAL"
  | "UNAVAILABLE"
  | "DATA_LOSS"
  | "UNAUTHENTICATED";

/** Anything that this client throws by itself; wrong arguments throw TypeError or RangeError instead. */
export class DurableMemoryError extends Error {
  override readonly name: string = "DurableMemoryError";
}

/**
 * A snapshot, an export or a refresh that ended too early or does not match what it says of itself, a watch with a gap,
 * or an answer with another number of outcomes than was asked for. Nothing of it may be relied on.
 */
export class IncompleteStreamError extends DurableMemoryError {
  override readonly name: string = "IncompleteStreamError";
}

/** What a `MemoryServiceError` says. */
export interface ServiceErrorFields {
  readonly code: StatusCode;
  readonly reason?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly method?: string | undefined;
  readonly requestId?: string | undefined;
  readonly definite?: boolean | undefined;
  readonly attempts?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** The service refused or failed a call. `isReason` tells the reasons apart. */
export class MemoryServiceError extends DurableMemoryError {
  override readonly name: string = "MemoryServiceError";

  /**
   * The name in the contract's ErrorReason without its prefix, or undefined if the answer did not come from the
   * service itself (a lost connection, a proxy). A reason that this version does not know is kept as it came.
   */
  readonly reason: Reason | (string & {}) | undefined;

  /** The gRPC status. */
  readonly code: StatusCode;

  /** One sentence for a person: the message without the reason that it begins with. */
  readonly description: string;

  /** Every value that the message mentions: `node_id`, `expected`, `actual`, `field`, ... */
  readonly metadata: Readonly<Record<string, string>>;

  /** The RPC, as `Service.Method`; empty for the refused item of a batch, and for what was not sent. */
  readonly method: string;

  /**
   * What identifies the call: give it to the same method again, with the same arguments, to learn or complete the
   * first outcome. Undefined for calls that change nothing.
   */
  readonly requestId: string | undefined;

  /**
   * True: the call certainly changed nothing. False: it may have. An error of a later attempt says nothing about the
   * attempts before it.
   */
  readonly definite: boolean;

  /** How often the call was sent, by this client and by proxies that say so; 0 if it was not. */
  readonly attempts: number;

  /** Milliseconds to wait before another attempt, if the service said so. */
  readonly retryAfterMs: number | undefined;

  constructor(description: string, fields: ServiceErrorFields) {
    super(
      `${fields.reason ?? fields.code}: ${description}`,
      fields.cause === undefined ? undefined : { cause: fields.cause },
    );
    this.reason = fields.reason;
    this.code = fields.code;
    this.description = description;
    this.metadata = fields.metadata ?? {};
    this.method = fields.method ?? "";
    this.requestId = fields.requestId;
    this.definite = fields.definite ?? false;
    this.attempts = fields.attempts ?? 1;
    this.retryAfterMs = fields.retryAfterMs;
  }
}

/**
 * The service cannot answer now: it is down, starting, overloaded, too slow, or out of reach.
 *
 * The one class to catch for "carry on without memory". What the call would have changed may still have happened
 * unless `definite` says otherwise.
 */
export class MemoryUnavailableError extends MemoryServiceError {
  override readonly name: string = "MemoryUnavailableError";
}

/**
 * Whether an error is a refusal of the service for one of these reasons.
 *
 *     catch (error) {
 *       if (!isReason(error, Reason.REVISION_CONFLICT)) throw error;
 *       console.log("changed meanwhile, to revision", error.metadata["actual"]);
 *     }
 */
export function isReason<R extends Reason>(
  error: unknown,
  ...reasons: R[]
): error is MemoryServiceError & { reason: R } {
  return error instanceof MemoryServiceError && (reasons as (string | undefined)[]).includes(error.reason);
}
