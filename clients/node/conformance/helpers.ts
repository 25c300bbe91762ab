/** What clients offer above single calls, as the conformance cases name it. Each answers with plain JSON. */
import {
  admitAll,
  Decision,
  Evidence,
  MemoryClient,
  recallAll,
  recordUseAll,
  render,
  type Hit,
  type MemoryRun,
} from "@durable-memory/client";

/** Arguments of a case; each helper knows which it has. */
export interface Given {
  readonly session_id: string;
  readonly run_id: string;
  readonly content: string;
  readonly query: string;
  readonly answer: string;
  readonly max_results?: number;
  readonly max_bytes?: number;
  readonly scopes: readonly string[];
  readonly remember: Readonly<Record<string, readonly string[]>>;
  readonly page_size: number;
  readonly after: number;
  readonly count: number;
  readonly to: string;
}

type Helper = (memory: MemoryClient, given: Given) => Promise<unknown>;

/** Propose what was heard, and have a rule activate it. */
const mainJob: Helper = async (memory, given) => {
  const evidence = [Evidence.sessionTurn(given.session_id, given.run_id, given.content)];
  const proposed = await memory.propose(given.content, { evidence });
  const activated = await memory.activate(proposed, Decision.byRule("conformance", 1, { note: "said so" }));
  const { node } = await memory.get(activated);
  return {
    proposed: proposed.outcome,
    activated_revision: Number(activated.citation.nodeRevision),
    content: node.content,
    status: node.status,
    evidence: node.evidence.map((item) => item.kind),
  };
};

/** A whole turn: recall and admit, render, cite, record use. */
const turn: Helper = async (memory, given) => {
  const session = await memory.openSession(given.session_id, { maxResults: given.max_results ?? 5 });
  await using run = await session.beginRun(given.run_id);
  const recall = await run.recall(given.query, { admit: true });
  const block = render(recall, { maxBytes: given.max_bytes });
  const used = await run.recordUse(block.cited(given.answer));
  return {
    hits: contents(recall),
    admitted: recall.admissions.map((outcome) => outcome.admitted),
    text: block.text,
    cited: contents(block.cited(given.answer)),
    used: used.length,
  };
};

/** A turn over several namespaces: recall in all, admit what fits, record what was used. */
const several: Helper = async (memory, given) => {
  const runs: MemoryRun[] = [];
  try {
    for (const scope of given.scopes) {
      const where = memory.namespace({ scope: `${memory.ref.scope ?? ""}${scope}` });
      for (const content of given.remember[scope] ?? []) {
        await where.remember(content);
      }
      runs.push(await (await where.openSession("several")).beginRun("turn-1"));
    }
    const recall = await recallAll(runs, given.query, { maxResults: given.max_results });
    const admission = await admitAll(runs, recall);
    const used = await recordUseAll(runs, admission.hits);
    return { hits: contents(recall), admitted: contents(admission.hits), used: used.length };
  } finally {
    for (const run of runs) {
      await run[Symbol.asyncDispose]();
    }
  }
};

/** A recall whose caller goes on without memory when the service cannot answer. */
const recallOrEmpty: Helper = async (memory, given) => {
  const session = await memory.openSession("assistant", { onUnavailable: "empty" });
  const recall = await session.recall(given.query);
  return { hits: contents(recall), unavailable: recall.unavailable };
};

/** All nodes by the iterator, which reads the pages. */
const iterateNodes: Helper = async (memory, given) => {
  const found: string[] = [];
  for await (const node of memory.listNodes({ pageSize: given.page_size })) {
    found.push(node.content);
  }
  return found;
};

/** The first changes after a namespace revision, from a watch that resumes when its stream is lost. */
const watch: Helper = async (memory, given) => {
  const revisions: number[] = [];
  for await (const change of memory.watch({ after: given.after })) {
    revisions.push(Number(change.changeToken.namespaceRevision));
    if (revisions.length === given.count) {
      break;
    }
  }
  return revisions;
};

/** The nodes of a snapshot, checked against its footer. */
const snapshot: Helper = async (memory) => {
  const taken = memory.snapshot();
  const nodes = await taken.all();
  return { nodes: nodes.map((node) => node.content).sort(), count: taken.summary?.nodeCount };
};

/** Export the namespace, import it on another server, and read what is there. */
const copy: Helper = async (memory, given) => {
  const lines: string[] = [];
  for await (const line of memory.exportNamespace()) {
    lines.push(line);
  }
  await using target = new MemoryClient({ address: given.to, ...memory.ref });
  const imported = await target.importNamespace(lines);
  const nodes = await target.listNodes().all();
  return {
    nodes: nodes.map((node) => node.content).sort(),
    namespace_revision: Number(imported.changeToken.namespaceRevision),
  };
};

/** Bring the vector index up to date and wait for the receipt; then recall by meaning alone. */
const refresh: Helper = async (memory) => {
  const session = await memory.openSession("assistant");
  const receipt = await memory.refreshSemanticRecall(session.sessionId).wait();
  const status = await memory.getIndexStatus();
  return { active_count: receipt.activeCount, unindexed: status.unindexedActiveCount };
};

export const HELPERS: Readonly<Record<string, Helper>> = {
  main_job: mainJob,
  turn,
  several,
  recall_or_empty: recallOrEmpty,
  iterate_nodes: iterateNodes,
  watch,
  snapshot,
  copy,
  refresh,
};

function contents(hits: Iterable<Hit>): string[] {
  return Array.from(hits, (hit) => hit.content);
}
