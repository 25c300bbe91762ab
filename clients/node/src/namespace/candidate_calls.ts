import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, WriteOptions } from "../calls.js";
import {
  ActivateCandidatesRequestSchema,
  CandidateService,
  ListCandidatesRequestSchema,
  ProposeCandidatesRequestSchema,
  RejectCandidatesRequestSchema,
  type CandidateProposalSchema,
} from "../gen/durablememory/v1/candidate_service_pb.js";
import { nodeKind } from "../generated/enum_codecs.js";
import type { NodeKind } from "../generated/enums.js";
import { Pages, type PageOptions } from "../paging.js";
import { revisionRef, type Citable } from "../values/citation.js";
import { fromDecision, fromEvidence, type Decision, type Evidence } from "../values/evidence.js";
import { draftFields, fromDraft, toNode, type Draft, type DraftFields, type MemoryNode } from "../values/memory.js";
import { fromNamespace, toChangeToken } from "../values/namespace.js";
import {
  toActivated,
  toProposed,
  toRejected,
  type Activated,
  type Proposed,
  type Rejected,
} from "../values/results.js";
import { RecallCalls } from "./recall_calls.js";

/** How to propose: a draft's fields, and what to do with what was rejected before. */
export interface ProposeOptions extends DraftFields, WriteOptions {
  /** Default: minted by the server. */
  readonly nodeId?: string | undefined;
  /** Propose also what was rejected before. */
  readonly repropose?: boolean | undefined;
}

/** How to propose many. */
export interface ProposeManyOptions extends WriteOptions {
  /** Propose also what was rejected before. */
  readonly repropose?: boolean | undefined;
}

/** Which candidates to list. */
export interface ListCandidatesOptions extends PageOptions, CallOptions {
  readonly kinds?: readonly NodeKind[] | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly includeSurroundings?: boolean | undefined;
}

/** What else comes with a decision. */
export interface DecideOptions extends WriteOptions {
  /** Sources beside the decision. */
  readonly evidence?: Iterable<Evidence> | undefined;
}

/** What an agent proposes is a candidate, and never recalled, until somebody with that right activates it. */
export class CandidateCalls extends RecallCalls {
  /**
   * Propose a memory, with at least one reference of evidence.
   *
   * An equal candidate gets the evidence instead (CORROBORATED), an equal ACTIVE memory is named (ALREADY_ACTIVE), and
   * what was rejected before stays rejected (PREVIOUSLY_REJECTED) unless `repropose`.
   *
   * Reasons: NODE_ALREADY_EXISTS (`nodeId` is taken by other content).
   */
  async propose(memory: string | Draft, options: ProposeOptions = {}): Promise<Proposed> {
    const { nodeId } = options;
    return only(await this.#propose([{ nodeId, memory: fromDraft(memory, draftFields(options)) }], options));
  }

  /** Propose up to 128 memories that commit together; one result each, in order. */
  async proposeMany(memories: Iterable<Draft>, options: ProposeManyOptions = {}): Promise<Proposed[]> {
    return this.#propose(
      Array.from(memories, (memory) => ({ memory: fromDraft(memory) })),
      options,
    );
  }

  /** The candidates of the namespace, in id order. */
  listCandidates(options: ListCandidatesOptions = {}): Pages<MemoryNode> {
    return new Pages(async (pageToken) => {
      const request = create(ListCandidatesRequestSchema, {
        namespace: fromNamespace(this.ref),
        kinds: (options.kinds ?? []).map((kind) => nodeKind.number(kind)),
        labels: { ...options.labels },
        includeSurroundings: options.includeSurroundings ?? false,
        pageSize: options.pageSize ?? 0,
        pageToken,
      });
      const response = await this.calls.unary(CandidateService.method.listCandidates, request, options);
      return {
        items: response.candidates.map(toNode),
        nextPageToken: response.nextPageToken,
        changeToken: toChangeToken(response.changeToken),
      };
    });
  }

  /**
   * Make the candidate ACTIVE, at exactly the revision that the decider saw.
   *
   * Reasons: EVIDENCE_REQUIRED (no decision), NODE_NOT_FOUND, REVISION_CONFLICT, INVALID_TRANSITION (it is no
   * candidate), NAMESPACE_TOO_LARGE.
   */
  async activate(candidate: Citable, decision?: Decision, options: DecideOptions = {}): Promise<Activated> {
    return accepted(only(await this.activateMany([candidate], decision, options)));
  }

  /** Make up to 128 candidates ACTIVE by one decision; one result each, in order, with the error if refused. */
  async activateMany(
    candidates: Iterable<Citable>,
    decision?: Decision,
    options: DecideOptions = {},
  ): Promise<Activated[]> {
    const request = create(ActivateCandidatesRequestSchema, this.#decided(candidates, decision, options));
    return toActivated(await this.calls.unary(CandidateService.method.activateCandidates, request, options));
  }

  /**
   * Reject the candidate: it becomes TOMBSTONED, and equal proposals stay rejected from then on.
   *
   * Reasons: EVIDENCE_REQUIRED (no decision), NODE_NOT_FOUND, REVISION_CONFLICT, INVALID_TRANSITION (it is no
   * candidate).
   */
  async reject(candidate: Citable, decision?: Decision, options: DecideOptions = {}): Promise<Rejected> {
    return accepted(only(await this.rejectMany([candidate], decision, options)));
  }

  /** Reject up to 128 candidates by one decision; one result each, in order, with the error if refused. */
  async rejectMany(
    candidates: Iterable<Citable>,
    decision?: Decision,
    options: DecideOptions = {},
  ): Promise<Rejected[]> {
    const request = create(RejectCandidatesRequestSchema, this.#decided(candidates, decision, options));
    return toRejected(await this.calls.unary(CandidateService.method.rejectCandidates, request, options));
  }

  async #propose(
    proposals: MessageInitShape<typeof CandidateProposalSchema>[],
    options: ProposeManyOptions,
  ): Promise<Proposed[]> {
    const request = create(ProposeCandidatesRequestSchema, {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
      proposals,
      repropose: options.repropose ?? false,
    });
    return toProposed(await this.calls.unary(CandidateService.method.proposeCandidates, request, options));
  }

  #decided(candidates: Iterable<Citable>, decision: Decision | undefined, options: DecideOptions) {
    return {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
      items: Array.from(candidates, revisionRef),
      decision: fromDecision(decision),
      evidence: fromEvidence(options.evidence),
    };
  }
}

function accepted<D extends Activated | Rejected>(decided: D): D {
  if (decided.error !== undefined) {
    throw decided.error;
  }
  return decided;
}

function only<T>(results: readonly T[]): T {
  const [result] = results;
  if (result === undefined) {
    throw new TypeError("the service answered without a result");
  }
  return result;
}
