/** Admissions and uses: what entered a model's input, and what was cited or acted on. */
import type { MemoryServiceError, MemoryUnavailableError } from "../errors.js";
import { errorOfItem } from "../failures.js";
import type {
  AdmissionOutcome as AdmissionOutcomeMessage,
  UsageSummary as UsageSummaryMessage,
  UseOutcome as UseOutcomeMessage,
} from "../gen/durablememory/v1/access_pb.js";
import { admissionVerdict, useVerdict } from "../generated/enum_codecs.js";
import type { AdmissionVerdict, UseVerdict } from "../generated/enums.js";
import { toCitationIf, toNodeRevision, type Citation, type NodeRevision } from "./citation.js";
import type { ChangeToken } from "./namespace.js";
import type { Hit } from "./recall.js";
import { toDateIf } from "./times.js";

/** What happened to one memory that was to enter a model's input. Refused: it must leave the input. */
export interface AdmissionOutcome {
  readonly nodeRevision: NodeRevision;
  readonly verdict: AdmissionVerdict;
  readonly admitted: boolean;
  readonly citation: Citation | undefined;
  readonly eventId: string;
  readonly error: MemoryServiceError | undefined;
}

/** What may stay in a model's input, and what must leave it. */
export interface Admission {
  /** What may stay. */
  readonly hits: readonly Hit[];
  readonly outcomes: readonly AdmissionOutcome[];
  /** The outcomes of what must leave. */
  readonly refused: readonly AdmissionOutcome[];
  /** The service could not answer and the caller chose to carry on; then nothing may stay, and `error` says why. */
  readonly unavailable: boolean;
  readonly error: MemoryUnavailableError | undefined;
  readonly contextId: string | undefined;
  readonly changeToken: ChangeToken | undefined;
}

/** What happened to one use that was to be recorded. */
export interface UseOutcome {
  readonly verdict: UseVerdict;
  readonly recorded: boolean;
  readonly citation: Citation | undefined;
  readonly eventId: string;
  readonly error: MemoryServiceError | undefined;
}

/** How often one node revision entered a model's input, and how often it was used. */
export interface UsageSummary {
  readonly nodeRevision: NodeRevision;
  readonly admissionCount: number;
  readonly useCount: number;
  readonly lastAdmittedAt: Date | undefined;
  readonly lastUsedAt: Date | undefined;
}

export function admissionOf(given: {
  readonly hits?: readonly Hit[];
  readonly outcomes?: readonly AdmissionOutcome[];
  readonly error?: MemoryUnavailableError | undefined;
  readonly contextId?: string;
  readonly changeToken?: ChangeToken;
}): Admission {
  const outcomes = given.outcomes ?? [];
  return {
    hits: given.hits ?? [],
    outcomes,
    refused: outcomes.filter((outcome) => !outcome.admitted),
    unavailable: given.error !== undefined,
    error: given.error,
    contextId: given.contextId,
    changeToken: given.changeToken,
  };
}

export function toAdmissionOutcome(message: AdmissionOutcomeMessage): AdmissionOutcome {
  const verdict = admissionVerdict.name(message.verdict);
  return {
    nodeRevision: toNodeRevision(message.nodeRevision),
    verdict,
    admitted: verdict === "ADMITTED",
    citation: toCitationIf(message.citation),
    eventId: message.eventId,
    error: message.error === undefined ? undefined : errorOfItem(message.error),
  };
}

export function toUseOutcome(message: UseOutcomeMessage): UseOutcome {
  const verdict = useVerdict.name(message.verdict);
  return {
    verdict,
    recorded: verdict === "RECORDED",
    citation: toCitationIf(message.citation),
    eventId: message.eventId,
    error: message.error === undefined ? undefined : errorOfItem(message.error),
  };
}

export function toUsageSummary(message: UsageSummaryMessage): UsageSummary {
  return {
    nodeRevision: toNodeRevision(message.nodeRevision),
    admissionCount: Number(message.admissionCount),
    useCount: Number(message.useCount),
    lastAdmittedAt: toDateIf(message.lastAdmittedAt),
    lastUsedAt: toDateIf(message.lastUsedAt),
  };
}
