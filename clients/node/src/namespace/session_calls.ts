import { create } from "@bufbuild/protobuf";
import type { CallOptions, OnUnavailable, WriteOptions } from "../calls.js";
import {
  CloseSessionRequestSchema,
  GetSessionRequestSchema,
  ListSessionsRequestSchema,
  OpenSessionRequestSchema,
  ResumeSessionRequestSchema,
  SessionService,
} from "../gen/durablememory/v1/session_service_pb.js";
import { Pages, type PageOptions } from "../paging.js";
import { MemorySession } from "../session.js";
import { fromNamespace } from "../values/namespace.js";
import {
  fromBinding,
  fromPolicy,
  toSession,
  type Policy,
  type Session,
  type SessionBinding,
} from "../values/session.js";
import { ContractCalls } from "./contract_calls.js";

/** How to open a session: its policy, and what it does in an outage. */
export interface OpenSessionOptions extends Policy, WriteOptions {
  /** Holds for everything that recalls in the session. Default: the client's. */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/** How to resume a session. */
export interface ResumeSessionOptions extends CallOptions {
  /** Holds for everything that recalls in the session. Default: the client's. */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/** Opening, resuming and reading sessions. */
export class SessionCalls extends ContractCalls {
  /**
   * Open a session, or get the open one with this id if it was opened by an equal call.
   *
   * What is left out of the policy takes the server's defaults, once, here. Without a `sessionId` a new one is minted.
   * With `onUnavailable: "empty"` an unreachable service does not fail this call: the session is opened by the first
   * recall that reaches it.
   *
   * Reasons: BINDING_DRIFT (the id is open, by another request), SESSION_CLOSED, SEMANTIC_UNAVAILABLE.
   */
  async openSession(sessionId?: string, options: OpenSessionOptions = {}): Promise<MemorySession> {
    const opening = create(OpenSessionRequestSchema, {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
      sessionId,
      policy: fromPolicy(options),
    });
    return new MemorySession(this.calls, this.ref, { opening }, options.onUnavailable).open(options);
  }

  /**
   * Get an open session, if it is bound to exactly what is expected: a binding, or a binding's digest.
   *
   * Reasons: SESSION_NOT_FOUND, SESSION_CLOSED, BINDING_DRIFT, SEMANTIC_UNAVAILABLE.
   */
  async resumeSession(
    sessionId: string,
    expected: SessionBinding | string,
    options: ResumeSessionOptions = {},
  ): Promise<MemorySession> {
    const request = create(ResumeSessionRequestSchema, {
      namespace: fromNamespace(this.ref),
      sessionId,
      expected:
        typeof expected === "string"
          ? { case: "bindingDigest", value: expected }
          : { case: "binding", value: fromBinding(expected) },
    });
    const response = await this.calls.unary(SessionService.method.resumeSession, request, options);
    return new MemorySession(this.calls, this.ref, { session: toSession(response.session) }, options.onUnavailable);
  }

  /** Read a session, open or closed. Reasons: SESSION_NOT_FOUND. */
  async getSession(sessionId: string, options: CallOptions = {}): Promise<Session> {
    const request = create(GetSessionRequestSchema, { namespace: fromNamespace(this.ref), sessionId });
    return toSession((await this.calls.unary(SessionService.method.getSession, request, options)).session);
  }

  /** All sessions of the namespace, in id order. */
  listSessions(options: PageOptions & CallOptions = {}): Pages<Session> {
    return new Pages(async (pageToken) => {
      const request = create(ListSessionsRequestSchema, {
        namespace: fromNamespace(this.ref),
        pageSize: options.pageSize ?? 0,
        pageToken,
      });
      const response = await this.calls.unary(SessionService.method.listSessions, request, options);
      return {
        items: response.sessions.map(toSession),
        nextPageToken: response.nextPageToken,
        changeToken: undefined,
      };
    });
  }

  /**
   * Close a session for ever: calls in it and its runs are refused from then on. Closing a closed one is no error.
   *
   * Reasons: SESSION_NOT_FOUND.
   */
  async closeSession(sessionId: string, options: WriteOptions = {}): Promise<Session> {
    const request = create(CloseSessionRequestSchema, {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
      sessionId,
    });
    return toSession((await this.calls.unary(SessionService.method.closeSession, request, options)).session);
  }
}
