/** Several namespaces in one turn: a user's memory and a project's, say. */
import type { CallOptions, OnUnavailable } from "./calls.js";
import { ofSeveral } from "./failures.js";
import type { MemoryRun } from "./run.js";
import { admissionOf, type Admission, type UseOutcome } from "./values/access.js";
import { namespaceKey, namespaceLabel } from "./values/namespace.js";
import { MergedRecall, type Hit, type RecallFields } from "./values/recall.js";
import { together } from "./waiting.js";

/** What is done when a namespace is out of reach. */
export interface SeveralOptions extends CallOptions {
  /** Default: each session's. */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/** How to recall in several runs. */
export interface RecallAllOptions extends RecallFields, SeveralOptions {
  /** Cuts the whole. */
  readonly maxResults?: number | undefined;
}

/**
 * Recall in several runs, each of a namespace of its own, at once; the hits as one sequence.
 *
 * Hits come by rank, the runs taking turns in the order given. Nothing is admitted: give what you use to `admitAll`.
 * With `onUnavailable: "empty"`, a namespace out of reach has no hits.
 */
export async function recallAll(
  runs: readonly MemoryRun[],
  query: string,
  options: RecallAllOptions = {},
): Promise<MergedRecall> {
  const { maxResults, signal, ...each } = options;
  const parts = await together(
    signal,
    runs.map((run) => (linked: AbortSignal) => run.recall(query, { ...each, signal: linked })),
  );
  const longest = Math.max(0, ...parts.map((part) => part.hits.length));
  const byRank = Array.from({ length: longest }, (_, rank) => parts.flatMap((part) => part.hits[rank] ?? []));
  return new MergedRecall(byRank.flat().slice(0, maxResults), parts);
}

/**
 * Admit each hit in the run of its namespace. The answer has the hits that may stay, in the order given.
 *
 * @throws TypeError for a hit of a namespace that no run is of.
 */
export async function admitAll(
  runs: readonly MemoryRun[],
  hits: Iterable<Hit>,
  options: SeveralOptions = {},
): Promise<Admission> {
  const wanted = [...hits];
  const admissions = await inShares(sharesOf(runs, wanted), options.signal, (run, share, signal) =>
    run.admit(share, { ...options, signal }),
  );
  const admitted = new Set(admissions.flatMap((admission) => admission.hits));
  return admissionOf({
    hits: wanted.filter((hit) => admitted.has(hit)),
    outcomes: admissions.flatMap((admission) => admission.outcomes),
    error: admissions.find((admission) => admission.unavailable)?.error,
  });
}

/**
 * Record the use of each hit in the run of its namespace; the outcomes run by run.
 *
 * @throws TypeError for a hit of a namespace that no run is of.
 */
export async function recordUseAll(
  runs: readonly MemoryRun[],
  hits: Iterable<Hit>,
  options: CallOptions = {},
): Promise<UseOutcome[]> {
  const { timeoutMs } = options;
  const outcomes = await inShares(sharesOf(runs, [...hits]), options.signal, (run, share, signal) =>
    run.recordUse(share, { timeoutMs, signal }),
  );
  return outcomes.flat();
}

interface Share {
  readonly run: MemoryRun;
  readonly share: Hit[];
}

/** Does something with all shares at once, as `together`: what failed of one may have been done of the others. */
async function inShares<T>(
  shares: readonly Share[],
  signal: AbortSignal | undefined,
  work: (run: MemoryRun, share: Hit[], signal: AbortSignal) => Promise<T>,
): Promise<T[]> {
  try {
    return await together(
      signal,
      shares.map(
        ({ run, share }) =>
          (linked) =>
            work(run, share, linked),
      ),
    );
  } catch (error) {
    throw shares.length > 1 ? ofSeveral(error) : error;
  }
}

function sharesOf(runs: readonly MemoryRun[], hits: readonly Hit[]): Share[] {
  const shares = new Map<string, Share>();
  for (const run of runs) {
    const key = namespaceKey(run.namespace);
    if (!shares.has(key)) {
      shares.set(key, { run, share: [] });
    }
  }
  for (const hit of hits) {
    const own = shares.get(namespaceKey(hit.namespace));
    if (own === undefined) {
      throw new TypeError(`no run is of the namespace of a hit: ${namespaceLabel(hit.namespace)}`);
    }
    own.share.push(hit);
  }
  return [...shares.values()].filter(({ share }) => share.length > 0);
}
