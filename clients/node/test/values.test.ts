import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromJson } from "@bufbuild/protobuf";
import { Citation, Decision, Evidence, relate, unrelate } from "@durable-memory/client";
import { ExportRecordSchema, NodeSchema } from "@durable-memory/client/v1";
import { nodeStatus } from "../src/generated/enum_codecs.js";
import { citationOf } from "../src/values/citation.js";
import { fromEvidence } from "../src/values/evidence.js";
import { fromDraft, toNode } from "../src/values/memory.js";
import { toDate, toTimestamp } from "../src/values/times.js";
import { lineOf, recordOf, requestsOf } from "../src/values/transfer.js";
import { CITATION, DIGEST } from "./messages.js";

for (const nodeId of ["prefers-tea", "a b", "über/tee", "50%", "茶", "🍵", "a:b@c#d", "it's (this)!*~"]) {
  test(`a citation of ${nodeId} is its string, and back`, () => {
    const citation = new Citation({
      namespaceRevision: 2n ** 62n,
      nodeId,
      nodeRevision: 3n,
      contentDigest: DIGEST,
    });
    assert.deepEqual(Citation.parse(String(citation)), citation);
    assert.match(String(citation), /^dm1:4611686018427387904:[A-Za-z0-9_.~%-]+@3#9f86/);
    assert.equal(JSON.stringify({ citation }), JSON.stringify({ citation: String(citation) }));
  });
}

for (const text of [
  "",
  "prefers-tea",
  `dm1:x:a@1#${DIGEST}`,
  `dm1:1:a@0#${DIGEST}`,
  `dm1:1:%ff@1#${DIGEST}`,
  `${CITATION}0`,
]) {
  test(`${JSON.stringify(text)} is no citation`, () => {
    assert.throws(() => Citation.parse(text), SyntaxError);
  });
}

test("whatever has a citation can be cited", () => {
  const citation = Citation.parse(CITATION);
  assert.equal(citationOf(citation), citation);
  assert.equal(citationOf({ citation }), citation);
  assert.equal(String(citationOf(CITATION)), String(citation));
});

test("an enum value of a newer server is kept, and goes back as it came", () => {
  assert.equal(nodeStatus.name(2), "ACTIVE");
  assert.equal(nodeStatus.name(77), "UNKNOWN_77");
  assert.equal(nodeStatus.number("UNKNOWN_77"), 77);
  assert.equal(nodeStatus.number(nodeStatus.name(0)), 0);
  assert.equal(toNode(fromJson(NodeSchema, { status: 77 })).status, "UNKNOWN_77");
});

test("a misspelt enum value is an error that lists the names", () => {
  assert.throws(() => nodeStatus.number("ACTVE" as "ACTIVE"), /"ACTVE" is no NodeStatus: CANDIDATE, ACTIVE/);
});

test("times are Dates, and what is finer than a millisecond is dropped, also before 1970", () => {
  const at = (seconds: bigint, nanos: number): string =>
    toDate({ $typeName: "google.protobuf.Timestamp", seconds, nanos }).toISOString();
  assert.equal(at(1_772_355_600n, 123_999_999), "2026-03-01T09:00:00.123Z");
  assert.equal(at(-1n, 500_999_999), "1969-12-31T23:59:59.500Z");
  assert.equal(at(-62_135_596_800n, 0), "0001-01-01T00:00:00.000Z");
  const there = toTimestamp(new Date("1969-12-31T23:59:59.250Z"), "occurredAt");
  assert.deepEqual([there?.seconds, there?.nanos], [-1n, 250_000_000]);
});

test("an invalid Date is refused by name", () => {
  assert.throws(() => fromDraft("x", { occurredAt: new Date("no") }), /occurredAt is an invalid Date/);
});

test("a draft is text with fields, or a draft with other fields", () => {
  const draft = { content: "The user prefers tea.", author: "user-1", confidence: 0.5 };
  assert.equal(fromDraft("The user prefers tea.", { author: "user-2" }).author, "user-2");
  const replaced = fromDraft(draft, { author: "user-2", confidence: undefined });
  assert.deepEqual([replaced.author, replaced.confidence, replaced.content], ["user-2", 0.5, "The user prefers tea."]);
});

test("what a draft leaves open stays absent", () => {
  const { occurredAt, confidence, importance } = fromDraft("x");
  assert.deepEqual([occurredAt, confidence, importance], [undefined, undefined, undefined]);
});

test("one text where several are meant is refused", () => {
  const one = "not a list" as unknown as string[];
  assert.throws(() => fromDraft("x", { surroundings: one }), /surroundings is an array of texts/);
});

test("evidence of a turn names it without ambiguity", () => {
  const evidence = Evidence.sessionTurn("a/b", "turn 1", "I'd rather have tea.");
  assert.equal(evidence.uri, "session:a%2Fb/turn/turn%201");
  assert.equal(evidence.kind, "SESSION_TURN");
  const [message] = fromEvidence([evidence]);
  assert.equal(message?.source?.case, "body");
});

test("evidence with both a digest and a body is refused", () => {
  const both = { uri: "a", kind: "ARTIFACT", digest: "sha256:00", body: "x" } as const;
  assert.throws(() => fromEvidence([both]), /both a digest and a body/);
});

test("a decision names its rule, or the person", () => {
  assert.equal(Decision.byRule("said-twice", 1).decider, "rule:said-twice@1");
  assert.deepEqual(Decision.manual({ note: "asked" }), { kind: "MANUAL", note: "asked" });
});

test("a relation is written, and removed, at both ends", () => {
  const [old, replacement] = [
    { id: "old", revision: 1n },
    { id: "new", revision: 2n },
  ];
  assert.deepEqual(relate(replacement, "SUPERSEDES", old), [
    { type: "addRelation", nodeId: "new", expectedRevision: 2n, relation: { kind: "SUPERSEDES", nodeId: "old" } },
    { type: "addRelation", nodeId: "old", expectedRevision: 1n, relation: { kind: "SUPERSEDED_BY", nodeId: "new" } },
  ]);
  assert.deepEqual(
    unrelate(replacement, "RELATED_TO", old).map(({ type, relation }) => [type, relation.kind]),
    [
      ["removeRelation", "RELATED_TO"],
      ["removeRelation", "RELATED_TO"],
    ],
  );
});

test("a record of an export is one line, and back", () => {
  const record = create(ExportRecordSchema, {
    record: { case: "nodeRevision", value: { id: "茶\n🍵", content: "line\nbreak", revision: 2n ** 62n } },
  });
  const line = lineOf(record);
  assert.ok(!line.includes("\n"));
  assert.deepEqual(recordOf(line), record);
});

test("a line that is no record is not quoted in the error", () => {
  for (const line of ["secret text", "{}", '{"secret": 1}', '{"node_revision": {"id": 7, "content": "secret"}}']) {
    assert.throws(
      () => recordOf(line),
      (error: Error) => error instanceof SyntaxError && !error.message.includes("secret"),
    );
  }
});

test("an import is sent in requests of bounded number and size", async () => {
  const large = lineOf(
    create(ExportRecordSchema, { record: { case: "nodeRevision", value: { content: "x".repeat(400_000) } } }),
  );
  const small = lineOf(create(ExportRecordSchema, { record: { case: "nodeRevision", value: { content: "x" } } }));
  const sizes: (number | undefined)[] = [];
  for await (const request of requestsOf([...Array<string>(5).fill(large), ...Array<string>(300).fill(small)])) {
    sizes.push(request.records?.length);
  }
  assert.deepEqual(sizes, [2, 2, 256, 45]);
});
