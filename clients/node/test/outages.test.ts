import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { MemoryClient, MemoryUnavailableError, recallAll, type MemoryClientOptions } from "@durable-memory/client";
import * as v1 from "@durable-memory/client/v1";
import { standingClock } from "./clock.js";
import { begun, opened, recalled } from "./messages.js";
import { ScriptedService } from "./scripted_service.js";

const OPEN = "SessionService.OpenSession";
const BEGIN = "SessionService.BeginRun";
const RECALL = "RecallService.ActiveRecall";
const DOWN = { refuse: Code.Unavailable } as const;
/** For what must be answered, or tried twice: how soon is not what these tests judge. */
const PATIENT = { timeoutMs: 50_000 } as const;
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
  const recall = await session.recall("tea?", PATIENT);
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

test("a turn works while nobody listens, and does not wait for it again", async (t) => {
  standingClock(t);
  await using memory = new MemoryClient({ ...NOWHERE, onUnavailable: "empty" });
  const session = await memory.openSession("assistant", PATIENT);
  await session.run("turn-1", async (run) => {
    const recall = await run.recall("tea?", { admit: true });
    assert.deepEqual([recall.unavailable, recall.error?.attempts], [true, 0]);
    assert.equal(run.evidence("x").uri, `session:assistant/turn/turn-1`);
    assert.throws(() => run.info, /has not begun/);
  });
});

test("what an outage kept from opening is opened by the first recall that gets through, by one request", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(OPEN, DOWN, DOWN, opened());
  const session = await memory.openSession(undefined, { ...PATIENT, onUnavailable: "empty" });
  assert.throws(() => session.info, /not open yet/);
  service.willAnswer(RECALL, recalled(["tea"]));

  const recall = await session.recall("tea?", { onUnavailable: "throw" });

  assert.equal(recall.hits.length, 1);
  const asked = service.requests(OPEN, v1.OpenSessionRequestSchema);
  assert.equal(asked.length, 3);
  assert.equal(new Set(asked.map((request) => request.requestId)).size, 1);
  assert.deepEqual(new Set(asked.map((request) => request.sessionId)), new Set([session.sessionId]));
});

test("an outage is over with the first answer", async (t) => {
  standingClock(t);
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const session = await memory.openSession("assistant");
  service.willAnswer(RECALL, DOWN, DOWN, recalled(["tea"]));
  assert.equal((await session.recall("tea?", PATIENT)).unavailable, true);
  assert.equal((await session.recall("tea?", PATIENT)).unavailable, true);
  assert.equal(service.calls(RECALL).length, 2);
  await memory.getChangeToken();
  assert.equal((await session.recall("tea?", PATIENT)).hits.length, 1);
});

test("a service that never answers costs a bounded time", async (t) => {
  standingClock(t);
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const session = await memory.openSession("assistant");
  service.willAnswer(RECALL, "forever");
  assert.equal((await session.recall("tea?", { timeoutMs: 300 })).unavailable, true);
  const stated = service.calls(RECALL).length;
  assert.equal((await session.recall("tea?")).unavailable, true);
  for (const [call, asked] of service.calls(RECALL).entries()) {
    assert.ok((asked.sentTimeoutMs ?? Infinity) <= (call < stated ? 300 : 2_000));
  }
});

test("a caller in a hurry makes no outage for the others", async (t) => {
  standingClock(t); // or its time may be over before anything is sent
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const session = await memory.openSession("assistant");
  service.willAnswer(RECALL, "forever");
  const hurried = await session.recall("tea?", { timeoutMs: 100 });
  assert.deepEqual([hurried.unavailable, hurried.error?.attempts], [true, 1]);
  service.willAnswer(RECALL, recalled(["tea"]));
  assert.equal((await session.recall("tea?", PATIENT)).hits.length, 1);
});

for (const { what, answer, isOutage } of [
  {
    what: "who had little time",
    answer: { refuse: Code.DeadlineExceeded, reason: "DEADLINE_EXCEEDED" },
    isOutage: false,
  },
  { what: "who found the service down", answer: DOWN, isOutage: true },
]) {
  test(`after a wait for another call, ${what} makes ${isOutage ? "an" : "no"} outage for the others`, async (t) => {
    standingClock(t);
    await using service = await scripted();
    await using memory = service.client();
    const session = await memory.openSession("assistant");
    const run = await session.beginRun("turn-1");
    let letGo = (): void => undefined;
    const after = new Promise<void>((resolve) => (letGo = resolve));
    service.willAnswer(RECALL, { after, answer: recalled(["tea"], { admitted: true }) }, answer);
    const first = run.recall("tea?", { admit: true, timeoutMs: 50_000 });
    await service.arrived(RECALL);
    const waiting = run.recall("tea?", { admit: true, onUnavailable: "empty", timeoutMs: 50_000 });
    letGo();
    assert.equal((await first).hits.length, 1);
    const { error } = await waiting;
    assert.deepEqual([error?.code, error?.attempts], isOutage ? ["UNAVAILABLE", 2] : ["DEADLINE_EXCEEDED", 1]);

    service.willAnswer(RECALL, recalled(["tea"]));
    assert.equal((await session.recall("tea?", { ...PATIENT, onUnavailable: "empty" })).unavailable, isOutage);
  });
}

test("what ended for the error of another client makes no outage", async (t) => {
  standingClock(t);
  await using service = await scripted();
  await using overloaded = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  await using away = overloaded.client();
  const session = await memory.openSession("assistant", PATIENT);
  const here = await session.beginRun("turn-1", PATIENT);
  const there = await (await away.openSession("assistant")).beginRun("turn-1");
  service.willAnswer(RECALL, "forever");
  const answer = { refuse: Code.ResourceExhausted, reason: "OVERLOADED" } as const;
  overloaded.willAnswer(RECALL, { after: service.arrived(RECALL), answer });
  await assert.rejects(recallAll([here, there], "tea?", PATIENT), { reason: "OVERLOADED" });
  service.willAnswer(RECALL, recalled(["tea"]));
  assert.equal((await session.recall("tea?", PATIENT)).hits.length, 1);
});

test("who is told of a lasting outage sent nothing", async (t) => {
  standingClock(t);
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const run = await (await memory.openSession("assistant", PATIENT)).beginRun("turn-1", PATIENT);
  service.willAnswer(RECALL, DOWN);
  const first = (await run.recall("tea?", { ...PATIENT, admit: true })).error;
  const second = (await run.recall("tea?", { admit: true })).error;
  assert.deepEqual([first?.definite, first?.attempts, first?.method], [false, 2, RECALL]);
  assert.match(first?.requestId ?? "", /./);
  assert.ok(second instanceof MemoryUnavailableError);
  assert.deepEqual([second.definite, second.attempts, second.method, second.requestId], [true, 0, "", undefined]);
  assert.deepEqual([second.code, second.message], ["UNAVAILABLE", "UNAVAILABLE: refused"]);
  assert.equal(service.calls(RECALL).length, 2);
});

// One after the other would take ten minutes.
test("several recalls at once wait for one opening no longer than one", { timeout: 50_000 }, async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(OPEN, DOWN);
  const session = await memory.openSession("assistant", { onUnavailable: "empty" });
  await memory.getChangeToken(); // the outage is over
  service.willAnswer(OPEN, "forever");
  const recalls = await Promise.all(Array.from({ length: 600 }, () => session.recall("tea?", { timeoutMs: 1_000 })));
  assert.ok(recalls.every((recall) => recall.unavailable));
});

test("one namespace out of reach leaves the hits of the other", async () => {
  await using service = await scripted();
  await using memory = service.client();
  await using away = new MemoryClient(NOWHERE);
  const here = await (await memory.openSession("assistant")).beginRun("turn-1");
  const there = await (await away.openSession("assistant", { onUnavailable: "empty" })).beginRun("turn-1");
  service.willAnswer(RECALL, recalled(["tea"]));
  const recall = await recallAll([here, there], "tea?", { ...PATIENT, onUnavailable: "empty" });
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
