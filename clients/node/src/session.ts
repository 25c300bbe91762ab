/** An open session: what it is bound to, and recalling in it. */
import { create } from "@bufbuild/protobuf";
import {
  sharedDeadline,
  type CallOptions,
  type Calls,
  type OnUnavailable,
  type StepOptions,
  type WriteOptions,
} from "./calls.js";
import { MemoryUnavailableError } from "./errors.js";
import {
  ActiveRecallRequestSchema,
  ExplainRecallRequestSchema,
  RecallService,
} from "./gen/durablememory/v1/recall_service_pb.js";
import {
  CloseSessionRequestSchema,
  RebindSessionRequestSchema,
  SessionService,
  type OpenSessionRequest,
} from "./gen/durablememory/v1/session_service_pb.js";
import { openSessionOutcome, recallMode } from "./generated/enum_codecs.js";
import type { OpenSessionOutcome } from "./generated/enums.js";
import { newRequestId } from "./identity.js";
import { MemoryRun } from "./run.js";
import { fromNamespace, type Namespace } from "./values/namespace.js";
import { fromFilter, Recall, toExplanation, toRecall, type Explanation, type RecallFields } from "./values/recall.js";
import { fromPolicy, toSession, type Policy, type Session } from "./values/session.js";
import { Lock } from "./waiting.js";

/** How to recall in a session, outside a run. */
export interface SessionRecallOptions extends RecallFields, CallOptions {
  /** Default: the session's. */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/** How to explain a recall. */
export interface ExplainOptions extends Omit<RecallFields, "includeSurroundings">, CallOptions {}

/** How to rebind a session; what is left out of the policy takes the server's default, not the old value. */
export interface RebindOptions extends Policy, WriteOptions {
  /** What the session must be bound to. Default: what this object says. */
  readonly expectedBindingDigest?: string | undefined;
}

/** A session that is open, or that is to be opened by the first call that reaches the service. */
export type Opened = { readonly session: Session } | { readonly opening: OpenSessionRequest };

/** A binding of the caller to one namespace and one recall policy. It outlives this object and this process. */
export class MemorySession {
  readonly #calls: Calls;
  readonly #namespace: Namespace;
  readonly #onUnavailable: OnUnavailable | undefined;
  readonly #lock = new Lock();
  readonly #opening: OpenSessionRequest | undefined;
  readonly #sessionId: string;
  #info: Session | undefined;
  #outcome: OpenSessionOutcome | undefined;

  constructor(calls: Calls, namespace: Namespace, opened: Opened, onUnavailable: OnUnavailable | undefined) {
    this.#calls = calls;
    this.#namespace = namespace;
    this.#onUnavailable = onUnavailable;
    if ("session" in opened) {
      this.#info = opened.session;
      this.#sessionId = opened.session.sessionId;
    } else {
      // Whoever opens it later, after an outage, repeats this very request.
      opened.opening.requestId ||= newRequestId();
      opened.opening.sessionId ||= newRequestId();
      this.#opening = opened.opening;
      this.#sessionId = opened.opening.sessionId;
    }
  }

  /** The session as the service has it. @throws Error while an outage has kept it from being opened. */
  get info(): Session {
    if (this.#info === undefined) {
      throw new Error("the session is not open yet: the service could not be reached");
    }
    return this.#info;
  }

  get sessionId(): string {
    return this.#sessionId;
  }

  get namespace(): Namespace {
    return this.#info?.binding.namespace ?? this.#namespace;
  }

  get onUnavailable(): OnUnavailable {
    return this.#onUnavailable ?? this.#calls.onUnavailable;
  }

  /** Whether opening it made a new one; undefined for a resumed session, and until it is open. */
  get outcome(): OpenSessionOutcome | undefined {
    return this.#outcome;
  }

  /** Open it unless it is open. With `onUnavailable: "empty"` an outage is left to the next recall. */
  async open(options: CallOptions = {}): Promise<this> {
    await this.#calls.guarded(this.#onUnavailable, options, (left, maxAttempts) =>
      this.ensureOpen(left(), maxAttempts),
    );
    return this;
  }

  /** The open session. @throws MemoryServiceError. */
  async ensureOpen(options: StepOptions = {}, maxAttempts?: number): Promise<Session> {
    const opening = this.#opening;
    if (this.#info !== undefined || opening === undefined) {
      return this.info;
    }
    const left = sharedDeadline(options);
    return this.#lock.run(left(), async () => {
      if (this.#info === undefined) {
        const response = await this.#calls.unary(SessionService.method.openSession, opening, left(), maxAttempts);
        this.#info = toSession(response.session);
        this.#outcome = openSessionOutcome.name(response.outcome);
      }
      return this.info;
    });
  }

  /**
   * Begin a run: one turn, task or process of an agent. It ends with the block:
   *
   *     await using run = await session.beginRun("turn-7");
   *
   * A run id that another process left open is taken over. Without a `runId` a new one is minted. A beginning whose
   * outcome this process did not learn is repeated with the same `runId` and the `requestId` of the error.
   */
  async beginRun(runId?: string, options: WriteOptions = {}): Promise<MemoryRun> {
    return new MemoryRun(this.#calls, this, runId, options.requestId).tryBegin(options);
  }

  /** Begin a run, do the work in it, and end it; for where there is no `await using`. The options are for beginning. */
  async run<T>(
    runId: string | undefined,
    work: (run: MemoryRun) => Promise<T>,
    options: WriteOptions = {},
  ): Promise<T> {
    const run = await this.beginRun(runId, options);
    try {
      return await work(run);
    } finally {
      await run[Symbol.asyncDispose]();
    }
  }

  /**
   * Recall outside a run: nothing is recorded, and so nothing of it may enter a model's input.
   *
   * Reasons: SESSION_CLOSED, SEMANTIC_UNAVAILABLE, NAMESPACE_TOO_LARGE.
   */
  async recall(query: string, options: SessionRecallOptions = {}): Promise<Recall> {
    const onUnavailable = options.onUnavailable ?? this.#onUnavailable;
    const found = await this.#calls.guarded(onUnavailable, options, async (left, maxAttempts) => {
      const { sessionId, binding } = await this.ensureOpen(left(), maxAttempts);
      const request = create(ActiveRecallRequestSchema, {
        namespace: fromNamespace(binding.namespace),
        sessionId,
        query,
        filter: fromFilter(options.filter),
        mode: recallMode.numberIf(options.mode),
        includeSurroundings: options.includeSurroundings ?? false,
      });
      const response = await this.#calls.unary(RecallService.method.activeRecall, request, left(), maxAttempts);
      return toRecall(binding.namespace, response);
    });
    return found instanceof MemoryUnavailableError ? new Recall({ namespace: this.namespace, error: found }) : found;
  }

  /** Why a node is, or is not, among the hits of a recall in this session. Reasons: NODE_NOT_FOUND. */
  async explain(nodeId: string, query: string, options: ExplainOptions = {}): Promise<Explanation> {
    const left = sharedDeadline(options);
    const { sessionId, binding } = await this.ensureOpen(left());
    const request = create(ExplainRecallRequestSchema, {
      namespace: fromNamespace(binding.namespace),
      sessionId,
      nodeId,
      query,
      filter: fromFilter(options.filter),
      mode: recallMode.numberIf(options.mode),
    });
    return toExplanation(await this.#calls.unary(RecallService.method.explainRecall, request, left()));
  }

  /**
   * Bind the session to another policy.
   *
   * Reasons: BINDING_DRIFT, if it is no longer bound to what this object (or the stated digest) says.
   */
  async rebind(options: RebindOptions = {}): Promise<Session> {
    const left = sharedDeadline(options);
    const session = await this.ensureOpen(left());
    const request = create(RebindSessionRequestSchema, {
      namespace: fromNamespace(session.binding.namespace),
      requestId: options.requestId ?? "",
      sessionId: session.sessionId,
      expectedBindingDigest: options.expectedBindingDigest ?? session.bindingDigest,
      policy: fromPolicy(options),
    });
    const response = await this.#calls.unary(SessionService.method.rebindSession, request, left());
    this.#info = toSession(response.session);
    return this.#info;
  }

  /** Close the session for ever: calls in it and its runs are refused. To merely stop using it, do nothing. */
  async close(options: WriteOptions = {}): Promise<Session> {
    const left = sharedDeadline(options);
    const { sessionId, binding } = await this.ensureOpen(left());
    const request = create(CloseSessionRequestSchema, {
      namespace: fromNamespace(binding.namespace),
      requestId: options.requestId ?? "",
      sessionId,
    });
    const response = await this.#calls.unary(SessionService.method.closeSession, request, left());
    this.#info = toSession(response.session);
    return this.#info;
  }
}
