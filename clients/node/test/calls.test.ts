import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import {
  DurableMemoryError,
  Evidence,
  isReason,
  MemoryClient,
  MemoryServiceError,
  MemoryUnavailableError,
} from "@durable-memory/client";
import {
  GetChangeTokenResponseSchema,
  GetNodeResponseSchema,
  RememberRequestSchema,
  RepositoryService,
} from "@durable-memory/client/v1";
import { create } from "@bufbuild/protobuf";
import { newRequestId } from "../src/identity.js";
import { standingClock } from "./clock.js";
import { CITATION, remembered } from "./messages.js";
import { ScriptedService, type Raw, type Refusal } from "./scripted_service.js";

const REMEMBER = "MemoryService.Remember";
const REFRESH = "SemanticService.RefreshSemanticRecall";
const GET_TOKEN = "RepositoryService.GetChangeToken";

async function failureOf(call: Promise<unknown>): Promise<MemoryServiceError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof MemoryServiceError, String(error));
    return error;
  }
  assert.fail("the call succeeded");
}

for (const [what, answer] of Object.entries({
  "a service that is unavailable": { refuse: Code.Unavailable },
  "a service that does not serve yet": { refuse: Code.Unavailable, reason: "NOT_SERVING" },
  "an unknown outcome": { refuse: Code.Unavailable, reason: "OUTCOME_UNKNOWN" },
  "a request that is still running": { refuse: Code.Aborted, reason: "REQUEST_IN_PROGRESS", retryAfterMs: 20 },
  "a load limit": { refuse: Code.ResourceExhausted, reason: "RATE_LIMITED", retryAfterMs: 20 },
  "a stopping server": { refuse: Code.Canceled },
  "a connection that breaks": "cut",
  "a stream that is reset": "reset",
} as const satisfies Record<string, Refusal | "reset" | "cut">)) {
  test(`${what} is asked again with the same request id`, async () => {
    await using service = await ScriptedService.start();
    await using memory = service.client();
    service.willAnswer(REMEMBER, answer, remembered());

    assert.equal((await memory.remember("The user prefers tea.")).outcome, "CREATED");

    const ids = service.requests(REMEMBER, RememberRequestSchema).map((request) => request.requestId);
    assert.equal(ids.length, 2);
    assert.equal(new Set(ids).size, 1);
    assert.match(ids[0] ?? "", /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
}

for (const [what, answer] of Object.entries({
  "a conflict": { refuse: Code.Aborted, reason: "REVISION_CONFLICT" },
  "a failed precondition": { refuse: Code.FailedPrecondition, reason: "NODE_FROZEN" },
  "a load limit that names no time": { refuse: Code.ResourceExhausted, reason: "OVERLOADED" },
  "a load limit that names no wait": { refuse: Code.ResourceExhausted, reason: "OVERLOADED", retryAfterMs: 0 },
  "a quota": { refuse: Code.ResourceExhausted, reason: "QUOTA_EXCEEDED", retryAfterMs: 20 },
  "a cancellation by the service": { refuse: Code.Canceled, reason: "CANCELLED" },
  "an internal error": { refuse: Code.Internal, reason: "INTERNAL" },
} as const satisfies Record<string, Refusal>)) {
  test(`${what} is never repeated`, async () => {
    await using service = await ScriptedService.start();
    await using memory = service.client();
    service.willAnswer(REMEMBER, answer, remembered());

    const error = await failureOf(memory.remember("The user prefers tea."));

    assert.equal(error.reason, answer.reason);
    assert.equal(error.attempts, 1);
    assert.equal(service.calls(REMEMBER).length, 1);
  });
}

test("an outage is given up after the attempts of the policy", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REMEMBER, { refuse: Code.Unavailable });

  const error = await failureOf(memory.remember("The user prefers tea."));

  assert.ok(error instanceof MemoryUnavailableError);
  assert.deepEqual([error.code, error.attempts, error.definite], ["UNAVAILABLE", 5, false]);
  assert.equal(service.calls(REMEMBER).length, 5);
});

test("a load limit is respected until the deadline, and no wait is begun that would outlast it", async (t) => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  // Once it has been asked, there is time for no other attempt.
  standingClock(t, () => (service.calls(REMEMBER).length === 0 ? 0 : 58_000));
  service.willAnswer(REMEMBER, { refuse: Code.ResourceExhausted, reason: "RATE_LIMITED", retryAfterMs: 60_000 });

  const error = await failureOf(memory.remember("The user prefers tea.", { timeoutMs: 60_000 }));

  assert.ok(isReason(error, "RATE_LIMITED"));
  assert.ok(error instanceof MemoryUnavailableError);
  assert.deepEqual([error.retryAfterMs, error.attempts], [60_000, 1]);
  assert.equal(service.calls(REMEMBER).length, 1);
});

test("the deadline is of all attempts together", async (t) => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REMEMBER, { refuse: Code.Unavailable }, { refuse: Code.Unavailable }, remembered());
  const clock = standingClock(t, () => service.calls(REMEMBER).length * 20_000);

  await memory.remember("The user prefers tea.", { timeoutMs: 100_000 });

  assert.deepEqual(
    service.calls(REMEMBER).map((asked) => asked.sentTimeoutMs),
    [100_000, 80_000, 60_000],
  );
  clock.resume();

  service.willAnswer(REMEMBER, { refuse: Code.Unavailable }, "forever");
  const before = service.calls(REMEMBER).length;
  standingClock(t, () => (service.calls(REMEMBER).length === before ? 0 : 59_500));

  const error = await failureOf(memory.remember("The user prefers tea.", { timeoutMs: 60_000 }));

  assert.deepEqual([error.reason, error.code, error.attempts], ["DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", 2]);
});

test("a call whose time is over is not sent, and has changed nothing", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  for (const call of [
    memory.remember("The user prefers tea.", { timeoutMs: 0 }),
    memory.snapshot({ timeoutMs: 0 }).all(),
    memory.importNamespace([], { timeoutMs: 0 }),
  ]) {
    const { reason, attempts, definite, requestId, method } = await failureOf(call);
    assert.deepEqual([reason, attempts, definite, requestId, method], ["DEADLINE_EXCEEDED", 0, true, undefined, ""]);
  }
  assert.equal(service.asked.length, 0);
  const reason = new Error("enough");
  await assert.rejects(memory.getChangeToken({ timeoutMs: 0, signal: AbortSignal.abort(reason) }), reason);
  await assert.rejects(memory.getChangeToken({ timeoutMs: -1 }), RangeError);
});

test("a wait that lasted too long does not hide what became of the attempt before", async (t) => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  let reads = 0; // since the attempt: the first is before the wait
  standingClock(t, () => (service.asked.length > 0 && (reads += 1) > 1 ? 600_000 : 0));
  for (const [method, change] of Object.entries({
    [REMEMBER]: () => memory.remember("The user prefers tea.", { timeoutMs: 50_000 }),
    [REFRESH]: () => memory.refreshSemanticRecall("assistant", { timeoutMs: 50_000 }).wait(),
  })) {
    service.asked.splice(0);
    reads = 0;
    service.willAnswer(method, { refuse: Code.Unavailable });
    const { code, attempts, definite } = await failureOf(change());
    assert.deepEqual([code, attempts, definite], ["UNAVAILABLE", 1, false]);
    assert.equal(service.calls(method).length, 1);
  }
});

test("a caller may state the request id", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  await memory.remember("The user prefers tea.", { requestId: "order-17" });
  assert.deepEqual(
    service.requests(REMEMBER, RememberRequestSchema).map((request) => request.requestId),
    ["order-17"],
  );
});

test("a refusal of the only attempt is as definite as the table says", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REMEMBER, { refuse: Code.Aborted, reason: "REVISION_CONFLICT", metadata: { actual: "7" } });
  const conflict = await failureOf(memory.remember("The user prefers tea."));
  service.willAnswer(REMEMBER, { refuse: Code.Internal, reason: "INTERNAL" });
  const internal = await failureOf(memory.remember("The user prefers tea."));

  assert.deepEqual([conflict.definite, internal.definite], [true, false]);
  assert.equal(conflict.metadata["actual"], "7");
  assert.equal(conflict.method, REMEMBER);
  assert.equal(conflict.message, "REVISION_CONFLICT: refused");
  assert.equal(conflict.requestId, service.requests(REMEMBER, RememberRequestSchema)[0]?.requestId);
});

test("a refusal after a lost attempt, or after attempts of a proxy, is not definite", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  const refusal: Refusal = { refuse: Code.Aborted, reason: "REVISION_CONFLICT" };
  service.willAnswer(REMEMBER, "cut", refusal);
  const second = await failureOf(memory.remember("The user prefers tea."));
  service.willAnswer(REMEMBER, { ...refusal, headers: { "x-envoy-attempt-count": "3" } });
  const proxied = await failureOf(memory.remember("The user prefers tea."));

  assert.deepEqual([second.definite, second.attempts], [false, 2]);
  assert.deepEqual([proxied.definite, proxied.attempts], [false, 3]);
});

test("a failed read has changed nothing, however often it was tried", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(GET_TOKEN, { refuse: Code.Unavailable });
  const error = await failureOf(memory.getChangeToken());
  assert.deepEqual([error.definite, error.attempts, error.requestId], [true, 5, undefined]);
});

test("a reason of a newer server is kept, and one of another domain is not taken for ours", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REMEMBER, { refuse: Code.FailedPrecondition, reason: "MOON_IS_FULL" });
  const newer = await failureOf(memory.remember("The user prefers tea."));
  service.willAnswer(REMEMBER, { refuse: Code.PermissionDenied, reason: "NODE_FROZEN", domain: "proxy.example" });
  const foreign = await failureOf(memory.remember("The user prefers tea."));

  assert.deepEqual([newer.reason, newer.definite], ["MOON_IS_FULL", false]);
  assert.deepEqual([foreign.reason, foreign.code], [undefined, "PERMISSION_DENIED"]);
  assert.equal(foreign.message, "PERMISSION_DENIED: refused");
});

test("nobody listening is an outage", async () => {
  await using memory = new MemoryClient({ address: "127.0.0.1:9" });
  const error = await failureOf(memory.getChangeToken());
  assert.ok(error instanceof MemoryUnavailableError);
  assert.equal(error.attempts, 5);
});

test("a call that is given up ends at the service with the caller's reason, and is not repeated", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REMEMBER, "forever");
  const giveUp = new AbortController();
  const call = memory.remember("The user prefers tea.", { signal: giveUp.signal });
  const [asked] = await service.arrived(REMEMBER);
  const reason = new Error("the user went away");

  giveUp.abort(reason);

  await assert.rejects(call, reason);
  assert.deepEqual(await asked?.ended, { cancelled: true });
  assert.equal(service.calls(REMEMBER).length, 1);
});

test("a call is given up between two attempts too", async (t) => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer(REMEMBER, { refuse: Code.ResourceExhausted, reason: "RATE_LIMITED", retryAfterMs: 4_000 });
  const giveUp = new AbortController();
  await memory.getChangeToken(); // it is connected: what waits below is the call
  let waiting = (): void => undefined;
  const waits = new Promise<void>((resolve) => {
    waiting = resolve;
  });
  const setTimer = globalThis.setTimeout;
  t.mock.method(globalThis, "setTimeout", (work: () => void, ms: number) => {
    if (ms < 3_000 || ms > 5_000) {
      return setTimer(work, ms);
    }
    waiting();
    return setTimer(() => undefined, 0); // it never passes
  });
  const call = memory.remember("The user prefers tea.", { signal: giveUp.signal });
  await waits;
  giveUp.abort();
  await assert.rejects(call, { name: "AbortError" });
  assert.equal(service.calls(REMEMBER).length, 1);
});

test("a signal that was aborted before sends nothing", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  const reason = new Error("never mind");
  await assert.rejects(memory.remember("x", { signal: AbortSignal.abort(reason) }), reason);
  assert.deepEqual(service.asked, []);
});

test("a closed client says so, and what was running over it fails without a word of its outcome", async () => {
  await using service = await ScriptedService.start();
  const memory = service.client();
  service.willAnswer(REMEMBER, "forever");
  const running = memory.remember("The user prefers tea.", { requestId: "order-17" });
  await service.arrived(REMEMBER);
  memory.close();
  const error = await failureOf(running);
  assert.ok(error instanceof MemoryUnavailableError);
  assert.deepEqual([error.definite, error.attempts, error.requestId], [false, 1, "order-17"]);
  assert.equal(String(error.cause), "DurableMemoryError: this client is closed");
  await assert.rejects(memory.getChangeToken(), { name: "DurableMemoryError", message: "this client is closed" });
});

for (const [method, call] of Object.entries({
  [REMEMBER]: (memory: MemoryClient) => memory.remember("The user prefers tea."),
  "SemanticService.RefreshSemanticRecall": (memory: MemoryClient) => memory.refreshSemanticRecall("assistant").wait(),
})) {
  test(`what keeps ${method} from being repeated does not hide what became of it`, async () => {
    await using service = await ScriptedService.start();
    const noToken = new Error("the login has expired");
    let asked = 0;
    const token = (): Promise<string> => ((asked += 1) === 1 ? Promise.resolve("token-1") : Promise.reject(noToken));
    await using memory = service.client({ token });
    service.willAnswer(method, { refuse: Code.Unavailable });
    const error = await failureOf(call(memory));
    assert.deepEqual([error.attempts, error.definite, error.cause], [1, false, noToken]);
    assert.match(error.requestId ?? "", /./);
    await assert.rejects(call(memory), noToken);
  });
}

test("a service that comes back is found again by the same client", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  await memory.getChangeToken();
  service.cut();
  await memory.getChangeToken();
  assert.equal(service.calls(GET_TOKEN).length, 2);
});

test("the token is asked for at every attempt", async () => {
  await using service = await ScriptedService.start();
  let asked = 0;
  await using memory = service.client({ token: () => Promise.resolve(`token-${(asked += 1)}`) });
  service.willAnswer(GET_TOKEN, { refuse: Code.Unavailable }, create(GetChangeTokenResponseSchema));
  await memory.getChangeToken();
  const sent = service.calls(GET_TOKEN).map((call) => call.headers.authorization);
  assert.deepEqual(sent, ["Bearer token-1", "Bearer token-2"]);
});

test("any RPC can be made with its own messages, in the namespace of the view, and leaves them alone", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  service.willAnswer("RepositoryService.GetNode", create(GetNodeResponseSchema, { node: { revision: 2n ** 62n } }));
  const request = create(RepositoryService.method.getNode.input, { nodeId: "prefers-tea" });

  const { node } = await memory.namespace({ scope: "project-b" }).call(RepositoryService.method.getNode, request);

  assert.equal(node?.revision, 2n ** 62n);
  assert.equal(request.namespace, undefined);
  const [asked] = service.requests("RepositoryService.GetNode", RepositoryService.method.getNode.input);
  assert.equal(asked?.namespace?.tenantId, "acme");
  assert.equal(asked.namespace.scopeId, "project-b");
});

test("request ids are unique, and in the order of their making", () => {
  const ids = Array.from({ length: 2_000 }, newRequestId);
  assert.equal(new Set(ids).size, ids.length);
  const times = ids.map((id) => id.slice(0, 13));
  assert.deepEqual(times, times.toSorted());
});

test("a request that cannot be encoded is no outage, is not sent, and changed nothing", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client({ onUnavailable: "empty" });
  const error = await failureOf(memory.openSession("assistant", { maxResults: Number.NaN }));
  assert.deepEqual([error.reason, error.code, error.attempts], ["INVALID_FIELD", "INVALID_ARGUMENT", 0]);
  assert.match(error.message, /max_results/);
  assert.ok(error.definite, "nothing was sent");
  assert.ok(!(error instanceof MemoryUnavailableError));
  assert.deepEqual(service.asked, []);
});

for (const [what, raw] of Object.entries({
  "does not fit its schema": { bytes: Buffer.of(0, 0, 0, 0, 1, 0xff) },
  "is no text in a text field": { bytes: Buffer.of(0, 0, 0, 0, 3, 0x12, 0x01, 0xff) },
  "cannot be decompressed": { bytes: Buffer.of(1, 0, 0, 0, 1, 0xff), encoding: "gzip" },
  "ends in the middle of its compression": { bytes: Buffer.of(1, 0, 0, 0, 2, 0x1f, 0x8b), encoding: "gzip" },
  "is compressed without saying how": { bytes: Buffer.of(1, 0, 0, 0, 1, 0xff) },
  "is compressed in an unknown way": { bytes: Buffer.of(1, 0, 0, 0, 1, 0xff), encoding: "unheard-of" },
} satisfies Record<string, Raw>)) {
  test(`an answer that ${what} is no outage, and is not asked for again`, async () => {
    await using service = await ScriptedService.start();
    await using memory = service.client({ onUnavailable: "empty" });
    const calls = {
      [REMEMBER]: () => memory.remember("The user prefers tea."),
      "RecallService.PreviewRecall": () => memory.preview("tea"),
      "RepositoryService.WatchNamespace": () => memory.watch().next(),
      "TransferService.ImportNamespace": () => memory.importNamespace([]),
    };
    for (const [method, call] of Object.entries(calls)) {
      service.willAnswer(method, raw);
      const error = await failureOf(call());
      assert.deepEqual([error.code, error.reason, error.attempts], ["INTERNAL", undefined, 1], method);
      assert.ok(!(error instanceof MemoryUnavailableError));
      assert.equal(error.definite, error.requestId === undefined);
      assert.equal(service.calls(method).length, 1);
    }
  });
}

test("text with half a surrogate pair is refused by its field, and a whole pair is sent as it is", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  const half = "tea \ud83c";
  const calls: Record<string, () => Promise<unknown>> = {
    "memory.content": () => memory.remember(half),
    "memory.labels": () => memory.remember("tea", { labels: { [half]: "hot" } }),
    "memory.labels[drink]": () => memory.remember("tea", { labels: { drink: half } }),
    "set_labels[drink]": () => memory.revise(CITATION, { setLabels: { drink: half } }),
    "remove_labels[1]": () => memory.revise(CITATION, { removeLabels: ["drink", half] }),
    "operations[0].create.memory.content": () => memory.applyChangeSet([{ type: "create", memory: { content: half } }]),
    "evidence.body": () => memory.remember("tea", { evidence: [Evidence.sessionTurn("assistant", "turn-1", half)] }),
  };
  for (const [field, call] of Object.entries(calls)) {
    const error = await failureOf(call());
    assert.ok(isReason(error, "INVALID_FIELD"));
    assert.deepEqual([error.metadata, error.definite, error.attempts], [{ field }, true, 0]);
    assert.equal(error.message, `INVALID_FIELD: ${field} has a lone surrogate, which is no character`);
  }
  await assert.rejects(memory.importNamespace(['{"node":{"content":"\\ud83c"}}']), Error);
  assert.deepEqual(service.asked, []);
  await memory.remember("tea \u{1f375}");
  assert.equal(service.requests(REMEMBER, RememberRequestSchema)[0]?.memory?.content, "tea \u{1f375}");
});

test("a token that is long in coming holds up neither deadline, nor giving up, nor closing", async () => {
  await using service = await ScriptedService.start();
  const memory = service.client({ token: () => new Promise<string>(() => undefined) });
  assert.ok(isReason(await failureOf(memory.getChangeToken({ timeoutMs: 50 })), "DEADLINE_EXCEEDED"));
  const giveUp = new AbortController();
  const reason = new Error("the user went away");
  const given = [memory.getChangeToken({ signal: giveUp.signal }), memory.snapshot({ signal: giveUp.signal }).all()];
  giveUp.abort(reason);
  for (const call of given) {
    await assert.rejects(call, reason);
  }
  const running = memory.getChangeToken();
  memory.close();
  await assert.rejects(running, DurableMemoryError);
  assert.deepEqual(service.asked, []);
});

test("a token that no header can carry is refused without being told", async () => {
  await using service = await ScriptedService.start();
  let token = "secret\nsecret";
  await using memory = service.client({ token: () => token });
  await assert.rejects(memory.getChangeToken(), {
    name: "TypeError",
    message: "the token has characters that a header cannot carry",
  });
  token = "from-a-file\n";
  await memory.getChangeToken();
  assert.deepEqual(
    service.calls(GET_TOKEN).map((asked) => asked.headers.authorization),
    ["Bearer from-a-file"],
  );
  token = "";
  await memory.getChangeToken();
  assert.equal(service.calls(GET_TOKEN)[1]?.headers.authorization, undefined);
});
