import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { MemoryClient, MemoryUnavailableError, recallAll, type MemoryClientOptions } from "@durable-memory/client";
import * as v1 from "@durable-memory/client/v1";
import { begun, opened, recalled } from "./messages.js";
import { ScriptedService } from "./scripted_service.js";

const OPEN = "SessionService.OpenSession";
const BEGIN = "SessionService.BeginRun";
const RECALL = "RecallService.ActiveRecall";
const DOWN = { refuse: Code.Unavailable } as const;
const NOWHERE: MemoryClientOptions = { address: "127.0.0.1:9", tenant: "acme", principal: "user-1", scope: "a" };

async function scripted(): Promise<ScriptedService> {
  const service = await ScriptedService.start();
  service.willAnswer(OPEN, opened());
  service.willAnswer(BEGIN, begun());
  return service;
}

test("by default an outage is an error", async () => {
  await using service = await scripted();
  await using memory = service.client();
  const session = await memory.openSession("assistant");
  service.willAnswer(RECALL, DOWN);
  await assert.rejects(session.recall("tea?", { timeoutMs: 500 }), MemoryUnavailableError);
});

test("a recall may come back empty and marked", async () => {
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const session = await memory.openSession("assistant");
  service.willAnswer(RECALL, DOWN);
  const recall = await session.recall("tea?");
  assert.deepEqual([recall.unavailable, recall.hits.length, recall.error?.code], [true, 0, "UNAVAILABLE"]);
  assert.deepEqual([recall.modeUsed, recall.changeToken], [undefined, undefined]);
  assert.equal(service.calls(RECALL).length, 2);
});

test("a recall that finds nothing is no outage, and neither is a refusal", async () => {
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const session = await memory.openSession("assistant");
  service.willAnswer(RECALL, recalled([]));
  assert.equal((await session.recall("tea?")).unavailable, false);
  service.willAnswer(RECALL, { refuse: Code.FailedPrecondition, reason: "SESSION_CLOSED" });
  await assert.rejects(session.recall("tea?"), { reason: "SESSION_CLOSED" });
});

test("a turn works while nobody listens, and does not wait for it again", async () => {
  await using memory = new MemoryClient({ ...NOWHERE, onUnavailable: "empty" });
  const session = await memory.openSession("assistant");
  const started = performance.now();
  await session.run("turn-1", async (run) => {
    assert.equal((await run.recall("tea?", { admit: true })).unavailable, true);
    assert.equal(run.evidence("x").uri, `session:assistant/turn/turn-1`);
    assert.throws(() => run.info, /has not begun/);
  });
  assert.ok(performance.now() - started < 1_000);
});

test("what an outage kept from opening is opened by the first recall that gets through, by one request", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(OPEN, DOWN, DOWN, opened());
  const session = await memory.openSession(undefined, { onUnavailable: "empty" });
  assert.throws(() => session.info, /not open yet/);
  service.willAnswer(RECALL, recalled(["tea"]));

  const recall = await session.recall("tea?", { onUnavailable: "throw" });

  assert.equal(recall.hits.length, 1);
  const asked = service.requests(OPEN, v1.OpenSessionRequestSchema);
  assert.equal(asked.length, 3);
  assert.equal(new Set(asked.map((request) => request.requestId)).size, 1);
  assert.deepEqual(new Set(asked.map((request) => request.sessionId)), new Set([session.sessionId]));
});

test("an outage is over with the first answer", async () => {
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const session = await memory.openSession("assistant");
  service.willAnswer(RECALL, DOWN, DOWN, recalled(["tea"]));
  assert.equal((await session.recall("tea?")).unavailable, true);
  assert.equal((await session.recall("tea?")).unavailable, true);
  assert.equal(service.calls(RECALL).length, 2);
  await memory.getChangeToken();
  assert.equal((await session.recall("tea?")).hits.length, 1);
});

test("a service that never answers costs a bounded time", async () => {
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const session = await memory.openSession("assistant");
  service.willAnswer(RECALL, "forever");
  const started = performance.now();
  assert.equal((await session.recall("tea?", { timeoutMs: 300 })).unavailable, true);
  assert.ok(performance.now() - started < 2_000);
});

test("a caller in a hurry makes no outage for the others", async () => {
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const session = await memory.openSession("assistant");
  service.willAnswer(RECALL, "forever", recalled(["tea"]));
  const hurried = await session.recall("tea?", { timeoutMs: 100 });
  assert.deepEqual([hurried.unavailable, hurried.error?.attempts], [true, 1]);
  assert.equal((await session.recall("tea?")).hits.length, 1);
});

test("what ended for the error of another client makes no outage", async () => {
  await using service = await scripted();
  await using overloaded = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  await using away = overloaded.client();
  const session = await memory.openSession("assistant");
  const here = await session.beginRun("turn-1");
  const there = await (await away.openSession("assistant")).beginRun("turn-1");
  service.willAnswer(RECALL, "forever", recalled(["tea"]));
  overloaded.willAnswer(RECALL, { refuse: Code.ResourceExhausted, reason: "OVERLOADED" });
  await assert.rejects(recallAll([here, there], "tea?"), { reason: "OVERLOADED" });
  assert.equal((await session.recall("tea?")).hits.length, 1);
});

test("who is told of a lasting outage sent nothing", async () => {
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const run = await (await memory.openSession("assistant")).beginRun("turn-1");
  service.willAnswer(RECALL, DOWN);
  const first = (await run.recall("tea?", { admit: true })).error;
  const second = (await run.recall("tea?", { admit: true })).error;
  assert.deepEqual([first?.definite, first?.attempts, first?.method], [false, 2, RECALL]);
  assert.match(first?.requestId ?? "", /./);
  assert.ok(second instanceof MemoryUnavailableError);
  assert.deepEqual([second.definite, second.attempts, second.method, second.requestId], [true, 0, "", undefined]);
  assert.deepEqual([second.code, second.message], ["UNAVAILABLE", "UNAVAILABLE: refused"]);
  assert.equal(service.calls(RECALL).length, 2);
});

test("several recalls at once wait for one opening no longer than one", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(OPEN, DOWN);
  const session = await memory.openSession("assistant", { onUnavailable: "empty" });
  await memory.getChangeToken(); // the outage is over
  service.willAnswer(OPEN, "forever");
  const started = performance.now();
  const recalls = await Promise.all([1, 2, 3, 4, 5].map(() => session.recall("tea?", { timeoutMs: 700 })));
  assert.ok(performance.now() - started < 2_500, "one waited after the other");
  assert.ok(recalls.every((recall) => recall.unavailable));
});

test("one namespace out of reach leaves the hits of the other", async () => {
  await using service = await scripted();
  await using memory = service.client();
  await using away = new MemoryClient(NOWHERE);
  const here = await (await memory.openSession("assistant")).beginRun("turn-1");
  const there = await (await away.openSession("assistant", { onUnavailable: "empty" })).beginRun("turn-1");
  service.willAnswer(RECALL, recalled(["tea"]));
  const recall = await recallAll([here, there], "tea?", { onUnavailable: "empty" });
  assert.deepEqual([recall.hits.length, recall.unavailable, recall.errors.length], [1, true, 1]);
});

test("waiting for a service ends when it answers, and with its error when the time is over", async () => {
  await using service = await scripted();
  await using memory = service.client();
  const info = create(v1.GetServerInfoResponseSchema, { version: "1.2.3" });
  service.willAnswer("SessionService.GetServerInfo", DOWN, DOWN, DOWN, DOWN, DOWN, DOWN, info);
  assert.equal((await memory.waitUntilReady()).version, "1.2.3");
  await using away = new MemoryClient(NOWHERE);
  await assert.rejects(away.waitUntilReady({ timeoutMs: 200 }), MemoryUnavailableError);
});
