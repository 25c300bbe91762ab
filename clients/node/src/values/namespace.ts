import type { ChangeToken as ChangeTokenMessage } from "../gen/durablememory/v1/change_token_pb.js";
import type { NamespaceRef } from "../gen/durablememory/v1/namespace_pb.js";

/**
 * The unit of isolation: whose memory it is, and which part of it.
 *
 * A part that is undefined is left to the server, which fills it in if the credential allows exactly one value.
 */
export interface Namespace {
  readonly tenant: string | undefined;
  readonly principal: string | undefined;
  readonly scope: string | undefined;
}

/**
 * A point in the history of one namespace. Equal tokens of a namespace mean equal node state.
 *
 * Revisions can be ordered only between tokens of the same history.
 */
export interface ChangeToken {
  readonly historyId: string;
  readonly namespaceRevision: bigint;
}

/** A revision as input; numbers must be whole. */
export type Revision = bigint | number;

export function toNamespace(message: NamespaceRef | undefined): Namespace {
  return { tenant: message?.tenantId, principal: message?.principalId, scope: message?.scopeId };
}

export function fromNamespace(namespace: Namespace): { tenantId?: string; principalId?: string; scopeId?: string } {
  return {
    ...(namespace.tenant === undefined ? {} : { tenantId: namespace.tenant }),
    ...(namespace.principal === undefined ? {} : { principalId: namespace.principal }),
    ...(namespace.scope === undefined ? {} : { scopeId: namespace.scope }),
  };
}

/** Equal for equal namespaces only. */
export function namespaceKey(namespace: Namespace): string {
  return JSON.stringify([namespace.tenant ?? null, namespace.principal ?? null, namespace.scope ?? null]);
}

/** The namespace as a person writes it. */
export function namespaceLabel(namespace: Namespace): string {
  return [namespace.tenant, namespace.principal, namespace.scope].filter(Boolean).join("/");
}

export function toChangeToken(message: ChangeTokenMessage | undefined): ChangeToken {
  return { historyId: message?.historyId ?? "", namespaceRevision: message?.namespaceRevision ?? 0n };
}

/** The revision on the wire; undefined stays absent. @throws RangeError for a fraction. */
export function revisionIf(revision: Revision | undefined): bigint | undefined {
  return revision === undefined ? undefined : BigInt(revision);
}
