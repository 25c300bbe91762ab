/** Which variables are refused, and how, is the same in every language: clients/conformance/environment.json. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";
import { MemoryClient } from "@durable-memory/client";

const CASES = JSON.parse(readFileSync(new URL("../../../conformance/environment.json", import.meta.url), "utf8")) as {
  readonly name: string;
  readonly set: Readonly<Record<string, string>>;
  readonly refused: string | null;
}[];

const WHOLE = { address: "127.0.0.1:1", token: "t", tenant: "acme", principal: "user-1", scope: "project-a" };

beforeEach(() => {
  for (const name of Object.keys(process.env).filter((name) => name.startsWith("DURABLE_MEMORY_"))) {
    Reflect.deleteProperty(process.env, name);
  }
});

for (const { name, set, refused } of CASES) {
  test(name, () => {
    Object.assign(process.env, set);
    if (refused === null) {
      new MemoryClient().close();
    } else {
      assert.throws(() => new MemoryClient(), new TypeError(refused));
    }
  });
}

test("a program that states everything is not told of variables", () => {
  process.env["DURABLE_MEMORY_TENNANT"] = "acme";
  new MemoryClient(WHOLE).close();
});

for (const name of Object.keys(WHOLE)) {
  test(`a program that leaves ${name} to the environment is told of variables`, () => {
    process.env["DURABLE_MEMORY_TENNANT"] = "acme";
    assert.throws(() => new MemoryClient({ ...WHOLE, [name]: undefined }), /DURABLE_MEMORY_TENNANT/);
  });
}
