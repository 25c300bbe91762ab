/** Every RPC has a method, found by reflection over the descriptors. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Decision, Reason, VERSION, type MemoryClient } from "@durable-memory/client";
import * as v1 from "@durable-memory/client/v1";
import { callPolicy } from "../src/call_policy.js";
import { REASON_ROWS } from "../src/generated/reasons.js";
import { SERVICE_CONFIG } from "../src/generated/service_config.js";
import * as messages from "./messages.js";
import { CITATION } from "./messages.js";
import { ScriptedService, SERVICES } from "./scripted_service.js";

const DEADLINES_MS: ReadonlyMap<string, number | undefined> = new Map([
  ["unary", 10_000],
  ["client_streaming", 600_000],
  ["server_streaming", undefined],
]);
const RPCS = SERVICES.flatMap((service) => service.methods);

async function useEverything(memory: MemoryClient): Promise<void> {
  await memory.serverInfo();
  const session = await memory.openSession("assistant");
  await memory.resumeSession("assistant", "digest-1");
  await session.rebind();
  await memory.getSession("assistant");
  await memory.listSessions().all();
  await session.run("turn-1", async (run) => {
    const recall = await run.recall("tea?");
    await run.admit(recall);
    await run.recordUse(recall);
    await run.end();
  });
  await session.explain("prefers-tea", "tea?");
  await memory.preview("tea?");
  await memory.usage().all();
  await memory.closeSession("assistant");
  await memory.propose("The user prefers tea.");
  await memory.listCandidates().all();
  await memory.activate(CITATION, Decision.manual());
  await memory.reject(CITATION, Decision.manual());
  await memory.remember("The user prefers tea.");
  await memory.put("prefers-tea", "The user prefers tea.");
  await memory.revise(CITATION, { content: "The user prefers green tea." });
  await memory.retire(CITATION);
  await memory.reactivate(CITATION);
  await memory.supersede(CITATION, "The user prefers coffee.");
  await memory.get(CITATION);
  await memory.applyChangeSet([{ type: "create", memory: { content: "The user prefers tea." } }]);
  await memory.getNode("prefers-tea");
  await memory.getNodes(["prefers-tea"]);
  await memory.listNodes().all();
  await memory.listRevisions("prefers-tea").all();
  await memory.getRevision(CITATION);
  await memory.listChangeSets().all();
  await memory.getChangeSet({ namespaceRevision: 1 });
  await memory.getChangeToken();
  await memory.snapshot().all();
  for await (const change of memory.watch({ after: 0 })) {
    assert.equal(change.changeToken.namespaceRevision, 1n);
    break;
  }
  await memory.refreshSemanticRecall("assistant").wait();
  await memory.getIndexStatus();
  await memory.listReceipts().all();
  await memory.clearPartition();
  await memory.setSchedule({ intervalMs: 60_000 });
  await memory.getMaintenanceHealth();
  await memory.importNamespace(memory.exportNamespace());
}

async function answeringEverything(): Promise<ScriptedService> {
  const service = await ScriptedService.start();
  const { session } = messages.opened();
  service.willAnswer("SessionService.OpenSession", messages.opened());
  service.willAnswer("SessionService.ResumeSession", create(v1.ResumeSessionResponseSchema, { session }));
  service.willAnswer("SessionService.RebindSession", create(v1.RebindSessionResponseSchema, { session }));
  service.willAnswer("SessionService.BeginRun", messages.begun());
  service.willAnswer("RecallService.ActiveRecall", messages.recalled(["tea"]));
  service.willAnswer("RecallService.AdmitMemories", messages.admittedAll(["tea"], "context-1"));
  service.willAnswer("RecallService.RecordUse", messages.recorded());
  service.willAnswer(
    "CandidateService.ProposeCandidates",
    create(v1.ProposeCandidatesResponseSchema, { results: [{ citation: messages.citation() }] }),
  );
  service.willAnswer(
    "CandidateService.ActivateCandidates",
    create(v1.ActivateCandidatesResponseSchema, { results: [{ citation: messages.citation() }] }),
  );
  service.willAnswer(
    "CandidateService.RejectCandidates",
    create(v1.RejectCandidatesResponseSchema, { results: [{ citation: messages.citation() }] }),
  );
  service.willAnswer("RepositoryService.Snapshot", messages.snapshotOf(["tea"]));
  service.willAnswer("RepositoryService.WatchNamespace", [messages.heartbeat(0n), messages.change(1n)]);
  service.willAnswer("SemanticService.RefreshSemanticRecall", [messages.receipt()]);
  service.willAnswer("TransferService.ExportNamespace", [messages.exported()]);
  return service;
}

test("every RPC has a method; changes have a request id of their own, reads none; all name the namespace", async () => {
  await using service = await answeringEverything();
  await using memory = service.client();

  await useEverything(memory);

  const called = new Set(service.asked.map((asked) => asked.method));
  assert.deepEqual([...called].sort(), RPCS.map((rpc) => `${rpc.parent.name}.${rpc.name}`).sort());
  const ids = new Set<string>();
  for (const rpc of RPCS) {
    const name = `${rpc.parent.name}.${rpc.name}`;
    const [asked] = service.calls(name);
    const request = asked?.requests[0] as { requestId?: string; namespace?: v1.NamespaceRef } | undefined;
    if ("namespace" in rpc.input.field) {
      assert.equal(request?.namespace?.principalId, "user-1", name);
    }
    const changes = rpc.idempotency !== IdempotencyLevel.NO_SIDE_EFFECTS && name !== "RecallService.ActiveRecall";
    assert.equal(Boolean(request?.requestId), changes, name);
    if (request?.requestId) {
      assert.ok(!ids.has(request.requestId), name);
      ids.add(request.requestId);
    }
    const deadline = callPolicy(rpc).timeoutMs;
    assert.equal(deadline, DEADLINES_MS.get(rpc.methodKind), name);
    const sent = asked?.sentTimeoutMs;
    assert.equal(sent === undefined, deadline === undefined, name);
    assert.ok(sent === undefined || (sent > (deadline ?? 0) - 5_000 && sent <= (deadline ?? 0)), name);
  }
});

test("the service config names RPCs that exist, and an RPC that it does not name has the default policy", () => {
  const names: readonly { service?: string; method?: string }[] = SERVICE_CONFIG.methodConfig.flatMap(
    (entry) => entry.name,
  );
  for (const { service, method } of names.filter((name) => name.service !== undefined)) {
    assert.ok(
      RPCS.some((rpc) => rpc.parent.typeName === service && rpc.name === method),
      `${String(service)}/${String(method)}`,
    );
  }
  const policy = callPolicy(v1.MemoryService.method.remember);
  assert.deepEqual([policy.timeoutMs, policy.retry?.maxAttempts], [10_000, 5]);
  assert.equal(callPolicy(v1.TransferService.method.importNamespace).retry, undefined);
});

test("reasons are those of the contract, and each has its row", () => {
  const reasons = v1.ErrorReasonSchema.values.filter((value) => value.number !== 0).map((value) => value.localName);
  assert.deepEqual(Object.keys(REASON_ROWS).sort(), reasons.sort());
  assert.deepEqual(Object.keys(Reason), Object.keys(REASON_ROWS));
});

test("the version is that of the package", () => {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  assert.equal(VERSION, manifest.version);
});
