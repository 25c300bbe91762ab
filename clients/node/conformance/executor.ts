/**
 * Makes the calls of conformance cases with the Node client: a case a line in, its outcomes a line out.
 *
 * clients/conformance/README.md describes both.
 */
import { createInterface } from "node:readline";
import {
  fromJson,
  toJson,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  type JsonValue,
  type MessageShape,
} from "@bufbuild/protobuf";
import { MemoryClient, MemoryServiceError, type CallOptions } from "@durable-memory/client";
import * as contract from "@durable-memory/client/v1";
import { HELPERS, type Given } from "./helpers.js";

interface Case {
  readonly address: string;
  readonly token: string | null;
  readonly namespace: { readonly tenant: string; readonly principal: string; readonly scope: string };
  readonly saved?: Readonly<Record<string, JsonValue>>;
  readonly steps: readonly Step[];
}

interface Step {
  readonly call?: string;
  readonly stream?: string;
  readonly helper?: string;
  readonly request?: JsonValue;
  readonly arguments?: JsonValue;
  readonly timeout_ms?: number;
  readonly cancel?: string;
  readonly read?: number;
  readonly save?: Readonly<Record<string, string>>;
}

type Saved = Record<string, JsonValue | undefined>;

const CANCELLED = new Error("the case cancels this call");

const METHODS: ReadonlyMap<string, DescMethod> = new Map(
  Object.values(contract)
    .filter((exported): exported is typeof exported & DescService => (exported as { kind?: string }).kind === "service")
    .flatMap((service) => service.methods)
    .map((method) => [`${method.parent.name}.${method.name}`, method]),
);

async function main(): Promise<void> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
    const outcomes = await run(JSON.parse(line.value) as Case, () => lines.next());
    process.stdout.write(`${JSON.stringify({ outcomes })}\n`);
  }
}

/** `told`: when the runner says that the call is to be cancelled. */
async function run(given: Case, told: () => Promise<unknown>): Promise<unknown[]> {
  const outcomes: unknown[] = [];
  const saved: Saved = { ...given.saved };
  await using memory = new MemoryClient({
    address: given.address,
    token: given.token ?? undefined,
    ...given.namespace,
  });
  for (const step of given.steps) {
    const outcome = await outcomeOf(memory, step, saved, told);
    outcomes.push(outcome);
    for (const [name, path] of Object.entries(step.save ?? {})) {
      saved[name] = at("ok" in outcome ? outcome.ok : undefined, path);
    }
  }
  return outcomes;
}

async function outcomeOf(
  memory: MemoryClient,
  step: Step,
  saved: Saved,
  told: () => Promise<unknown>,
): Promise<{ ok: unknown } | { error: unknown } | { cancelled: true }> {
  const cancel = new AbortController();
  const cancelled =
    step.cancel === undefined
      ? undefined
      : told().then(() => {
          cancel.abort(CANCELLED);
        });
  try {
    return { ok: await answerOf(memory, step, saved, cancel.signal) };
  } catch (error) {
    if (error === CANCELLED) {
      return { cancelled: true };
    }
    if (error instanceof MemoryServiceError) {
      return { error: errorJson(error) };
    }
    throw error;
  } finally {
    await cancelled;
  }
}

async function answerOf(memory: MemoryClient, step: Step, saved: Saved, signal: AbortSignal): Promise<unknown> {
  const options: CallOptions = { timeoutMs: step.timeout_ms, signal };
  if (step.helper !== undefined) {
    const helper = HELPERS[step.helper];
    if (helper === undefined) {
      throw new Error(`no helper is called ${step.helper}`);
    }
    return helper(memory, replaced(step.arguments ?? {}, saved) as unknown as Given);
  }
  const name = step.call ?? step.stream ?? "";
  const method = METHODS.get(name);
  const request = replaced(step.request ?? {}, saved);
  if (method !== undefined && isUnary(method)) {
    return json(method.output, await memory.call(method, fromJson(method.input, request), options));
  }
  if (method !== undefined && isServerStreaming(method)) {
    const messages: unknown[] = [];
    for await (const message of memory.callStream(method, fromJson(method.input, request), options)) {
      messages.push(json(method.output, message));
      if (messages.length === step.read) {
        break;
      }
    }
    return messages;
  }
  throw new Error(`no RPC is called ${name}`);
}

function isUnary(method: DescMethod): method is DescMethod & DescMethodUnary {
  return method.methodKind === "unary";
}

function isServerStreaming(method: DescMethod): method is DescMethod & DescMethodServerStreaming {
  return method.methodKind === "server_streaming";
}

function errorJson(error: MemoryServiceError): unknown {
  return {
    code: error.code,
    reason: error.reason ?? null,
    metadata: error.metadata,
    definite: error.definite,
    attempts: error.attempts,
    has_request_id: error.requestId !== undefined,
  };
}

/** The value with each `$name` in it replaced by what was saved under that name. */
function replaced(value: JsonValue, saved: Saved): JsonValue {
  if (typeof value === "string" && value.startsWith("$")) {
    return saved[value.slice(1)] ?? null;
  }
  if (Array.isArray(value)) {
    return value.map((member) => replaced(member, saved));
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, replaced(member, saved)]));
  }
  return value;
}

function json<O extends DescMessage>(schema: O, message: MessageShape<O>): JsonValue {
  return toJson(schema, message, { useProtoFieldName: true });
}

function at(value: unknown, path: string): JsonValue | undefined {
  return path
    .split(".")
    .reduce<unknown>((inner, part) => (inner as Record<string, unknown> | undefined)?.[part], value) as
    JsonValue | undefined;
}

await main();
