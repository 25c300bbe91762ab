/**
 * How long a call may take and when it is repeated, from the service config that all languages share.
 *
 * The policy is executed here and not by the transport: whether an error is definite hangs on how often a call was
 * sent, and only who repeats it knows.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import type { MemoryServiceError } from "./errors.js";
import { SERVICE_CONFIG } from "./generated/service_config.js";
import { reasonRow } from "./reason_rows.js";

const JITTER = 0.2;
const RETRY_INFO_GROWTH = 1.5;
const RETRY_INFO_MAX_MS = 5_000;

/** A gRPC retry policy; `maxAttempts` includes the first. */
export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly backoffMultiplier: number;
  readonly codes: ReadonlySet<string>;
}

/** `timeoutMs`: the default deadline of the whole call, all attempts together; undefined for streams. */
export interface CallPolicy {
  readonly timeoutMs: number | undefined;
  readonly retry: RetryPolicy | undefined;
}

interface ConfigEntry {
  readonly name: readonly { readonly service?: string; readonly method?: string }[];
  readonly timeout?: string;
  readonly retryPolicy?: {
    readonly maxAttempts: number;
    readonly initialBackoff: string;
    readonly maxBackoff: string;
    readonly backoffMultiplier: number;
    readonly retryableStatusCodes: readonly string[];
  };
}

const POLICIES: ReadonlyMap<string, CallPolicy> = new Map(
  (SERVICE_CONFIG.methodConfig as readonly ConfigEntry[]).flatMap((entry) =>
    entry.name.map((name) => [`${name.service ?? ""}/${name.method ?? ""}`, policyOf(entry)] as const),
  ),
);

/** The deadline of what is one call to its caller and several to the service, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = POLICIES.get("/")?.timeoutMs;

/** The policy of one RPC: the most specific entry alone counts. */
export function callPolicy(method: DescMethod): CallPolicy {
  const service = method.parent.typeName;
  return (
    POLICIES.get(`${service}/${method.name}`) ??
    POLICIES.get(`${service}/`) ??
    POLICIES.get("/") ?? { timeoutMs: undefined, retry: undefined }
  );
}

/**
 * Milliseconds to wait before the next attempt, or undefined if there is to be none. `attempt` counts from 1.
 *
 * UNAVAILABLE waits by the retry policy; a reason with RetryInfo waits as the service says, as often as the deadline
 * allows. Nothing else is ever repeated. `maxAttempts` bounds both from above.
 */
export function retryDelayMs(
  policy: CallPolicy,
  error: MemoryServiceError,
  attempt: number,
  maxAttempts = Number.POSITIVE_INFINITY,
): number | undefined {
  const { retry } = policy;
  if (retry === undefined || attempt >= maxAttempts) {
    return undefined;
  }
  if (retry.codes.has(error.code)) {
    return attempt < retry.maxAttempts ? backoffMs(retry, attempt) : undefined;
  }
  // A wait of nothing would be repeated without a pause.
  if (reasonRow(error.reason)?.retry !== "retry_info" || !error.retryAfterMs) {
    return undefined;
  }
  return spread(Math.min(RETRY_INFO_MAX_MS, error.retryAfterMs * RETRY_INFO_GROWTH ** (attempt - 1)));
}

/** Milliseconds to wait after the failed attempt number `attempt`, from 1. */
export function backoffMs(retry: RetryPolicy, attempt: number): number {
  return spread(Math.min(retry.maxBackoffMs, retry.initialBackoffMs * retry.backoffMultiplier ** (attempt - 1)));
}

function policyOf(entry: ConfigEntry): CallPolicy {
  const retry = entry.retryPolicy;
  return {
    timeoutMs: entry.timeout === undefined ? undefined : milliseconds(entry.timeout),
    retry:
      retry === undefined
        ? undefined
        : {
            maxAttempts: retry.maxAttempts,
            initialBackoffMs: milliseconds(retry.initialBackoff),
            maxBackoffMs: milliseconds(retry.maxBackoff),
            backoffMultiplier: retry.backoffMultiplier,
            codes: new Set(retry.retryableStatusCodes),
          },
  };
}

function milliseconds(duration: string): number {
  return Number(duration.replace(/s$/, "")) * 1_000;
}

// Callers that failed together must not come back together.
function spread(exact: number): number {
  return exact * (1 - JITTER + 2 * JITTER * Math.random());
}
