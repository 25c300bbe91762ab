import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { after, beforeEach, describe, test } from "node:test";
import { MemoryClient, MemoryUnavailableError } from "@durable-memory/client";
import { resolveConnection, resolveNamespace } from "../src/connection.js";
import { ScriptedService } from "./scripted_service.js";

const GET_TOKEN = "RepositoryService.GetChangeToken";

beforeEach(() => {
  for (const name of Object.keys(process.env).filter((name) => name.startsWith("DURABLE_MEMORY_"))) {
    Reflect.deleteProperty(process.env, name);
  }
});

test("the default is a server on this machine", () => {
  assert.equal(resolveConnection({}).baseUrl, "http://127.0.0.1:7447");
});

test("what an argument leaves open, the environment says", () => {
  process.env["DURABLE_MEMORY_ADDRESS"] = "https://memory.example:443";
  process.env["DURABLE_MEMORY_TOKEN"] = "token-1";
  process.env["DURABLE_MEMORY_SCOPE"] = "from-environment";
  assert.equal(resolveConnection({}).baseUrl, "https://memory.example");
  assert.equal(resolveConnection({}).token, "token-1");
  assert.equal(resolveConnection({ token: "token-2" }).token, "token-2");
  assert.deepEqual(resolveNamespace({ tenant: "acme" }), {
    tenant: "acme",
    principal: undefined,
    scope: "from-environment",
  });
});

for (const [address, tls, baseUrl] of [
  ["memory.example:7447", undefined, "http://memory.example:7447"],
  ["memory.example:7447", true, "https://memory.example:7447"],
  ["http://memory.example:7447/", undefined, "http://memory.example:7447"],
  ["https://memory.example:7447", undefined, "https://memory.example:7447"],
  ["[::1]:7447", undefined, "http://[::1]:7447"],
] as const) {
  test(`the address ${address} with tls ${String(tls)} is ${baseUrl}`, () => {
    assert.equal(resolveConnection({ address, tls }).baseUrl, baseUrl);
  });
}

test("a contradiction is refused, and so is what is no address", () => {
  assert.throws(() => resolveConnection({ address: "http://memory.example:1", tls: true }), /contradicts/);
  assert.throws(() => resolveConnection({ address: "https://memory.example:1", tls: false }), /contradicts/);
  for (const address of ["two words", "host:port", "ftp://memory.example:1", "host:1/path"]) {
    assert.throws(() => resolveConnection({ address }), TypeError, address);
  }
});

test("credentials in an address are refused, and not quoted", () => {
  for (const address of ["http://user:pass@memory.example:1", "user:pass@memory.example:1", "https://u:pass@x/@y"]) {
    for (const tls of [undefined, true, false]) {
      assert.throws(
        () => resolveConnection({ address, tls }),
        (error) => error instanceof TypeError && !inspect(error).includes("pass"),
      );
    }
  }
});

for (const address of ["memory.example:7447", "10.0.0.7:7447", "127.evil.example:7447", "localhost.evil.example:1"]) {
  test(`a token never leaves the machine for ${address} in clear text unasked`, () => {
    assert.throws(() => resolveConnection({ address, token: "secret" }), /clear text/);
    assert.ok(resolveConnection({ address, token: "secret", tls: false }));
    assert.ok(resolveConnection({ address: `http://${address}`, token: "secret" }));
    assert.ok(resolveConnection({ address, token: "secret", tls: true }));
  });
}

for (const address of ["localhost:7447", "127.0.0.1:7447", "127.3.2.1:7447", "[::1]:7447"]) {
  test(`a token for ${address} needs no TLS`, () => {
    assert.equal(resolveConnection({ address, token: "secret" }).token, "secret");
  });
}

test("neither client nor connection prints the token", () => {
  const memory = new MemoryClient({ token: "secret-token" });
  assert.doesNotMatch(inspect(memory, { depth: 10, showHidden: false }), /secret-token/);
  assert.doesNotMatch(inspect(resolveConnection({ token: "secret-token" })), /secret-token/);
  assert.doesNotMatch(JSON.stringify(resolveConnection({ token: "secret-token" })), /secret-token/);
});

test("a view of another namespace keeps what it does not replace", () => {
  const memory = new MemoryClient({ tenant: "acme", principal: "user-1", scope: "project-a" });
  assert.deepEqual(memory.namespace({ scope: "project-b" }).ref, {
    tenant: "acme",
    principal: "user-1",
    scope: "project-b",
  });
});

test("an impossible choice is refused at once", () => {
  assert.throws(() => new MemoryClient({ onUnavailable: "raise" as "throw" }), RangeError);
});

describe("TLS", () => {
  const folder = mkdtempSync(join(tmpdir(), "durable-memory-certificate-"));
  after(() => {
    rmSync(folder, { recursive: true });
  });
  const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=memory.example"];
  const files = ["-addext", "subjectAltName=DNS:memory.example", "-keyout", "key.pem", "-out", "certificate.pem"];
  execFileSync("openssl", [...request, ...files], { cwd: folder, stdio: "ignore" });
  const tls = { key: readFileSync(join(folder, "key.pem")), cert: readFileSync(join(folder, "certificate.pem")) };

  test("a certificate of one's own is trusted, and the token goes with it", async () => {
    await using service = await ScriptedService.start(tls);
    await using memory = new MemoryClient({
      address: `https://${service.address}`,
      token: "token-1",
      tls: { ca: tls.cert, serverName: "memory.example" },
    });
    await memory.getChangeToken();
    assert.deepEqual(
      service.calls(GET_TOKEN).map((asked) => asked.headers.authorization),
      ["Bearer token-1"],
    );
  });

  test("a server that is not trusted is sent nothing", async () => {
    await using service = await ScriptedService.start(tls);
    await using memory = new MemoryClient({ address: `https://${service.address}`, token: "token-1" });
    await assert.rejects(memory.getChangeToken({ timeoutMs: 500 }), MemoryUnavailableError);
    assert.deepEqual(service.asked, []);
  });
});
