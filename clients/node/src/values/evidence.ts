/** Where memories come from, and who decides on them. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { notTextError } from "../failures.js";
import type { DecisionSchema } from "../gen/durablememory/v1/decision_pb.js";
import type { Evidence as EvidenceMessage, EvidenceSchema } from "../gen/durablememory/v1/node_pb.js";
import { decisionKind, evidenceKind } from "../generated/enum_codecs.js";
import type { DecisionKind, EvidenceKind } from "../generated/enums.js";
import { percentEncoded } from "./citation.js";
import { toDateIf, toTimestamp } from "./times.js";

/** A reference to a source. The service keeps the reference and the digest, never the body. */
export interface Evidence {
  /** Names the source: 1..2,048 bytes, unique in its memory. */
  readonly uri: string;
  readonly kind: EvidenceKind;
  /** `sha256:` and 64 lower-case hexadecimal digits. As input exactly one of this and `body`. */
  readonly digest?: string | undefined;
  /** The source itself, up to 1 MiB. Never returned. */
  readonly body?: string | Uint8Array | undefined;
  /** When the source came to be; default: the time of the change. */
  readonly occurredAt?: Date | undefined;
}

interface When {
  readonly occurredAt?: Date | undefined;
}

/** Makes references to sources. */
export const Evidence = {
  /** What was said in a turn: `session:<session id>/turn/<run id>`. */
  sessionTurn(sessionId: string, runId: string, body: string | Uint8Array, when: When = {}): Evidence {
    const uri = `session:${percentEncoded(sessionId)}/turn/${percentEncoded(runId)}`;
    return { uri, kind: "SESSION_TURN", body, ...when };
  },

  /** What the user said. */
  userStatement(uri: string, body: string | Uint8Array, when: When = {}): Evidence {
    return { uri, kind: "USER_STATEMENT", body, ...when };
  },

  /** What a tool returned. */
  toolResult(uri: string, body: string | Uint8Array, when: When = {}): Evidence {
    return { uri, kind: "TOOL_RESULT", body, ...when };
  },

  /** What stands in a file, page or other document. */
  artifact(uri: string, body: string | Uint8Array, when: When = {}): Evidence {
    return { uri, kind: "ARTIFACT", body, ...when };
  },
} as const;

/** Who decides that a memory may be used, and why; the service makes MANUAL or VERIFICATION evidence of it. */
export interface Decision {
  readonly kind: DecisionKind;
  /** The person, by default the authenticated caller; or the rule, as `rule:<name>@<version>`. */
  readonly decider?: string | undefined;
  /** For whoever reads the history later, up to 1,024 bytes; no secrets, no copy of the content. */
  readonly note?: string | undefined;
}

/** Makes decisions. */
export const Decision = {
  /** A person looked at it. */
  manual(said: { readonly decider?: string | undefined; readonly note?: string | undefined } = {}): Decision {
    return { kind: "MANUAL", ...said };
  },

  /** A named and versioned rule checked it, without a person. */
  byRule(name: string, version: string | number, said: { readonly note?: string | undefined } = {}): Decision {
    return { kind: "VERIFICATION", decider: `rule:${name}@${version}`, ...said };
  },
} as const;

/** What decides on a memory, and where it comes from. */
export interface DecisionFields {
  /** Default: the authenticated caller decided (MANUAL). */
  readonly decision?: Decision | undefined;
  readonly evidence?: Iterable<Evidence> | undefined;
}

export function fromEvidence(evidence: Iterable<Evidence> | undefined): MessageInitShape<typeof EvidenceSchema>[] {
  return Array.from(evidence ?? [], ({ uri, kind, digest, body, occurredAt }) => {
    if (digest !== undefined && body !== undefined) {
      throw new TypeError(`evidence ${JSON.stringify(uri)} has both a digest and a body; state one of them`);
    }
    const message = {
      uri,
      kind: evidenceKind.number(kind),
      occurredAt: toTimestamp(occurredAt, "evidence.occurredAt"),
    };
    if (body !== undefined) {
      return { ...message, source: { case: "body" as const, value: new Uint8Array(bytes(body)) } };
    }
    return digest === undefined ? message : { ...message, source: { case: "digest" as const, value: digest } };
  });
}

export function toEvidence(message: EvidenceMessage): Evidence {
  return {
    uri: message.uri,
    kind: evidenceKind.name(message.kind),
    digest: message.source.case === "digest" ? message.source.value : undefined,
    occurredAt: toDateIf(message.occurredAt),
  };
}

export function fromDecision(decision: Decision | undefined): MessageInitShape<typeof DecisionSchema> | undefined {
  if (decision === undefined) {
    return undefined;
  }
  return { kind: decisionKind.number(decision.kind), decider: decision.decider ?? "", note: decision.note ?? "" };
}

function bytes(body: string | Uint8Array): Uint8Array {
  if (typeof body !== "string") {
    return body;
  }
  if (!body.isWellFormed()) {
    throw notTextError("evidence.body");
  }
  return Buffer.from(body);
}
