/** How a failed call becomes an error: the reason decides the class, the attempts decide what is definite. */
import { Code, ConnectError } from "@connectrpc/connect";
import { fromBinary, toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { MemoryServiceError, MemoryUnavailableError, type ServiceErrorFields, type StatusCode } from "./errors.js";
import type { ItemError } from "./gen/durablememory/v1/item_error_pb.js";
import { ErrorReasonSchema } from "./gen/durablememory/v1/error_reason_pb.js";
import { ErrorInfoSchema, RetryInfoSchema, type ErrorInfo } from "./gen/google/rpc/error_details_pb.js";
import { Reason, REASON_DOMAIN } from "./generated/reasons.js";
import { reasonRow } from "./reason_rows.js";
import { notText } from "./text.js";

const PREFIX = "ERROR_REASON_";
const STATUS_HEADER = "grpc-status";
// How the library reports an answer that this side cannot read. It has no other mark.
const UNREADABLE =
  /^(parse binary: |decompression failed$|received compressed envelope|unsupported response encoding |invalid grpc-status: )/;
const PROXY_ATTEMPTS_HEADER = "x-envoy-attempt-count";

const CODES: Readonly<Record<Code, StatusCode>> = {
  [Code.Canceled]: "CANCELLED",
  [Code.Unknown]: "UNKNOWN",
  [Code.InvalidArgument]: "INVALID_ARGUMENT",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.NotFound]: "NOT_FOUND",
  [Code.AlreadyExists]: "ALREADY_EXISTS",
  [Code.PermissionDenied]: "PERMISSION_DENIED",
  [Code.ResourceExhausted]: "RESOURCE_EXHAUSTED",
  [Code.FailedPrecondition]: "FAILED_PRECONDITION",
  [Code.Aborted]: "ABORTED",
  [Code.OutOfRange]: "OUT_OF_RANGE",
  [Code.Unimplemented]: "UNIMPLEMENTED",
  [Code.Internal]: "INTERNAL",
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.DataLoss]: "DATA_LOSS",
  [Code.Unauthenticated]: "UNAUTHENTICATED",
};

// A call that fails on this side of the wire carries no reason. This status has only one.
const LOCAL_REASONS: Readonly<Partial<Record<StatusCode, Reason>>> = {
  DEADLINE_EXCEEDED: Reason.DEADLINE_EXCEEDED,
};

/** What was tried. `requestId` is undefined for a call that changes nothing; `attempts` counts from 1. */
export interface Attempted {
  readonly method: string;
  readonly requestId: string | undefined;
  readonly attempts: number;
}

/** The error for a failed call. */
export function errorOfCall(failed: ConnectError, attempted: Attempted): MemoryServiceError {
  const { info, retryAfterMs } = richDetails(failed);
  const isAnswer = answered(failed);
  let code = isAnswer ? CODES[failed.code] : codeOfLoss(failed);
  if (info === undefined && (code === "CANCELLED" || (code === "INTERNAL" && isAnswer))) {
    // CANCELLED: a server that stops ends calls in this way; the caller's own wish never comes as a status, it rejects
    // with the reason of the signal. INTERNAL: a proxy whose server is gone; the service gives its reason.
    code = "UNAVAILABLE";
  }
  const reason = info === undefined ? LOCAL_REASONS[code] : withoutPrefix(info.reason);
  const row = reasonRow(reason);
  const attempts = Math.max(attempted.attempts, attemptsOfProxy(failed.metadata));
  return serviceError(failed.rawMessage || code, {
    code,
    reason,
    metadata: info?.metadata,
    method: attempted.method,
    requestId: attempted.requestId,
    // An answer speaks of its own attempt: what an attempt before it did, it does not know.
    definite: attempted.requestId === undefined || (row?.definite === true && attempts === 1),
    attempts,
    retryAfterMs,
    cause: failed,
  });
}

/**
 * Refuses a request that has no form on the wire, before anything of it is sent.
 *
 * @throws MemoryServiceError, definite, for INVALID_FIELD.
 */
export function checkEncodable<I extends DescMessage>(schema: I, request: MessageShape<I>): void {
  const field = notText(schema, request);
  if (field !== undefined) {
    throw notTextError(field);
  }
  try {
    toBinary(schema, request);
  } catch (error) {
    throw serviceError(error instanceof Error ? error.message : String(error), { ...INVALID_FIELD, cause: error });
  }
}

const INVALID_FIELD = {
  code: "INVALID_ARGUMENT",
  reason: Reason.INVALID_FIELD,
  definite: true,
  attempts: 0,
} as const satisfies ServiceErrorFields;

/** The error for a field with half of a surrogate pair. */
export function notTextError(field: string): MemoryServiceError {
  return serviceError(`${field} has a lone surrogate, which is no character`, {
    ...INVALID_FIELD,
    metadata: { field },
  });
}

/** The error of what was not sent, because its time was over before. */
export function outOfTime(): MemoryServiceError {
  const reason = Reason.DEADLINE_EXCEEDED;
  const fields = { code: reason, reason, definite: true, attempts: 0 } as const;
  return serviceError("the time was over before the call was sent", fields);
}

/** An outage, for those who did not call: the call that met it has a request id and an outcome of its own. */
export function ofNobodysCall(outage: MemoryUnavailableError): MemoryUnavailableError {
  const { code, reason, metadata, retryAfterMs } = outage;
  const fields = { code, reason, metadata, retryAfterMs, definite: true, attempts: 0 };
  return new MemoryUnavailableError(outage.description, fields);
}

/**
 * What is thrown when `failure` kept a call from being repeated: what became of the attempt before it, which may have
 * been done. The caller's own wish comes as its reason.
 */
export function unrepeated(before: MemoryServiceError | undefined, failure: unknown, signal?: AbortSignal): unknown {
  if (before === undefined || signal?.aborted === true) {
    return failure;
  }
  before.cause = failure;
  return before;
}

/** The error of one of several calls that are one to the caller: of the whole, nothing is certain. */
export function ofSeveral(error: unknown): unknown {
  if (error instanceof MemoryServiceError) {
    const uncertain: { definite: boolean } = error;
    uncertain.definite = false;
  }
  return error;
}

/** The error for one refused item of a batch, as if it had been a call of its own. */
export function errorOfItem(item: ItemError): MemoryServiceError {
  const known = ErrorReasonSchema.values.find(({ number }) => number === item.reason.valueOf());
  const reason = known === undefined ? `UNKNOWN_${item.reason}` : withoutPrefix(known.name);
  return serviceError(item.message, {
    code: (reasonRow(reason)?.code ?? "UNKNOWN") as StatusCode,
    reason,
    metadata: item.metadata,
    // The others went on, this item did not: the answer itself says so.
    definite: true,
  });
}

function serviceError(description: string, fields: ServiceErrorFields): MemoryServiceError {
  const row = reasonRow(fields.reason);
  const outage = row === undefined ? fields.code === "UNAVAILABLE" : row.outage;
  return outage ? new MemoryUnavailableError(description, fields) : new MemoryServiceError(description, fields);
}

/** Whether the status comes from the other side of the wire. */
function answered(failed: ConnectError): boolean {
  return failed.metadata.has(STATUS_HEADER);
}

/**
 * The status of a call without an answer. What the transport reports when a connection breaks depends on the moment:
 * ABORTED, CANCELLED, INTERNAL; to the caller it is one thing, a service out of reach.
 */
function codeOfLoss(failed: ConnectError): StatusCode {
  if (UNREADABLE.test(failed.rawMessage)) {
    return "INTERNAL";
  }
  switch (failed.code) {
    case Code.Aborted:
    case Code.Canceled:
      return "UNAVAILABLE";
    case Code.Internal:
      // Any other error of this process has a cause without a system's code.
      return failed.cause === undefined || isSystemError(failed.cause) ? "UNAVAILABLE" : "INTERNAL";
    default:
      return CODES[failed.code];
  }
}

function isSystemError(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string";
}

function withoutPrefix(reason: string): string {
  return reason.startsWith(PREFIX) ? reason.slice(PREFIX.length) : reason;
}

function richDetails(failed: ConnectError): { info: ErrorInfo | undefined; retryAfterMs: number | undefined } {
  let info: ErrorInfo | undefined;
  let retryAfterMs: number | undefined;
  for (const detail of failed.details) {
    if (!("type" in detail)) {
      continue;
    }
    try {
      if (detail.type === ErrorInfoSchema.typeName) {
        const candidate = fromBinary(ErrorInfoSchema, detail.value);
        // A proxy may add details of its own domain; its reasons are not ours.
        info = candidate.domain === REASON_DOMAIN ? candidate : info;
      } else if (detail.type === RetryInfoSchema.typeName) {
        const { retryDelay } = fromBinary(RetryInfoSchema, detail.value);
        retryAfterMs = retryDelay === undefined ? undefined : durationMs(retryDelay);
      }
    } catch {
      // A detail that is garbled says nothing; the status still does.
    }
  }
  return { info, retryAfterMs };
}

function attemptsOfProxy(headers: Headers): number {
  const counts = (headers.get(PROXY_ATTEMPTS_HEADER) ?? "").split(",").map((count) => count.trim());
  return Math.max(1, ...counts.filter((count) => /^[0-9]+$/.test(count)).map(Number));
}
