/** Messages that tests have the scripted service answer with. */
import { create } from "@bufbuild/protobuf";
import * as v1 from "@durable-memory/client/v1";

export const DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
export const CITATION = `dm1:42:prefers-tea@3#${DIGEST}`;
const NAMESPACE = { tenantId: "acme", principalId: "user-1", scopeId: "project-a" };

export function citation(nodeId = "prefers-tea") {
  return { namespaceRevision: 42n, nodeId, nodeRevision: 3n, contentDigest: DIGEST };
}

export function opened(scopeId = "project-a") {
  return create(v1.OpenSessionResponseSchema, {
    session: { sessionId: "assistant", binding: { namespace: { ...NAMESPACE, scopeId } }, bindingDigest: "digest-1" },
    outcome: v1.OpenSessionOutcome.OPENED,
  });
}

export function begun(contextId = "context-0") {
  return create(v1.BeginRunResponseSchema, {
    run: { sessionId: "assistant", runId: "turn-1", incarnation: "incarnation-1", contextId },
    outcome: v1.BeginRunOutcome.BEGUN,
  });
}

export function recalled(contents: readonly string[], extra: { nextContextId?: string; admitted?: boolean } = {}) {
  return create(v1.ActiveRecallResponseSchema, {
    changeToken: { historyId: "h", namespaceRevision: 42n },
    result: {
      modeUsed: v1.RecallMode.LEXICAL,
      hits: contents.map((content, index) => ({
        citation: citation(content),
        rank: index + 1,
        kind: v1.NodeKind.SEMANTIC,
        content,
      })),
    },
    admissions: extra.admitted === undefined ? [] : contents.map((content) => admission(content, extra.admitted)),
    nextContextId: extra.nextContextId ?? "",
  });
}

export function admission(nodeId: string, admitted = true) {
  return {
    nodeRevision: { nodeId, revision: 3n },
    verdict: admitted ? v1.AdmissionVerdict.ADMITTED : v1.AdmissionVerdict.REFUSED,
    ...(admitted ? {} : { error: { reason: v1.ErrorReason.REVISION_CONFLICT, message: "it has changed" } }),
  };
}

export function admittedAll(nodeIds: readonly string[], nextContextId: string, refused: readonly string[] = []) {
  return create(v1.AdmitMemoriesResponseSchema, {
    outcomes: nodeIds.map((nodeId) => admission(nodeId, !refused.includes(nodeId))),
    nextContextId,
  });
}

export function recorded(count = 1) {
  return create(v1.RecordUseResponseSchema, {
    outcomes: Array.from({ length: count }, () => ({ verdict: v1.UseVerdict.RECORDED })),
  });
}

export function remembered() {
  return create(v1.RememberResponseSchema, {
    outcome: v1.RememberOutcome.CREATED,
    citation: citation(),
    changeToken: { historyId: "h", namespaceRevision: 42n },
  });
}

export function heartbeat(namespaceRevision: bigint) {
  return create(v1.WatchNamespaceResponseSchema, {
    event: { case: "heartbeat", value: { changeToken: { historyId: "h", namespaceRevision } } },
  });
}

export function change(namespaceRevision: bigint) {
  return create(v1.WatchNamespaceResponseSchema, {
    event: {
      case: "change",
      value: { changeToken: { historyId: "h", namespaceRevision }, changeSet: { namespaceRevision } },
    },
  });
}

export function snapshotOf(contents: readonly string[], nodeCount = contents.length) {
  const bytes = contents.reduce((sum, content) => sum + Buffer.byteLength(content), 0);
  return [
    create(v1.SnapshotResponseSchema, {
      message: { case: "header", value: { changeToken: { historyId: "h", namespaceRevision: 1n } } },
    }),
    ...contents.map((content) =>
      create(v1.SnapshotResponseSchema, { message: { case: "node", value: { id: content, content } } }),
    ),
    create(v1.SnapshotResponseSchema, {
      message: {
        case: "footer",
        value: { nodeCount: BigInt(nodeCount), contentBytes: BigInt(bytes), digest: DIGEST },
      },
    }),
  ];
}

export function progress(done: bigint) {
  return create(v1.RefreshSemanticRecallResponseSchema, {
    message: { case: "progress", value: { phase: v1.RefreshPhase.EMBEDDING, done, total: 2n } },
  });
}

export function receipt() {
  return create(v1.RefreshSemanticRecallResponseSchema, {
    message: { case: "receipt", value: { indexRevision: 7n, activeCount: 2n, indexedCount: 2n } },
  });
}

export function exported() {
  return create(v1.ExportNamespaceResponseSchema, {
    records: [{ record: { case: "header", value: {} } }, { record: { case: "footer", value: {} } }],
  });
}
