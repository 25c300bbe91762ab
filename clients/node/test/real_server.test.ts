import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { after, before, test } from "node:test";
import {
  admitAll,
  Decision,
  Evidence,
  isReason,
  MemoryUnavailableError,
  recallAll,
  recordUseAll,
  relate,
  render,
} from "@durable-memory/client";
import { ServerStartError, startTestServer, type TestServer } from "@durable-memory/client/testing";
import { chatTurn } from "../examples/chat-turn.js";
import { patiently } from "./clock.js";

const EXAMPLE = fileURLToPath(new URL("../examples/chat-turn.js", import.meta.url));
const EXAMPLE_SOURCE = fileURLToPath(new URL("../../examples/chat-turn.ts", import.meta.url));

let server: TestServer;

before(async () => {
  server = await startTestServer();
});

after(async () => {
  await server.close();
});

test("the main job, from proposal to correction", async () => {
  await using memory = server.client();
  const proposed = await memory.propose("The user prefers tea to coffee.", {
    evidence: [Evidence.sessionTurn("assistant", "turn-16", "I'd rather have tea.")],
  });
  assert.equal(proposed.outcome, "CREATED");
  const session = await memory.openSession("assistant", { maxResults: 5 });
  assert.deepEqual((await session.recall("tea")).hits, []);

  await memory.activate(proposed, Decision.manual({ note: "asked the user" }));
  const hits = await session.run("turn-17", async (run) => {
    const recall = await run.recall("tea", { admit: true });
    const block = render(recall);
    assert.match(block.text, /\[m1\]/);
    const [use] = await run.recordUse(block.cited("As you prefer [m1]."));
    assert.equal(use?.recorded, true);
    return recall.hits;
  });

  const [hit] = hits;
  assert.ok(hit !== undefined);
  const revised = await memory.revise(hit, { content: "The user prefers green tea." });
  assert.equal(revised.citation.nodeRevision, hit.citation.nodeRevision + 1n);
  await assert.rejects(memory.retire(hit), (error) => {
    assert.ok(isReason(error, "REVISION_CONFLICT"));
    assert.equal(error.metadata["actual"], String(revised.citation.nodeRevision));
    return error.definite;
  });
  const then = await memory.get(hit);
  assert.deepEqual([then.content, then.isCurrent], ["The user prefers tea to coffee.", false]);
  const [usage] = await memory.usage().all();
  assert.deepEqual([usage?.admissionCount, usage?.useCount], [1, 1]);
});

test("a batch does not fail for one item", async () => {
  await using memory = server.client();
  const [tea, milk] = await memory.proposeMany([
    { content: "The user prefers tea.", evidence: [Evidence.userStatement("said:1", "tea")] },
    { content: "The user takes milk.", evidence: [Evidence.userStatement("said:2", "milk")] },
  ]);
  assert.ok(tea !== undefined && milk !== undefined);
  await memory.reject(milk, Decision.manual());
  const [first, second] = await memory.activateMany([tea, milk], Decision.byRule("said-twice", 1));
  assert.equal(first?.outcome, "ACTIVATED");
  assert.equal(second?.error?.reason, "REVISION_CONFLICT");
  assert.throws(() => second.citation, { reason: "REVISION_CONFLICT" });
});

test("a relation is written at both ends at once, and the history can be watched and copied", async () => {
  await using memory = server.client();
  await memory.put("old", "The office opens at 9.", { labels: { topic: "office" } });
  await memory.put("new", "The office opens at 8.", { occurredAt: new Date("2026-03-01T09:00:00.123Z") });
  const nodes = await memory.getNodes(["old", "new", "none"]);
  const [old, replacement] = [nodes.get("old"), nodes.get("new")];
  assert.ok(old !== undefined && replacement !== undefined);
  assert.deepEqual([nodes.size, replacement.occurredAt?.toISOString()], [2, "2026-03-01T09:00:00.123Z"]);
  const set = await memory.applyChangeSet(relate(replacement, "RELATED_TO", old), { note: "moved" });
  assert.deepEqual([set.namespaceRevision, set.changes.length, set.note], [3n, 2, "moved"]);

  const revisions: bigint[] = [];
  for await (const change of memory.watch({ after: 0, includeNodes: true })) {
    revisions.push(change.changeToken.namespaceRevision);
    if (revisions.length === 3) {
      break;
    }
  }
  assert.deepEqual(revisions, [1n, 2n, 3n]);
  const snapshot = memory.snapshot();
  assert.equal((await snapshot.all()).length, 2);
  assert.equal(snapshot.summary?.nodeCount, 2);

  await using other = await startTestServer();
  await using target = other.client({ principal: memory.ref.principal });
  assert.equal((await target.importNamespace(memory.exportNamespace())).nodeRevisions, 4);
  const copied = target.snapshot();
  await copied.all();
  assert.equal(copied.summary?.digest, snapshot.summary.digest);
});

test("two namespaces in one turn", async () => {
  await using memory = server.client();
  const project = memory.namespace({ scope: "project" });
  await memory.remember("The user likes the colour blue.");
  await project.remember("The project's colour is red.");
  await using user = await (await memory.openSession("assistant")).beginRun("turn-1");
  await using team = await (await project.openSession("assistant")).beginRun("turn-1");

  const recall = await recallAll([user, team], "which colour?", { maxResults: 8 });
  const admission = await admitAll([user, team], recall);
  const block = render(admission.hits, { maxBytes: 4_000 });
  const used = await recordUseAll([user, team], block.cited("[m2]"));

  assert.equal(recall.hits.length, 2);
  assert.match(block.text, /of="test\/.*\/project"/);
  assert.equal(used.length, 1);
});

test("an example turn hears, and the next one remembers once that is activated", async (t) => {
  patiently(t);
  await using memory = server.client();
  const first = await chatTurn(memory, "I'd rather have tea.");
  const [candidate] = await memory.listCandidates().all();
  assert.ok(candidate !== undefined);
  await memory.activate(candidate, Decision.manual());
  const second = await chatTurn(memory, "Some tea, then?");
  assert.doesNotMatch(first, /I remember/);
  assert.match(second, /I'd rather have tea\./);
  assert.ok(readFileSync(EXAMPLE_SOURCE, "utf8").split("\n").length < 80);
});

test("an example turn that nothing can be looked up for is a turn too", async (t) => {
  patiently(t);
  await using memory = server.client();
  assert.equal(await chatTurn(memory, "👍"), "You said: 👍");
  assert.equal((await memory.listCandidates().all()).length, 1);
});

test("the example runs as it says, and ends by itself", async () => {
  const env = { ...process.env, DURABLE_MEMORY_ADDRESS: server.address };
  const { stdout, stderr } = await promisify(execFile)("node", [EXAMPLE, "I'd rather have tea."], {
    env,
    timeout: 60_000,
  });
  assert.equal(stdout, "You said: I'd rather have tea.\n");
  assert.equal(stderr, "");
});

test("a server that is to recall by meaning does so from its first session on", async () => {
  await using own = await startTestServer({ embeddingProvider: "local-fast" });
  await using memory = own.client();
  await memory.remember("The user drinks tea.");
  const session = await memory.openSession("assistant");
  assert.equal((await memory.refreshSemanticRecall("assistant").wait()).indexedCount, 1);
  const recall = await session.recall("The user drinks tea.", { mode: "SEMANTIC" });
  assert.equal(recall.modeUsed, "SEMANTIC");
});

test("a server that is closed leaves nothing behind, and is an outage", async () => {
  const closing = await startTestServer();
  await using memory = closing.client();
  await memory.getChangeToken();
  assert.match(await closing.log(), /./);
  await closing.close();
  await closing.close();
  await assert.rejects(memory.getChangeToken({ timeoutMs: 200 }), MemoryUnavailableError);
  await assert.rejects(closing.log(), { code: "ENOENT" });
});

test("without the service a test server says what is missing, and one that ends says what it said", async () => {
  await assert.rejects(
    startTestServer({ command: ["durable-memory-that-is-not-there"] }),
    (error) => error instanceof ServerStartError && error.message.includes("pip install durable-memory"),
  );
  const says = "console.error('no such setting'); process.exit(1)";
  await assert.rejects(
    startTestServer({ command: ["node", "-e", says, "--"] }),
    (error) => error instanceof ServerStartError && error.message.includes("no such setting"),
  );
});
