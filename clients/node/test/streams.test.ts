import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { IncompleteStreamError, MemoryServiceError, MemoryUnavailableError } from "@durable-memory/client";
import * as v1 from "@durable-memory/client/v1";
import { change, exported, heartbeat, progress, receipt, snapshotOf } from "./messages.js";
import { ScriptedService } from "./scripted_service.js";

const LIST = "RepositoryService.ListNodes";
const SNAPSHOT = "RepositoryService.Snapshot";
const WATCH = "RepositoryService.WatchNamespace";
const EXPORT = "TransferService.ExportNamespace";
const IMPORT = "TransferService.ImportNamespace";
const REFRESH = "SemanticService.RefreshSemanticRecall";

function page(ids: readonly string[], nextPageToken: string): v1.ListNodesResponse {
  return create(v1.ListNodesResponseSchema, { nodes: ids.map((id) => ({ id })), nextPageToken });
}

test("a listing reads on to its last page, and no page that nobody asked for", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(LIST, page(["a", "b"], "next"), page(["c"], ""));
  const ids: string[] = [];
  for await (const node of memory.listNodes({ pageSize: 2, statuses: ["ACTIVE"] })) {
    ids.push(node.id);
    assert.equal(service.calls(LIST).length, ids.length <= 2 ? 1 : 2);
  }
  assert.deepEqual(ids, ["a", "b", "c"]);
  const asked = service.requests(LIST, v1.ListNodesRequestSchema);
  assert.deepEqual(
    asked.map((request) => [request.pageToken, request.pageSize]),
    [
      ["", 2],
      ["next", 2],
    ],
  );
});

test("a listing can be read page by page", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(LIST, page(["a"], "next"));
  const first = await memory.listNodes().page();
  assert.deepEqual([first.items.length, first.nextPageToken], [1, "next"]);
  service.willAnswer(LIST, page(["b"], ""));
  await memory.listNodes().page(first.nextPageToken);
  assert.equal(service.requests(LIST, v1.ListNodesRequestSchema)[1]?.pageToken, "next");
});

test("a snapshot says what it is of", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(SNAPSHOT, snapshotOf(["茶", "tea"]));
  const snapshot = memory.snapshot();
  assert.deepEqual(
    (await snapshot.all()).map((node) => node.content),
    ["茶", "tea"],
  );
  assert.equal(snapshot.changeToken?.namespaceRevision, 1n);
  assert.deepEqual([snapshot.summary?.nodeCount, snapshot.summary?.contentBytes], [2, 6]);
});

for (const [what, messages] of Object.entries({
  "that lacks its footer": snapshotOf(["tea"]).slice(0, -1),
  "that lacks a node": snapshotOf(["tea"], 2),
  "that goes on after its footer": [...snapshotOf(["tea"]), ...snapshotOf(["tea"]).slice(1, 2)],
  "without anything": [],
})) {
  test(`a snapshot ${what} is an error`, async () => {
    await using service = await ScriptedService.start();
    await using memory = service.client();
    service.willAnswer(SNAPSHOT, messages);
    const snapshot = memory.snapshot();
    await assert.rejects(snapshot.all(), IncompleteStreamError);
    assert.equal(snapshot.summary, undefined);
  });
}

test("a stream that breaks off throws what broke it", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  const [header, node] = snapshotOf(["tea"]);
  assert.ok(header !== undefined && node !== undefined);
  service.willAnswer(SNAPSHOT, [header, node, { refuse: Code.ResourceExhausted, reason: "SNAPSHOT_TOO_LARGE" }]);
  await assert.rejects(memory.snapshot().all(), { reason: "SNAPSHOT_TOO_LARGE" });
  service.willAnswer(SNAPSHOT, [header, node, "cut"]);
  await assert.rejects(memory.snapshot().all(), MemoryUnavailableError);
});

test("leaving the loop over a stream ends it at the service", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(SNAPSHOT, [...snapshotOf(["tea"]).slice(0, 2), "forever"]);
  for await (const node of memory.snapshot({ timeoutMs: 60_000 })) {
    assert.equal(node.content, "tea");
    break;
  }
  assert.ok(!process.getActiveResourcesInfo().includes("Timeout"), "its deadline keeps the process from ending");
  const [asked] = service.calls(SNAPSHOT);
  assert.deepEqual(await asked?.ended, { cancelled: true });
});

test("an export without a footer is an error", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(EXPORT, [
    create(v1.ExportNamespaceResponseSchema, { records: [{ record: { case: "header", value: {} } }] }),
  ]);
  await assert.rejects(async () => {
    for await (const line of memory.exportNamespace()) {
      assert.equal(line, '{"header":{}}');
    }
  }, IncompleteStreamError);
});

test("an import states namespace and request id first, and takes lines as they come", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(EXPORT, [exported()]);
  await memory.importNamespace(memory.exportNamespace(), { requestId: "import-1" });
  const [asked] = service.calls(IMPORT);
  const [first, second] = (asked?.requests ?? []) as v1.ImportNamespaceRequest[];
  assert.deepEqual([first?.requestId, first?.namespace?.scopeId, first?.records.length], ["import-1", "project-a", 0]);
  assert.equal(second?.records.length, 2);
});

test("a bad line ends an import as what it is", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  await assert.rejects(memory.importNamespace(["{}"]), SyntaxError);
});

test("an import that is refused after its answer has been refused", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  const answer = create(v1.ImportNamespaceResponseSchema);
  service.willAnswer(IMPORT, [answer, { refuse: Code.DataLoss, reason: "DATA_CORRUPTED" }]);
  await assert.rejects(memory.importNamespace(['{"header":{}}']), { reason: "DATA_CORRUPTED" });
});

test("an import is sent once, and its error has the id to repeat it with", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(IMPORT, "cut");
  await assert.rejects(
    memory.importNamespace(['{"header":{}}']),
    (error) => error instanceof MemoryUnavailableError && error.attempts === 1 && error.requestId !== undefined,
  );
  assert.equal(service.calls(IMPORT).length, 1);
});

for (const [what, loss] of Object.entries({
  "an outage": { refuse: Code.Unavailable, reason: "NOT_SERVING" },
  "a cut connection": "cut",
  "a proxy that lost its server": { refuse: Code.Internal },
  "the end of its stream": undefined,
} as const)) {
  test(`a watch goes on after ${what} without gap or repetition`, async () => {
    await using service = await ScriptedService.start();
    await using memory = service.client();
    service.willAnswer(
      WATCH,
      [change(1n), change(2n), ...(loss === undefined ? [] : [loss])],
      [change(2n), change(3n), "forever"],
    );
    const revisions: bigint[] = [];
    const changes = memory.watch({ after: 0 });
    for await (const { changeToken } of changes) {
      revisions.push(changeToken.namespaceRevision);
      if (revisions.length === 3) {
        break;
      }
    }
    assert.deepEqual(revisions, [1n, 2n, 3n]);
    assert.equal(changes.position?.namespaceRevision, 3n);
    const asked = service.requests(WATCH, v1.WatchNamespaceRequestSchema);
    assert.deepEqual(
      asked.map((request) => request.afterNamespaceRevision),
      [0n, 2n],
    );
    assert.deepEqual(
      asked.map((request) => request.historyId),
      [undefined, "h"],
    );
    assert.deepEqual(await service.calls(WATCH)[1]?.ended, { cancelled: true });
  });
}

test("a watch that begins now is resumed from where it began", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(WATCH, [heartbeat(7n), "cut"], [change(8n), "forever"]);
  await using changes = memory.watch();
  assert.equal((await changes.next()).value?.changeToken.namespaceRevision, 8n);
  const asked = service.requests(WATCH, v1.WatchNamespaceRequestSchema);
  assert.deepEqual(
    asked.map((request) => request.afterNamespaceRevision),
    [undefined, 7n],
  );
});

test("a watch from a token insists on its history", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(WATCH, { refuse: Code.FailedPrecondition, reason: "HISTORY_CHANGED" });
  await using changes = memory.watch({ after: { historyId: "old", namespaceRevision: 5n } });
  assert.equal(changes.position?.historyId, "old");
  await assert.rejects(changes.next(), { reason: "HISTORY_CHANGED" });
  assert.equal(service.requests(WATCH, v1.WatchNamespaceRequestSchema)[0]?.historyId, "old");
});

test("a gap in a watch is an error", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(WATCH, [change(1n), change(3n), "forever"]);
  await using changes = memory.watch({ after: 0 });
  await changes.next();
  await assert.rejects(changes.next(), IncompleteStreamError);
});

test("a watch gives up when it was told to", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(WATCH, { refuse: Code.Unavailable });
  await using changes = memory.watch({ after: 0, giveUpAfterMs: 150 });
  await assert.rejects(changes.next(), MemoryUnavailableError);
  assert.ok(service.calls(WATCH).length >= 2);
});

test("closing a watch ends the iteration of a waiting reader, and the call", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(WATCH, "forever");
  const changes = memory.watch({ after: 0 });
  const waiting = changes.next();
  const [asked] = await service.arrived(WATCH);
  await changes.close();
  assert.deepEqual(await waiting, { done: true, value: undefined });
  assert.deepEqual(await asked?.ended, { cancelled: true });
  assert.deepEqual(await changes.next(), { done: true, value: undefined });
});

test("a signal ends a watch with its reason, also while it waits for the service to come back", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  const reason = new Error("enough");
  for (const answer of ["forever", { refuse: Code.Unavailable }] as const) {
    service.willAnswer(WATCH, answer);
    const enough = new AbortController();
    const changes = memory.watch({ after: 0, signal: enough.signal });
    const waiting = changes.next();
    await service.arrived(WATCH, service.calls(WATCH).length + 1);
    enough.abort(reason);
    await assert.rejects(waiting, reason);
    await changes.close();
  }
});

test("a refresh returns its receipt and tells every step, and nothing is asked before", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REFRESH, [progress(0n), progress(2n), receipt()]);
  const refresh = memory.refreshSemanticRecall("assistant", { rebuild: true });
  assert.equal(service.calls(REFRESH).length, 0);
  const steps: number[] = [];
  const done = await refresh.wait((step) => steps.push(step.done));
  assert.deepEqual(steps, [0, 2]);
  assert.deepEqual([done.indexRevision, done.activeCount, refresh.receipt], [7n, 2, done]);
  const [asked] = service.requests(REFRESH, v1.RefreshSemanticRecallRequestSchema);
  assert.deepEqual([asked?.rebuild, asked?.requirement, asked?.sessionId], [true, 1, "assistant"]);
});

test("a refresh that is lost is taken up again with the same request id, as often as any call", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REFRESH, [progress(0n), "cut"], [receipt()]);
  await memory.refreshSemanticRecall("assistant").wait();
  const ids = service.requests(REFRESH, v1.RefreshSemanticRecallRequestSchema).map((request) => request.requestId);
  assert.equal(ids.length, 2);
  assert.equal(new Set(ids).size, 1);

  service.willAnswer(REFRESH, { refuse: Code.Unavailable });
  await assert.rejects(
    memory.refreshSemanticRecall("assistant", { requestId: "refresh-1" }).wait(),
    (error) => error instanceof MemoryUnavailableError && error.attempts === 5 && error.requestId === "refresh-1",
  );
});

test("a refusal of a refresh is not repeated, and a stream without a receipt is no refresh", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REFRESH, { refuse: Code.Aborted, reason: "LEASE_HELD" });
  await assert.rejects(memory.refreshSemanticRecall("assistant").wait(), MemoryServiceError);
  assert.equal(service.calls(REFRESH).length, 1);
  service.willAnswer(REFRESH, [progress(0n)]);
  await assert.rejects(memory.refreshSemanticRecall("assistant").wait(), IncompleteStreamError);
});

test("a refresh that failed after its receipt has none", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REFRESH, [receipt(), { refuse: Code.ResourceExhausted, reason: "QUOTA_EXCEEDED" }]);
  const refresh = memory.refreshSemanticRecall("assistant");
  await assert.rejects(refresh.wait(), { reason: "QUOTA_EXCEEDED" });
  assert.equal(refresh.receipt, undefined);
});

test("a refresh with a deadline ends at it, over all attempts", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REFRESH, [progress(0n), "forever"]);
  await assert.rejects(memory.refreshSemanticRecall("assistant", { timeoutMs: 300 }).wait(), {
    reason: "DEADLINE_EXCEEDED",
  });
});

test("a watch that throws is closed: its call ends, and it reads no further", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(WATCH, [change(1n), change(3n), "forever"]);
  const signal = new AbortController().signal;
  const changes = memory.watch({ after: 0, signal });
  assert.equal(getEventListeners(signal, "abort").length, 0, "nobody reads it yet");
  await changes.next();
  assert.equal(getEventListeners(signal, "abort").length, 1);
  await assert.rejects(changes.next(), IncompleteStreamError);
  assert.equal(getEventListeners(signal, "abort").length, 0);
  assert.deepEqual(await service.calls(WATCH)[0]?.ended, { cancelled: true });
  assert.deepEqual(await changes.next(), { done: true, value: undefined });
  assert.throws(() => memory.watch({ after: 1.5 as never, signal }), RangeError);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a watch waits as long as the service says", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  const limited = { refuse: Code.ResourceExhausted, reason: "RATE_LIMITED", retryAfterMs: 1_500 };
  service.willAnswer(WATCH, limited, [change(1n), "forever"]);
  await using changes = memory.watch({ after: 0 });
  const started = performance.now();
  await changes.next();
  assert.ok(performance.now() - started >= 1_490);
});

test("a stream that a stopping server ends is an outage", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(WATCH, [change(1n), { refuse: Code.Canceled }], [change(2n), "forever"]);
  await using changes = memory.watch({ after: 0 });
  await changes.next();
  assert.equal((await changes.next()).value?.changeToken.namespaceRevision, 2n);
  service.willAnswer(SNAPSHOT, { refuse: Code.Canceled });
  await assert.rejects(memory.snapshot().all(), MemoryUnavailableError);
});

test("a snapshot that is read again says nothing of the reading before", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(SNAPSHOT, snapshotOf(["tea"]), []);
  const snapshot = memory.snapshot();
  await snapshot.all();
  await assert.rejects(snapshot.all(), IncompleteStreamError);
  assert.deepEqual([snapshot.summary, snapshot.changeToken], [undefined, undefined]);
});
