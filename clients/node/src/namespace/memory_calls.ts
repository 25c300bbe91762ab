import { create } from "@bufbuild/protobuf";
import type { CallOptions, WriteOptions } from "../calls.js";
import {
  GetMemoryRequestSchema,
  MemoryService,
  PutMemoryRequestSchema,
  ReactivateMemoryRequestSchema,
  RememberRequestSchema,
  RetireMemoryRequestSchema,
  ReviseMemoryRequestSchema,
  SupersedeMemoryRequestSchema,
} from "../gen/durablememory/v1/memory_service_pb.js";
import { putMemoryOutcome, reactivateMemoryOutcome, rememberOutcome, revisionKind } from "../generated/enum_codecs.js";
import type { RevisionKind } from "../generated/enums.js";
import { fromRevision, type RevisionFields } from "../values/change_set.js";
import { fromCitable, toCitation, type Citable } from "../values/citation.js";
import { fromDecision, fromEvidence, type Decision, type DecisionFields } from "../values/evidence.js";
import {
  draftFields,
  fromDraft,
  toCitedMemory,
  type CitedMemory,
  type Draft,
  type DraftFields,
} from "../values/memory.js";
import { fromNamespace, revisionIf, type Revision } from "../values/namespace.js";
import {
  toWritten,
  type Put,
  type Reactivated,
  type Remembered,
  type Retired,
  type Revised,
  type Superseded,
} from "../values/results.js";
import { CandidateCalls } from "./candidate_calls.js";

/** How to remember: a draft's fields, and who decides. */
export interface RememberOptions extends DraftFields, WriteOptions {
  /** Default: minted by the server. */
  readonly nodeId?: string | undefined;
  /** Default: the authenticated caller decided (MANUAL). */
  readonly decision?: Decision | undefined;
  /** What the namespace must be at. Default: not compared. */
  readonly expectedNamespaceRevision?: Revision | undefined;
}

/** How to put: a draft's fields, and who decides. */
export interface PutOptions extends DraftFields, WriteOptions {
  /** Default: the authenticated caller decided (MANUAL). */
  readonly decision?: Decision | undefined;
  readonly revisionKind?: RevisionKind | undefined;
  /** What the node must be at; 0: it must not exist. Default: not compared. */
  readonly expectedRevision?: Revision | undefined;
}

/** What a revision changes, and who decides. What is left out stays; `surroundings: []` removes them. */
export interface ReviseOptions extends RevisionFields, WriteOptions {
  /** Default: CORRECTION. */
  readonly kind?: RevisionKind | undefined;
  /** Default: the authenticated caller decided (MANUAL). */
  readonly decision?: Decision | undefined;
}

/** Who decides, and by what. */
export interface DecisionOptions extends DecisionFields, WriteOptions {}

/** How to supersede: the fields of the replacement, and who decides. */
export interface SupersedeOptions extends DraftFields, WriteOptions {
  /** The new node's id. Default: minted by the server. */
  readonly nodeId?: string | undefined;
  /** Default: the authenticated caller decided (MANUAL). */
  readonly decision?: Decision | undefined;
}

/** What a person or agent does with one memory in one call. Each is one change set. */
export class MemoryCalls extends CandidateCalls {
  /**
   * Remember at once: an ACTIVE memory, without a candidate. Content equal to an ACTIVE one's is UNCHANGED.
   *
   * Reasons: NODE_ALREADY_EXISTS (`nodeId` is taken), REVISION_CONFLICT (the namespace moved), NAMESPACE_TOO_LARGE.
   */
  async remember(memory: string | Draft, options: RememberOptions = {}): Promise<Remembered> {
    const request = create(RememberRequestSchema, {
      ...this.#written(options),
      memory: fromDraft(memory, draftFields(options)),
      nodeId: options.nodeId,
      expectedNamespaceRevision: revisionIf(options.expectedNamespaceRevision),
    });
    const response = await this.calls.unary(MemoryService.method.remember, request, options);
    return { ...toWritten(response), outcome: rememberOutcome.name(response.outcome) };
  }

  /**
   * Make the node with this id say this, completely, and be ACTIVE: CREATED, REVISED or UNCHANGED.
   *
   * Reasons: INVALID_FIELD (the node has another kind), REVISION_CONFLICT, NODE_FROZEN, NAMESPACE_TOO_LARGE.
   */
  async put(nodeId: string, memory: string | Draft, options: PutOptions = {}): Promise<Put> {
    const request = create(PutMemoryRequestSchema, {
      ...this.#written(options),
      nodeId,
      memory: fromDraft(memory, draftFields(options)),
      revisionKind: revisionKind.numberIf(options.revisionKind),
      expectedRevision: revisionIf(options.expectedRevision),
    });
    const response = await this.calls.unary(MemoryService.method.putMemory, request, options);
    return { ...toWritten(response), outcome: putMemoryOutcome.name(response.outcome) };
  }

  /**
   * Change a memory, named by its exact current citation.
   *
   * Reasons: NODE_NOT_FOUND, REVISION_CONFLICT (it has changed since), REVISION_NOT_FOUND (the digest differs),
   * NODE_FROZEN, CHANGE_SET_EMPTY, NAMESPACE_TOO_LARGE.
   */
  async revise(memory: Citable, options: ReviseOptions): Promise<Revised> {
    const request = create(ReviseMemoryRequestSchema, {
      ...this.#written(options),
      ...fromRevision(options),
      citation: fromCitable(memory),
      revisionKind: revisionKind.number(options.kind ?? "CORRECTION"),
    });
    return toWritten(await this.calls.unary(MemoryService.method.reviseMemory, request, options));
  }

  /**
   * Take an ACTIVE memory out of recall: it becomes ARCHIVED. Nothing is deleted.
   *
   * Reasons: NODE_NOT_FOUND, REVISION_CONFLICT, REVISION_NOT_FOUND, INVALID_TRANSITION.
   */
  async retire(memory: Citable, options: DecisionOptions = {}): Promise<Retired> {
    const request = create(RetireMemoryRequestSchema, {
      ...this.#written(options),
      citation: fromCitable(memory),
      evidence: fromEvidence(options.evidence),
    });
    return toWritten(await this.calls.unary(MemoryService.method.retireMemory, request, options));
  }

  /**
   * Bring an ARCHIVED memory back into recall, or decide for a CONFLICTED one.
   *
   * Reasons: NODE_NOT_FOUND, REVISION_CONFLICT, REVISION_NOT_FOUND, INVALID_TRANSITION, NAMESPACE_TOO_LARGE.
   */
  async reactivate(memory: Citable, options: DecisionOptions = {}): Promise<Reactivated> {
    const request = create(ReactivateMemoryRequestSchema, {
      ...this.#written(options),
      citation: fromCitable(memory),
      evidence: fromEvidence(options.evidence),
    });
    const response = await this.calls.unary(MemoryService.method.reactivateMemory, request, options);
    return { ...toWritten(response), outcome: reactivateMemoryOutcome.name(response.outcome) };
  }

  /**
   * Replace a memory by a new one, atomically, each naming the other.
   *
   * Reasons: NODE_NOT_FOUND, REVISION_CONFLICT, REVISION_NOT_FOUND, INVALID_TRANSITION, NODE_ALREADY_EXISTS,
   * NAMESPACE_TOO_LARGE.
   */
  async supersede(memory: Citable, replacement: string | Draft, options: SupersedeOptions = {}): Promise<Superseded> {
    const request = create(SupersedeMemoryRequestSchema, {
      ...this.#written(options),
      citation: fromCitable(memory),
      memory: fromDraft(replacement, draftFields(options)),
      nodeId: options.nodeId,
    });
    const response = await this.calls.unary(MemoryService.method.supersedeMemory, request, options);
    return { ...toWritten(response), supersededCitation: toCitation(response.supersededCitation) };
  }

  /**
   * Read exactly what a citation names, however old, and what has become of it.
   *
   * Reasons: NODE_NOT_FOUND, REVISION_NOT_FOUND (no such revision, or its digest differs), CONTENT_ERASED.
   */
  async get(citation: Citable, options: CallOptions = {}): Promise<CitedMemory> {
    const request = create(GetMemoryRequestSchema, {
      namespace: fromNamespace(this.ref),
      citation: fromCitable(citation),
    });
    return toCitedMemory(await this.calls.unary(MemoryService.method.getMemory, request, options));
  }

  #written(options: WriteOptions & { readonly decision?: Decision | undefined }) {
    return {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
      decision: fromDecision(options.decision),
    };
  }
}
