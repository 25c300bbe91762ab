/** A run: one invocation of an agent, to which admissions and uses belong. */
import { create } from "@bufbuild/protobuf";
import {
  PATIENCE_MS,
  PATIENT_ATTEMPTS,
  sharedDeadline,
  type CallOptions,
  type Calls,
  type OnUnavailable,
  type StepOptions,
  type WriteOptions,
} from "./calls.js";
import { IncompleteStreamError, MemoryUnavailableError } from "./errors.js";
import { ofSeveral } from "./failures.js";
import type { AdmissionOutcome as AdmissionOutcomeMessage } from "./gen/durablememory/v1/access_pb.js";
import {
  ActiveRecallRequestSchema,
  AdmitMemoriesRequestSchema,
  RecallService,
  RecordUseRequestSchema,
  type ActiveRecallResponse,
} from "./gen/durablememory/v1/recall_service_pb.js";
import {
  BeginRunRequestSchema,
  EndRunRequestSchema,
  SessionService,
} from "./gen/durablememory/v1/session_service_pb.js";
import { beginRunOutcome, recallMode } from "./generated/enum_codecs.js";
import type { BeginRunOutcome } from "./generated/enums.js";
import { HOST_INSTANCE, newRequestId } from "./identity.js";
import type { MemorySession } from "./session.js";
import {
  admissionOf,
  toAdmissionOutcome,
  toUseOutcome,
  type Admission,
  type AdmissionOutcome,
  type UseOutcome,
} from "./values/access.js";
import { citationOf, fromCitable, revisionRef, type Citable } from "./values/citation.js";
import { Evidence } from "./values/evidence.js";
import { fromNamespace, toChangeToken, type Namespace } from "./values/namespace.js";
import { fromFilter, Recall, toRecall, type Hit, type RecallFields } from "./values/recall.js";
import { toRun, type Run } from "./values/session.js";
import { Lock } from "./waiting.js";

/** How to recall in a run. */
export interface RunRecallOptions extends RecallFields, WriteOptions {
  /**
   * Record what is found as entering the model's input, in the same call; only what was admitted is among the hits.
   * Without, `admit()` what you use before the model sees it.
   */
  readonly admit?: boolean | undefined;
  /** Default: the session's. */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/** How to admit. */
export interface AdmitOptions extends WriteOptions {
  /** Default: the session's. */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/**
 * Recall, admit, record use. The run keeps track of context ids: each admission is one assembly of an input.
 *
 * It ends with the block that it was begun in (`await using run = await session.beginRun()`), or by `end()`.
 */
export class MemoryRun implements AsyncDisposable {
  readonly #calls: Calls;
  readonly #runId: string;
  readonly #beginRequestId: string;
  readonly #lock = new Lock();
  readonly #admittedIn = new Map<string, string>();
  #info: Run | undefined;
  #contextId = "";
  #outcome: BeginRunOutcome | undefined;
  #ended = false;

  /** The session that it belongs to. */
  readonly session: MemorySession;

  constructor(calls: Calls, session: MemorySession, runId: string | undefined, beginRequestId?: string) {
    this.#calls = calls;
    this.#beginRequestId = beginRequestId || newRequestId();
    this.session = session;
    // Minted here and not by the service, so that evidence of this turn can name it even in an outage.
    this.#runId = runId || newRequestId();
  }

  /** The run as it began. @throws Error while an outage has kept it from beginning. */
  get info(): Run {
    if (this.#info === undefined) {
      throw new Error("the run has not begun: begin() it, or reach the service first");
    }
    return this.#info;
  }

  get runId(): string {
    return this.#runId;
  }

  get namespace(): Namespace {
    return this.session.namespace;
  }

  /** The context id that the next admission is recorded under. It changes with every admission. */
  get contextId(): string {
    return this.#contextId || this.info.contextId;
  }

  /** Whether an incarnation of another process was ended for it; undefined until it has begun. */
  get outcome(): BeginRunOutcome | undefined {
    return this.#outcome;
  }

  /**
   * Begin the run unless it has begun.
   *
   * Reasons: RUN_IDENTITY_CONFLICT, if this process has a run with this id open already.
   */
  async begin(options: StepOptions = {}, maxAttempts?: number): Promise<Run> {
    if (this.#info !== undefined) {
      return this.#info; // and does not wait for somebody else's assembly
    }
    const left = sharedDeadline(options);
    return this.#lock.run(left(), async () => {
      if (this.#info === undefined) {
        const session = await this.session.ensureOpen(left(), maxAttempts);
        const request = create(BeginRunRequestSchema, {
          namespace: fromNamespace(session.binding.namespace),
          requestId: this.#beginRequestId,
          sessionId: session.sessionId,
          runId: this.#runId,
          hostInstance: HOST_INSTANCE,
        });
        const response = await this.#calls.unary(SessionService.method.beginRun, request, left(), maxAttempts);
        this.#info = toRun(response.run);
        this.#contextId = this.#info.contextId;
        this.#outcome = beginRunOutcome.name(response.outcome);
      }
      return this.#info;
    });
  }

  /** Begin it; with `onUnavailable: "empty"` an outage is left to the next recall. */
  async tryBegin(options: CallOptions = {}): Promise<this> {
    await this.#calls.guarded(this.session.onUnavailable, options, (left, maxAttempts) =>
      this.begin(left(), maxAttempts),
    );
    return this;
  }

  /** End the run: this incarnation of it, never one that another process began. */
  async end(options: WriteOptions = {}, maxAttempts?: number): Promise<Run> {
    const run = this.info;
    const request = create(EndRunRequestSchema, {
      namespace: fromNamespace(this.namespace),
      requestId: options.requestId ?? "",
      sessionId: run.sessionId,
      runId: run.runId,
      incarnation: run.incarnation,
    });
    const response = await this.#calls.unary(SessionService.method.endRun, request, options, maxAttempts);
    this.#ended = true;
    this.#info = toRun(response.run);
    return this.#info;
  }

  /** Ends it if it has begun. It never fails for an end that could not be told: an idle run ends by itself. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#info === undefined || this.#ended) {
      return;
    }
    try {
      await this.end({ timeoutMs: PATIENCE_MS }, PATIENT_ATTEMPTS);
    } catch (error) {
      // The work of the block is done, or failed for its own reason: nothing may take the place of that.
      const why = error instanceof Error ? error.message : String(error);
      process.emitWarning(`run ${this.#runId} was not ended: ${why}`, { type: "DurableMemoryWarning" });
    }
  }

  /**
   * The ACTIVE memories that fit a query, best first.
   *
   * With `onUnavailable: "empty"` (here, on the session or on the client) an unreachable service gives an empty recall
   * whose `unavailable` is true.
   *
   * Reasons: SESSION_CLOSED, RUN_ENDED, SEMANTIC_UNAVAILABLE, NAMESPACE_TOO_LARGE.
   */
  async recall(query: string, options: RunRecallOptions = {}): Promise<Recall> {
    const admit = options.admit ?? false;
    const onUnavailable = options.onUnavailable ?? this.session.onUnavailable;
    const found = await this.#calls.guarded(onUnavailable, options, async (left, maxAttempts) => {
      const run = await this.begin(left(), maxAttempts);
      const recalling = async (contextId: string): Promise<ActiveRecallResponse> => {
        const request = create(ActiveRecallRequestSchema, {
          namespace: fromNamespace(this.namespace),
          requestId: admit ? (options.requestId ?? "") : "",
          sessionId: run.sessionId,
          query,
          filter: fromFilter(options.filter),
          mode: recallMode.numberIf(options.mode),
          includeSurroundings: options.includeSurroundings ?? false,
          admit,
          contextId,
        });
        return this.#calls.unary(RecallService.method.activeRecall, request, left(), maxAttempts);
      };
      if (!admit) {
        return toRecall(this.namespace, await recalling(this.contextId));
      }
      // One assembly after the other: each has the context id that the one before it returned.
      return this.#lock.run(left(), async () => {
        const { contextId } = this;
        const response = await recalling(contextId);
        const admissions = this.#admissions(response.admissions, contextId, response.nextContextId);
        return toRecall(this.namespace, response, { admissions, contextId });
      });
    });
    return found instanceof MemoryUnavailableError ? new Recall({ namespace: this.namespace, error: found }) : found;
  }

  /**
   * Record that these hits enter the model's input; `hits` of the answer are those that may.
   *
   * Only what is still the current ACTIVE revision is admitted. What is refused must leave the input.
   *
   * Reasons: SESSION_CLOSED, RUN_ENDED.
   */
  async admit(hits: Iterable<Hit>, options: AdmitOptions = {}): Promise<Admission> {
    const wanted = [...hits];
    if (wanted.length === 0) {
      return admissionOf({});
    }
    const onUnavailable = options.onUnavailable ?? this.session.onUnavailable;
    const admission = await this.#calls.guarded(onUnavailable, options, async (left, maxAttempts) => {
      const run = await this.begin(left(), maxAttempts);
      return this.#lock.run(left(), async () => {
        const { contextId } = this;
        const request = create(AdmitMemoriesRequestSchema, {
          namespace: fromNamespace(this.namespace),
          requestId: options.requestId ?? "",
          sessionId: run.sessionId,
          contextId,
          items: wanted.map((hit) => ({ nodeRevision: revisionRef(hit) })),
        });
        const response = await this.#calls.unary(RecallService.method.admitMemories, request, left(), maxAttempts);
        checkCount(response.outcomes, wanted);
        const outcomes = this.#admissions(response.outcomes, contextId, response.nextContextId);
        return admissionOf({
          hits: wanted.filter((_, index) => outcomes[index]?.admitted === true),
          outcomes,
          contextId,
          changeToken: toChangeToken(response.changeToken),
        });
      });
    });
    return admission instanceof MemoryUnavailableError ? admissionOf({ error: admission }) : admission;
  }

  /**
   * Record that the answer cited these memories, or that the agent acted on them; one outcome each, in order.
   *
   * Each use is recorded under the assembly that the memory was admitted to in this run, so a repetition counts once.
   * Memories of several assemblies take one call each. Nothing used: no call.
   *
   * Reasons: SESSION_CLOSED.
   */
  async recordUse(used: Iterable<Citable>, options: WriteOptions = {}): Promise<UseOutcome[]> {
    const byContext = new Map<string, { place: number; cited: Citable }[]>();
    for (const [place, cited] of [...used].entries()) {
      const contextId = this.#admittedIn.get(revisionKey(citationOf(cited))) ?? "";
      const items = byContext.get(contextId) ?? [];
      byContext.set(contextId, [...items, { place, cited }]);
    }
    if (byContext.size === 0) {
      return [];
    }
    if (options.requestId !== undefined && byContext.size > 1) {
      throw new TypeError("memories of several assemblies take several calls, which cannot share one request id");
    }
    const left = sharedDeadline(options);
    const run = await this.begin(left());
    const outcomes = new Map<number, UseOutcome>();
    const recording = async (contextId: string, items: readonly { place: number; cited: Citable }[]): Promise<void> => {
      const request = create(RecordUseRequestSchema, {
        namespace: fromNamespace(this.namespace),
        requestId: options.requestId ?? "",
        sessionId: run.sessionId,
        contextId: contextId || this.contextId,
        items: items.map(({ cited }) => ({ target: { case: "citation" as const, value: fromCitable(cited) } })),
      });
      const response = await this.#calls.unary(RecallService.method.recordUse, request, left());
      checkCount(response.outcomes, items);
      for (const [index, outcome] of response.outcomes.entries()) {
        outcomes.set(items[index]?.place ?? index, toUseOutcome(outcome));
      }
    };
    for (const [contextId, items] of byContext) {
      try {
        await recording(contextId, items);
      } catch (error) {
        throw outcomes.size > 0 ? ofSeveral(error) : error;
      }
    }
    return [...outcomes].sort(([one], [other]) => one - other).map(([, outcome]) => outcome);
  }

  /** Evidence for what was said in this turn, to propose memories with. */
  evidence(body: string | Uint8Array): Evidence {
    return Evidence.sessionTurn(this.session.sessionId, this.#runId, body);
  }

  #admissions(
    messages: readonly AdmissionOutcomeMessage[],
    contextId: string,
    nextContextId: string,
  ): AdmissionOutcome[] {
    const outcomes = messages.map(toAdmissionOutcome);
    for (const { admitted, nodeRevision } of outcomes) {
      if (admitted) {
        const { nodeId, revision } = nodeRevision;
        this.#admittedIn.set(revisionKey({ nodeId, nodeRevision: revision }), contextId);
      }
    }
    this.#contextId = nextContextId;
    return outcomes;
  }
}

/** @throws IncompleteStreamError. */
function checkCount(outcomes: readonly unknown[], items: readonly unknown[]): void {
  if (outcomes.length !== items.length) {
    throw new IncompleteStreamError(`the answer has ${outcomes.length} outcomes of ${items.length} items`);
  }
}

function revisionKey(revision: { readonly nodeId: string; readonly nodeRevision: bigint }): string {
  return `${revision.nodeRevision}/${revision.nodeId}`;
}
