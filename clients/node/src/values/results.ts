/** What writes answer. Each has the citation to go on with: to cite, to revise, to retire. */
import type { MemoryServiceError } from "../errors.js";
import { errorOfItem } from "../failures.js";
import type {
  ActivateCandidatesResponse,
  ProposeCandidatesResponse,
  RejectCandidatesResponse,
} from "../gen/durablememory/v1/candidate_service_pb.js";
import type { ItemError } from "../gen/durablememory/v1/item_error_pb.js";
import type { Citation as CitationMessage } from "../gen/durablememory/v1/citation_pb.js";
import type { ChangeToken as ChangeTokenMessage } from "../gen/durablememory/v1/change_token_pb.js";
import { activationOutcome, proposalOutcome, rejectionOutcome } from "../generated/enum_codecs.js";
import type {
  ActivationOutcome,
  ProposalOutcome,
  PutMemoryOutcome,
  ReactivateMemoryOutcome,
  RejectionOutcome,
  RememberOutcome,
} from "../generated/enums.js";
import { toCitation, toCitationIf, type Citation } from "./citation.js";
import { toChangeToken, type ChangeToken } from "./namespace.js";

/** The revision that a write left, and where the namespace stood after it. */
export interface Written {
  readonly citation: Citation;
  readonly changeToken: ChangeToken;
}

/** What became of a proposal: the new candidate, or the equal memory that is known. */
export interface Proposed extends Written {
  readonly outcome: ProposalOutcome;
}

/** The new memory, or the equal one that was ACTIVE already. */
export interface Remembered extends Written {
  readonly outcome: RememberOutcome;
}

/** The memory as it is now, and what that took. */
export interface Put extends Written {
  readonly outcome: PutMemoryOutcome;
}

/** The new revision. */
export type Revised = Written;

/** The ARCHIVED revision. */
export type Retired = Written;

/** The ACTIVE revision, and whether the memory had to be brought back. */
export interface Reactivated extends Written {
  readonly outcome: ReactivateMemoryOutcome;
}

/** The new, ACTIVE memory, and the SUPERSEDED revision of the old one. */
export interface Superseded extends Written {
  readonly supersededCitation: Citation;
}

/** What became of a candidate that was to be decided on. Refused: `error` says why, and there is no citation. */
export class Decided<Outcome extends string> {
  readonly outcome: Outcome;
  readonly error: MemoryServiceError | undefined;
  readonly changeToken: ChangeToken;
  readonly #citation: Citation | undefined;

  constructor(
    outcome: Outcome,
    citation: Citation | undefined,
    error: MemoryServiceError | undefined,
    changeToken: ChangeToken,
  ) {
    this.outcome = outcome;
    this.#citation = citation;
    this.error = error;
    this.changeToken = changeToken;
  }

  /** The revision that it is now. @throws the item's error, if it was refused. */
  get citation(): Citation {
    if (this.#citation === undefined) {
      throw this.error ?? new TypeError("the service answered with neither citation nor error");
    }
    return this.#citation;
  }
}

/** What became of a candidate that was to be activated. */
export type Activated = Decided<ActivationOutcome>;

/** What became of a candidate that was to be rejected. */
export type Rejected = Decided<RejectionOutcome>;

export function toWritten(message: {
  readonly citation?: CitationMessage | undefined;
  readonly changeToken?: ChangeTokenMessage | undefined;
}): Written {
  return { citation: toCitation(message.citation), changeToken: toChangeToken(message.changeToken) };
}

export function toProposed(response: ProposeCandidatesResponse): Proposed[] {
  const changeToken = toChangeToken(response.changeToken);
  return response.results.map((result) => ({
    outcome: proposalOutcome.name(result.outcome),
    citation: toCitation(result.citation),
    changeToken,
  }));
}

export function toActivated(response: ActivateCandidatesResponse): Activated[] {
  const changeToken = toChangeToken(response.changeToken);
  return response.results.map((result) => decided(activationOutcome.name(result.outcome), result, changeToken));
}

export function toRejected(response: RejectCandidatesResponse): Rejected[] {
  const changeToken = toChangeToken(response.changeToken);
  return response.results.map((result) => decided(rejectionOutcome.name(result.outcome), result, changeToken));
}

function decided<Outcome extends string>(
  outcome: Outcome,
  result: { readonly citation?: CitationMessage | undefined; readonly error?: ItemError | undefined },
  changeToken: ChangeToken,
): Decided<Outcome> {
  const error = result.error === undefined ? undefined : errorOfItem(result.error);
  return new Decided(outcome, toCitationIf(result.citation), error, changeToken);
}
