/** Rendering gives byte for byte what it gives in every other language: clients/conformance/rendering.json. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { cited, Citation, render, type Hit, type NodeKind } from "@durable-memory/client";
import { DIGEST } from "./messages.js";

interface HitRow {
  readonly content: string;
  readonly namespace?: readonly [string, string, string];
  readonly kind?: NodeKind;
  readonly author?: string;
  readonly occurred_at?: string;
  readonly disputed?: boolean;
}

interface Golden {
  readonly render: readonly {
    readonly name: string;
    readonly hits: readonly HitRow[];
    readonly max_bytes: number;
    readonly text: string;
    readonly counts: readonly [number, number, number];
  }[];
  readonly cited: readonly { readonly answer: string; readonly hits: number; readonly places: readonly number[] }[];
}

const GOLDEN = JSON.parse(
  readFileSync(new URL("../../../conformance/rendering.json", import.meta.url), "utf8"),
) as Golden;

function hit(row: HitRow, rank = 1): Hit {
  const [tenant, principal, scope] = row.namespace ?? ["acme", "user-1", "project-a"];
  return {
    namespace: { tenant, principal, scope },
    citation: new Citation({ namespaceRevision: 1n, nodeId: "a", nodeRevision: 1n, contentDigest: DIGEST }),
    nodeId: "a",
    rank,
    score: 1,
    channel: "LEXICAL",
    lexical: undefined,
    semantic: undefined,
    relatedTo: undefined,
    trust: "UNTRUSTED_HISTORY",
    kind: row.kind ?? "SEMANTIC",
    content: row.content,
    surroundings: [],
    author: row.author ?? "",
    occurredAt: row.occurred_at === undefined ? undefined : new Date(row.occurred_at),
    createdAt: new Date(0),
    updatedAt: new Date(0),
    confidence: 1,
    importance: 1,
    labels: {},
    relations: [],
    disputed: row.disputed ?? false,
    ageMs: 0,
  };
}

for (const golden of GOLDEN.render) {
  test(`rendering: ${golden.name}`, () => {
    const block = render(
      golden.hits.map((row) => hit(row)),
      { maxBytes: golden.max_bytes },
    );
    assert.equal(block.text, golden.text);
    assert.deepEqual([block.hits.length, block.shortened.length, block.omitted.length], golden.counts);
    assert.ok(Buffer.byteLength(block.text) <= golden.max_bytes);
    assert.equal(String(block), block.text);
    assert.equal(block.complete, golden.counts[1] + golden.counts[2] === 0);
  });
}

for (const golden of GOLDEN.cited) {
  test(`cited: ${golden.answer}`, () => {
    const hits = Array.from({ length: golden.hits }, (_, index) => hit({ content: String(index) }, index + 1));
    assert.deepEqual(
      cited(golden.answer, hits).map((found) => found.rank),
      golden.places,
    );
  });
}

test("half a surrogate pair is shown by number, and never sent to a model", () => {
  const block = render([hit({ content: "a\ud83cb" })]);
  assert.match(block.text, />a&#55356;b</);
});

test("a byte order mark at the edge of an author is not white space", () => {
  assert.match(render([hit({ content: "x", author: "\ufeffuser " })]).text, /author="&#65279;user"/);
});
