/**
 * A real server for tests: `durable-memory` as a child process over a temporary SQLite file.
 *
 * Nothing is mocked, so what passes here passes in production.
 *
 * @module
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryClient, type MemoryClientOptions } from "./client.js";
import { DurableMemoryError, MemoryUnavailableError } from "./errors.js";
import { sleep } from "./waiting.js";

const HOST = "127.0.0.1";
// Below the ephemeral range of Linux and macOS: no outgoing connection takes the port while the server starts.
const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;
const START_ATTEMPTS = 3;
const START_TIMEOUT_MS = 60_000;
const PROBE_MS = 200;
const LONGEST_PROBE_MS = 5_000;
/** On a machine that is busy, an answer may take longer than the first probes wait for it. */
const PROBE_GROWTH = 1.25;
const STOP_MS = 10_000;
const LOG_TAIL_CHARACTERS = 4_000;

/** What to start. */
export interface TestServerOptions {
  /** The server's command. Default: DURABLE_MEMORY_SERVER_COMMAND, words separated by spaces; else durable-memory. */
  readonly command?: readonly string[] | undefined;
  /**
   * Who makes vectors. Default: `none`; recall is by words only, the same on every machine. `local` runs the packaged
   * model of `durable-memory[local]`.
   */
  readonly embeddingProvider?: string | undefined;
  /** How long to wait for it. Default: 60 seconds. */
  readonly timeoutMs?: number | undefined;
}

/** The server did not become ready; the message ends with what it said. */
export class ServerStartError extends DurableMemoryError {
  override readonly name: string = "ServerStartError";
}

/** One server of its own, on a free loopback port. It asks for no credentials. */
export class TestServer implements AsyncDisposable {
  /** `host:port`. */
  readonly address: string;
  readonly #process: ChildProcess;
  readonly #folder: string;

  constructor(address: string, process: ChildProcess, folder: string) {
    this.address = address;
    this.#process = process;
    this.#folder = folder;
  }

  /** A client in a namespace of its own; close it when the test is done. */
  client(options: Omit<MemoryClientOptions, "address"> = {}): MemoryClient {
    return clientOf(this.address, options);
  }

  /** The end of what the server has written. */
  async log(): Promise<string> {
    return logOf(this.#folder);
  }

  /** End it, and remove what it stored. Harmless if it does not run. */
  async close(): Promise<void> {
    await stop(this.#process);
    await rm(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Start a server and wait until it answers. @throws ServerStartError. */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), "durable-memory-test-"));
  const endsAt = performance.now() + (options.timeoutMs ?? START_TIMEOUT_MS);
  try {
    for (let attempt = 1; attempt <= START_ATTEMPTS; attempt += 1) {
      // Another process may have taken the port in between; then the server ends, and another one is tried.
      const server = await tryStart(options, folder, endsAt);
      if (server !== undefined) {
        return server;
      }
    }
    throw new ServerStartError(`the test server did not become ready:\n${await logOf(folder)}`);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function tryStart(options: TestServerOptions, folder: string, endsAt: number): Promise<TestServer | undefined> {
  const address = `${HOST}:${await freePort()}`;
  const child = await launch(options, address, folder);
  const probe = clientOf(address, {});
  try {
    let timeoutMs = PROBE_MS;
    while (isRunning(child) && performance.now() < endsAt) {
      try {
        const { semanticGenerations } = await probe.waitUntilReady({ timeoutMs });
        if (semanticGenerations.length > 0 || !recallsByMeaning(options)) {
          return new TestServer(address, child, folder);
        }
        // Until its model is loaded, recall is by words, and stays so for the sessions that are opened.
        await sleep(PROBE_MS);
      } catch (error) {
        if (!(error instanceof MemoryUnavailableError)) {
          throw error;
        }
        timeoutMs = Math.min(LONGEST_PROBE_MS, timeoutMs * PROBE_GROWTH);
      }
    }
  } catch (error) {
    await stop(child);
    throw error;
  } finally {
    probe.close();
  }
  await stop(child);
  return undefined;
}

async function launch(options: TestServerOptions, address: string, folder: string): Promise<ChildProcess> {
  const [program, ...words] = commandOf(options);
  const log = await open(logFile(folder), "a");
  try {
    const child = spawn(
      program,
      [...words, "serve", "--address", address, "--store", `sqlite:///${join(folder, "memory.db")}`],
      {
        cwd: folder,
        env: environmentOf(options),
        // In the process group of the tests: Ctrl-C ends it too, also when it ends them without an "exit".
        stdio: ["ignore", log.fd, log.fd],
      },
    );
    await once(child, "spawn");
    // A server that nobody closed does not keep the tests from ending.
    child.unref();
    const kill = (): void => {
      child.kill("SIGKILL");
    };
    // A test process that ends without closing its server takes it along.
    process.once("exit", kill);
    child.once("exit", () => process.removeListener("exit", kill));
    return child;
  } catch (error) {
    const hint =
      "install the service (pip install durable-memory), or say where it is in DURABLE_MEMORY_SERVER_COMMAND";
    throw new ServerStartError(`${program} cannot be started: ${hint}`, { cause: error });
  } finally {
    await log.close();
  }
}

/** Whether it will for sure. */
function recallsByMeaning({ embeddingProvider = "none" }: TestServerOptions): boolean {
  return !["none", "auto"].includes(embeddingProvider);
}

function commandOf(options: TestServerOptions): [string, ...string[]] {
  const stated = process.env["DURABLE_MEMORY_SERVER_COMMAND"]?.split(" ").filter(Boolean);
  const [program = "durable-memory", ...words] = options.command ?? stated ?? [];
  return [program, ...words];
}

function environmentOf(options: TestServerOptions): NodeJS.ProcessEnv {
  // The tests' own settings are for clients, and for servers that they start themselves.
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("DURABLE_MEMORY_"));
  return {
    ...Object.fromEntries(others),
    DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER: options.embeddingProvider ?? "none",
  };
}

function clientOf(address: string, options: Omit<MemoryClientOptions, "address">): MemoryClient {
  return new MemoryClient({
    tenant: "test",
    principal: `principal-${randomUUID()}`,
    scope: "test",
    ...options,
    address: `http://${address}`,
  });
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

async function stop(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) {
    return;
  }
  child.ref();
  const ended = once(child, "exit");
  const overdue = setTimeout(() => {
    child.kill("SIGKILL");
  }, STOP_MS);
  child.kill("SIGTERM");
  await ended;
  clearTimeout(overdue);
}

async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT + 1);
    if (await isFree(port)) {
      return port;
    }
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => {
      resolve(false);
    });
    probe.listen(port, HOST, () => {
      probe.close(() => {
        resolve(true);
      });
    });
  });
}

function logFile(folder: string): string {
  return join(folder, "server.log");
}

async function logOf(folder: string): Promise<string> {
  return (await readFile(logFile(folder), "utf8")).slice(-LOG_TAIL_CHARACTERS);
}
