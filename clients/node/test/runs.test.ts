import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import {
  admitAll,
  Citation,
  IncompleteStreamError,
  MemoryServiceError,
  MemoryUnavailableError,
  recallAll,
  recordUseAll,
  type Hit,
  type MemoryClient,
  type MemoryRun,
  type MemorySession,
} from "@durable-memory/client";
import * as v1 from "@durable-memory/client/v1";
import { create } from "@bufbuild/protobuf";
import { standingClock } from "./clock.js";
import { admittedAll, begun, CITATION, opened, recalled, recorded } from "./messages.js";
import { ScriptedService } from "./scripted_service.js";

const OPEN = "SessionService.OpenSession";
const BEGIN = "SessionService.BeginRun";
const END = "SessionService.EndRun";
const RECALL = "RecallService.ActiveRecall";
const ADMIT = "RecallService.AdmitMemories";
const USE = "RecallService.RecordUse";
const DOWN = { refuse: Code.Unavailable } as const;
const CLOSED = { refuse: Code.FailedPrecondition, reason: "SESSION_CLOSED" } as const;
const LIMITED = { refuse: Code.ResourceExhausted, reason: "RATE_LIMITED", retryAfterMs: 300 } as const;

async function scripted(): Promise<ScriptedService> {
  const service = await ScriptedService.start();
  service.willAnswer(OPEN, opened());
  service.willAnswer(BEGIN, begun());
  service.willAnswer(USE, recorded());
  return service;
}

async function runOf(memory: MemoryClient): Promise<MemoryRun> {
  return (await memory.openSession("assistant")).beginRun("turn-1");
}

async function failureOf(call: Promise<unknown>): Promise<MemoryServiceError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof MemoryServiceError, String(error));
    return error;
  }
  assert.fail("the call succeeded");
}

test("a run begins and ends with its block", async () => {
  await using service = await scripted();
  await using memory = service.client();
  const session = await memory.openSession("assistant");
  {
    await using run = await session.beginRun("turn-1");
    assert.equal(run.outcome, "BEGUN");
    assert.equal(run.runId, "turn-1");
    assert.equal(service.calls(END).length, 0);
  }
  const [ended] = service.requests(END, v1.EndRunRequestSchema);
  assert.deepEqual([ended?.runId, ended?.incarnation], ["turn-1", "incarnation-1"]);
});

test("a run that was ended by hand is not ended again", async () => {
  await using service = await scripted();
  await using memory = service.client();
  {
    await using run = await runOf(memory);
    await run.end();
  }
  assert.equal(service.calls(END).length, 1);
});

test("a run ends when its work fails, and the failure is what is thrown", async () => {
  await using service = await scripted();
  await using memory = service.client();
  const session = await memory.openSession("assistant");
  const failure = new Error("no model");
  await assert.rejects(
    session.run("turn-1", () => Promise.reject(failure)),
    failure,
  );
  assert.equal(service.calls(END).length, 1);
});

test("a run that cannot be ended is only warned of", async () => {
  await using service = await scripted();
  await using memory = service.client();
  const session = await memory.openSession("assistant");
  service.willAnswer(END, { refuse: Code.Internal, reason: "INTERNAL" });
  const warned = once(process, "warning");
  assert.equal(await session.run("turn-1", () => Promise.resolve("answer")), "answer");
  const [warning] = (await warned) as [Error];
  assert.match(warning.message, /run turn-1 was not ended: INTERNAL/);
});

test("a run that ends after its client was closed keeps the result of its work", async () => {
  await using service = await scripted();
  const memory = service.client();
  const session = await memory.openSession("assistant");
  const work = (): Promise<string> => {
    memory.close();
    return Promise.resolve("answer");
  };
  assert.equal(await session.run("turn-1", work), "answer");
});

const ADMITTED_ELSEWHERE = { citation: Citation.parse(CITATION) } as Hit;

for (const [method, call] of Object.entries({
  [RECALL]: (options, _, run) => run.recall("tea?", { ...options, onUnavailable: "throw" }),
  [ADMIT]: (options, _, run) => run.admit([ADMITTED_ELSEWHERE], { ...options, onUnavailable: "throw" }),
  [USE]: (options, _, run) => run.recordUse([CITATION], options),
  "RecallService.ExplainRecall": (options, session) => session.explain("prefers-tea", "tea?", options),
  "SessionService.RebindSession": (options, session) => session.rebind(options),
  "SessionService.CloseSession": (options, session) => session.close(options),
} satisfies Record<string, Step>)) {
  for (const timeoutMs of [undefined, 50_000]) {
    test(`the steps of ${method} share ${timeoutMs === undefined ? "the usual" : "a stated"} deadline`, async (t) => {
      const outageLasts = standingClock(t);
      await using service = await scripted();
      await using memory = service.client();
      service.willAnswer(OPEN, DOWN, DOWN, LIMITED, opened());
      service.willAnswer(BEGIN, LIMITED, begun());
      service.willAnswer(ADMIT, admittedAll(["prefers-tea"], "context-1"));
      const session = await memory.openSession("assistant", { timeoutMs: 50_000, onUnavailable: "empty" });
      const run = await session.beginRun("turn-1");
      assert.throws(() => run.info, /has not begun/);
      outageLasts.resume();

      await call({ timeoutMs }, session, run);

      const left = [
        ...service.calls(OPEN).slice(2, 3),
        ...service.calls(BEGIN).slice(0, 1),
        ...service.calls(method),
      ].map((asked) => asked.sentTimeoutMs ?? 0);
      assert.ok(left.length >= 2);
      for (const [step, before] of left.slice(0, -1).entries()) {
        // The step before had to wait for longer.
        assert.ok((left[step + 1] ?? 0) <= before - 200, String(left));
      }
    });
  }
}

type Step = (options: { timeoutMs: number | undefined }, session: MemorySession, run: MemoryRun) => Promise<unknown>;

test("a recall does not wait for an assembly, and who waits for one has a deadline and a signal", async () => {
  await using service = await scripted();
  await using memory = service.client({ onUnavailable: "empty" });
  const patient = { timeoutMs: 50_000 };
  const run = await (await memory.openSession("assistant", patient)).beginRun("turn-1", patient);
  service.willAnswer(ADMIT, "forever", admittedAll(["prefers-tea"], "context-1"));
  const enough = new AbortController();
  const reason = new Error("enough");
  const admitting = run.admit([ADMITTED_ELSEWHERE], { timeoutMs: 600_000, signal: enough.signal });
  await service.arrived(ADMIT);

  assert.equal((await run.recall("tea?", patient)).unavailable, false);
  const late = run.admit([ADMITTED_ELSEWHERE], { timeoutMs: 50, onUnavailable: "throw" });
  await assert.rejects(late, (error) => {
    assert.ok(error instanceof MemoryUnavailableError);
    assert.deepEqual([error.reason, error.definite, error.attempts], ["DEADLINE_EXCEEDED", true, 0]);
    return true;
  });
  assert.equal((await run.admit([ADMITTED_ELSEWHERE], { timeoutMs: 50 })).error?.attempts, 0);
  assert.equal((await run.recall("tea?", patient)).unavailable, false, "a wait for another call is no outage");
  const leaving = run.admit([ADMITTED_ELSEWHERE], { ...patient, signal: AbortSignal.timeout(50) });
  await assert.rejects(leaving, { name: "TimeoutError" });

  const next = run.admit([ADMITTED_ELSEWHERE], patient);
  assert.equal(service.calls(ADMIT).length, 1);
  enough.abort(reason);
  await assert.rejects(admitting, reason);
  assert.equal((await next).hits.length, 1);
  assert.equal(service.calls(ADMIT).length, 2);
});

test("a beginning whose outcome is unknown can be repeated by the process that sent it", async () => {
  await using service = await scripted();
  await using memory = service.client();
  const session = await memory.openSession("assistant");
  service.willAnswer(BEGIN, { refuse: Code.Unknown }, begun());
  const { requestId, definite } = await failureOf(session.beginRun("turn-1"));
  assert.equal(definite, false);
  await session.beginRun("turn-1", { requestId });
  await session.run("turn-1", () => Promise.resolve(), { requestId });
  const [first, ...others] = service.requests(BEGIN, v1.BeginRunRequestSchema);
  assert.deepEqual([first?.runId, first?.requestId], ["turn-1", requestId]);
  assert.deepEqual(others, [first, first]);
});

test("the policy is stated as far as the caller stated it", async () => {
  await using service = await scripted();
  await using memory = service.client();
  await memory.openSession("assistant", { maxResults: 5, mode: "LEXICAL", requestId: "open-1" });
  const [asked] = service.requests(OPEN, v1.OpenSessionRequestSchema);
  assert.deepEqual([asked?.policy?.maxResults, asked?.policy?.mode, asked?.policy?.minScore], [5, 2, undefined]);
  assert.equal(asked?.requestId, "open-1");
});

test("a recall alone records nothing", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(RECALL, recalled(["tea"]));
  await using run = await runOf(memory);
  const recall = await run.recall("what does the user drink?");
  assert.deepEqual(
    [...recall].map((hit) => hit.content),
    ["tea"],
  );
  assert.equal(recall.modeUsed, "LEXICAL");
  const [asked] = service.requests(RECALL, v1.ActiveRecallRequestSchema);
  assert.deepEqual([asked?.admit, asked?.requestId], [false, ""]);
});

test("every admission has the context that the one before returned, also of calls at the same time", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(
    RECALL,
    recalled(["tea"], { nextContextId: "context-1", admitted: true }),
    recalled(["milk"], { nextContextId: "context-2", admitted: true }),
  );
  await using run = await runOf(memory);

  const [one, two] = await Promise.all([run.recall("tea?", { admit: true }), run.recall("milk?", { admit: true })]);

  const contexts = service.requests(RECALL, v1.ActiveRecallRequestSchema).map((asked) => asked.contextId);
  assert.deepEqual(contexts, ["context-0", "context-1"]);
  assert.deepEqual([one.contextId, two.contextId, run.contextId], ["context-0", "context-1", "context-2"]);
  assert.ok(service.requests(RECALL, v1.ActiveRecallRequestSchema).every((asked) => asked.requestId !== ""));
});

test("only what was admitted may stay", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(RECALL, recalled(["tea", "milk"]));
  service.willAnswer(ADMIT, admittedAll(["tea", "milk"], "context-1", ["tea"]));
  await using run = await runOf(memory);

  const admission = await run.admit(await run.recall("what does the user drink?"));

  assert.deepEqual(
    admission.hits.map((hit) => hit.content),
    ["milk"],
  );
  assert.deepEqual(
    admission.refused.map((outcome) => outcome.error?.reason),
    ["REVISION_CONFLICT"],
  );
  assert.equal(admission.refused[0]?.error?.definite, true);
});

test("a use is recorded under the context of its admission, and the outcomes come in the order given", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(
    RECALL,
    recalled(["tea"], { nextContextId: "context-1", admitted: true }),
    recalled(["milk"], { nextContextId: "context-2", admitted: true }),
  );
  service.willAnswer(USE, recorded(2), recorded(1));
  await using run = await runOf(memory);
  const tea = await run.recall("tea?", { admit: true });
  const milk = await run.recall("milk?", { admit: true });

  const outcomes = await run.recordUse([...tea, ...milk, ...tea]);

  assert.deepEqual(
    outcomes.map((outcome) => outcome.recorded),
    [true, true, true],
  );
  const asked = service.requests(USE, v1.RecordUseRequestSchema);
  assert.deepEqual(
    asked.map((use) => [use.contextId, use.items.length]),
    [
      ["context-0", 2],
      ["context-1", 1],
    ],
  );
  await assert.rejects(run.recordUse([...tea, ...milk], { requestId: "one" }), /cannot share one request id/);
});

test("a use of several assemblies may have been recorded in part", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(RECALL, recalled(["tea"], { nextContextId: "context-1", admitted: true }));
  service.willAnswer(USE, recorded(1), CLOSED);
  await using run = await runOf(memory);
  const tea = await run.recall("tea?", { admit: true });
  assert.equal((await failureOf(run.recordUse([...tea, CITATION]))).definite, false);
  assert.equal((await failureOf(run.recordUse([CITATION]))).definite, true);
});

test("an answer with another number of outcomes is not taken", async () => {
  await using service = await scripted();
  await using memory = service.client();
  await using run = await runOf(memory);
  service.willAnswer(ADMIT, admittedAll([], "context-1"));
  await assert.rejects(run.admit([ADMITTED_ELSEWHERE]), IncompleteStreamError);
  assert.equal(run.contextId, "context-0");
  for (const count of [0, 2]) {
    service.willAnswer(USE, recorded(count));
    await assert.rejects(run.recordUse([CITATION]), IncompleteStreamError);
  }
});

test("nothing to admit or to record is no call", async () => {
  await using service = await scripted();
  await using memory = service.client();
  await using run = await runOf(memory);
  assert.deepEqual((await run.admit([])).hits, []);
  assert.deepEqual(await run.recordUse([]), []);
  assert.deepEqual([...service.calls(ADMIT), ...service.calls(USE)], []);
});

test("evidence of a turn names session and run", async () => {
  await using service = await scripted();
  await using memory = service.client();
  await using run = await runOf(memory);
  assert.equal(run.evidence("I'd rather have tea.").uri, "session:assistant/turn/turn-1");
});

test("several namespaces are recalled as one, taking turns by rank, and what they gave goes back to them", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(OPEN, opened("project-a"), opened("project-b"));
  const one = await (await memory.openSession("assistant")).beginRun("turn-1");
  const two = await (await memory.namespace({ scope: "project-b" }).openSession("assistant")).beginRun("turn-1");
  service.willAnswer(RECALL, recalled(["a1", "a2"]), recalled(["b1", "b2"]));

  const recall = await recallAll([one, two], "what?", { maxResults: 3 });

  const firstOf = (contents: string): string => contents.slice(1);
  assert.deepEqual(
    recall.hits.map((hit) => firstOf(hit.content)),
    ["1", "1", "2"],
  );
  assert.deepEqual(
    recall.hits.map((hit) => hit.namespace.scope),
    ["project-a", "project-b", "project-a"],
  );
  assert.equal(recall.unavailable, false);

  const contents = (scope: string): string[] =>
    recall.hits.filter((hit) => hit.namespace.scope === scope).map((hit) => hit.content);
  service.willAnswer(ADMIT, admittedAll(contents("project-a"), "context-1", contents("project-a").slice(0, 1)));
  const admission = await admitAll(
    [one],
    recall.hits.filter((hit) => hit.namespace.scope === "project-a"),
  );
  assert.deepEqual(admission.hits, [recall.hits[2]]);
  assert.equal(admission.refused.length, 1);
  assert.equal((await recordUseAll([one, two], admission.hits)).length, 1);
  const [use] = service.requests(USE, v1.RecordUseRequestSchema);
  assert.equal(use?.namespace?.scopeId, "project-a");
  await assert.rejects(admitAll([two], recall.hits), /no run is of the namespace/);
});

test("what failed in one of several namespaces may have been done in the others", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(OPEN, opened("project-a"), opened("project-b"));
  const one = await (await memory.openSession("assistant")).beginRun("turn-1");
  const two = await (await memory.namespace({ scope: "project-b" }).openSession("assistant")).beginRun("turn-1");
  const hits = [one, two].map(({ namespace }) => ({ ...ADMITTED_ELSEWHERE, namespace }));
  service.willAnswer(ADMIT, CLOSED);
  service.willAnswer(USE, CLOSED);
  assert.equal((await failureOf(admitAll([one, two], hits))).definite, false);
  assert.equal((await failureOf(recordUseAll([one, two], hits))).definite, false);
  assert.equal((await failureOf(recordUseAll([one, two], hits.slice(1)))).definite, true);
});

test("an error in one namespace is the error of the call, and ends the others", async () => {
  await using service = await scripted();
  await using memory = service.client();
  service.willAnswer(OPEN, opened("project-a"), opened("project-b"));
  const one = await (await memory.openSession("assistant")).beginRun("turn-1");
  const two = await (await memory.namespace({ scope: "project-b" }).openSession("assistant")).beginRun("turn-1");
  service.willAnswer(RECALL, "forever", { refuse: Code.FailedPrecondition, reason: "SESSION_CLOSED" });
  await assert.rejects(recallAll([one, two], "what?"), { reason: "SESSION_CLOSED" });
  const [waiting] = service.calls(RECALL);
  assert.deepEqual(await waiting?.ended, { cancelled: true });
});

test("a session is resumed by its digest or its binding, and rebound from what it was", async () => {
  await using service = await scripted();
  await using memory = service.client();
  const resumed = v1.ResumeSessionResponseSchema;
  const { session } = opened();
  service.willAnswer("SessionService.ResumeSession", create(resumed, { session }));
  const again = await memory.resumeSession("assistant", "digest-1");
  await memory.resumeSession("assistant", again.info.binding);
  await again.rebind({ maxResults: 7 });

  const asked = service.requests("SessionService.ResumeSession", v1.ResumeSessionRequestSchema);
  assert.deepEqual(
    asked.map((request) => request.expected.case),
    ["bindingDigest", "binding"],
  );
  const [rebound] = service.requests("SessionService.RebindSession", v1.RebindSessionRequestSchema);
  assert.deepEqual([rebound?.expectedBindingDigest, rebound?.policy?.maxResults], ["digest-1", 7]);
});
