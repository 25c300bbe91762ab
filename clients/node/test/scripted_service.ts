/** A gRPC service over HTTP/2 that gives the answers of a script and remembers what it was asked. */
import { once } from "node:events";
import {
  constants,
  createSecureServer,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Server } from "node:net";
import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { MemoryClient, type MemoryClientOptions } from "@durable-memory/client";
import * as contract from "@durable-memory/client/v1";
import { ErrorInfoSchema, RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";

export const SERVICES: readonly DescService[] = Object.values(contract).filter(
  (exported): exported is typeof exported & DescService => (exported as { kind?: string }).kind === "service",
);

/** An error, as the service sends it. */
export interface Refusal {
  readonly refuse: Code;
  readonly reason?: string;
  readonly metadata?: Record<string, string>;
  readonly retryAfterMs?: number;
  readonly domain?: string;
  /** Headers that come with it. */
  readonly headers?: Record<string, string>;
}

/** What is sent in place of a message with its frame, and its `grpc-encoding`. */
export interface Raw {
  readonly bytes: Buffer;
  readonly encoding?: string;
}

/** A message; bytes as they are; an error; no answer ever; or the stream or the connection goes. */
export type Answer = Message | Raw | Refusal | "forever" | "reset" | "cut";

/** An answer that is given when something has happened. */
export interface Held {
  readonly after: Promise<unknown>;
  readonly answer: Answer;
}

/** One call that arrived. */
export interface Asked {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** All messages; unary calls have one. */
  readonly requests: Message[];
  readonly sentTimeoutMs: number | undefined;
  /** Resolves when the call has ended on this side; whether the caller ended it. */
  readonly ended: Promise<{ cancelled: boolean }>;
}

/** Makes a message of the contract. */
export function message<D extends DescMessage>(
  schema: D,
  init: MessageInitShape<D> = {} as MessageInitShape<D>,
): MessageShape<D> {
  return create(schema, init);
}

export class ScriptedService implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly #server: Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #scripts = new Map<string, (Answer | Held | readonly Answer[])[]>();
  readonly #waiting: (() => void)[] = [];
  readonly #methods = new Map<string, DescMethod>(
    SERVICES.flatMap((service) => service.methods).map((method) => [
      `/${method.parent.typeName}/${method.name}`,
      method,
    ]),
  );

  private constructor(tls: { key: Buffer; cert: Buffer } | undefined) {
    const server = tls === undefined ? createServer() : createSecureServer(tls);
    server.on("session", (session: ServerHttp2Session) => {
      this.#sessions.add(session);
      session.once("close", () => this.#sessions.delete(session));
    });
    server.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      void this.#serve(stream, headers);
    });
    server.on("sessionError", () => undefined);
    this.#server = server;
  }

  static async start(tls?: { key: Buffer; cert: Buffer }): Promise<ScriptedService> {
    const service = new ScriptedService(tls);
    service.#server.listen(0, "127.0.0.1");
    await once(service.#server, "listening");
    return service;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  client(options: MemoryClientOptions = {}): MemoryClient {
    return new MemoryClient({
      address: this.address,
      tenant: "acme",
      principal: "user-1",
      scope: "project-a",
      ...options,
    });
  }

  /** The answers to an RPC, `Service.Method`, in order; the last one for ever. An array is a stream. */
  willAnswer(method: string, ...answers: (Answer | Held | readonly Answer[])[]): void {
    this.#scripts.set(method, answers);
  }

  /** The calls of an RPC. */
  calls(method: string): Asked[] {
    return this.asked.filter((asked) => asked.method === method);
  }

  /** The messages that an RPC was called with, first ones of streams. */
  requests<D extends DescMessage>(method: string, _schema: D): MessageShape<D>[] {
    return this.calls(method).flatMap((asked) => asked.requests.slice(0, 1)) as MessageShape<D>[];
  }

  /** Waits until an RPC has been called so often. */
  async arrived(method: string, count = 1): Promise<Asked[]> {
    while (this.calls(method).length < count) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.calls(method);
  }

  /** Cuts all connections; new ones are accepted. */
  cut(): void {
    for (const session of this.#sessions) {
      session.destroy();
    }
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    stream.on("error", () => undefined);
    const ended = new Promise<{ cancelled: boolean }>((resolve) => {
      stream.once("close", () => {
        resolve({ cancelled: stream.rstCode !== 0 });
      });
    });
    const method = this.#methods.get(String(headers[":path"]));
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of stream) {
        chunks.push(chunk as Buffer);
      }
    } catch {
      // The caller went away; what has arrived counts.
    }
    if (method === undefined) {
      end(stream, { refuse: Code.Unimplemented });
      return;
    }
    const name = `${method.parent.name}.${method.name}`;
    const requests = unframed(Buffer.concat(chunks)).map((bytes) => fromBinary(method.input, bytes));
    const timeout = /^(\d+)m$/.exec(String(headers["grpc-timeout"]))?.[1];
    const sentTimeoutMs = timeout === undefined ? undefined : Number(timeout);
    this.asked.push({ method: name, headers, requests, sentTimeoutMs, ended });
    for (const wake of this.#waiting.splice(0)) {
      wake();
    }
    const script = this.#scripts.get(name) ?? [create(method.output)];
    const next = (script.length > 1 ? script.shift() : script[0]) ?? create(method.output);
    if (typeof next === "object" && "after" in next) {
      await next.after;
      this.#answer(stream, method, [next.answer]);
    } else {
      this.#answer(stream, method, new Array<Answer>().concat(next));
    }
  }

  #answer(stream: ServerHttp2Stream, method: DescMethod, answers: readonly Answer[]): void {
    if (stream.destroyed) {
      return;
    }
    for (const answer of answers) {
      if (answer === "cut") {
        // What was written before must arrive before the connection goes: the other side answers a ping after it.
        const { session } = stream;
        session?.ping(() => {
          session.destroy();
        });
        return;
      }
      if (answer === "reset") {
        stream.close(constants.NGHTTP2_INTERNAL_ERROR);
        return;
      }
      if (answer === "forever") {
        return;
      }
      if ("refuse" in answer) {
        end(stream, answer);
        return;
      }
      if ("bytes" in answer) {
        respond(stream, answer.encoding === undefined ? {} : { "grpc-encoding": answer.encoding });
        stream.write(answer.bytes);
        continue;
      }
      respond(stream);
      stream.write(framed(toBinary(method.output, answer)));
    }
    end(stream, undefined);
  }
}

function respond(stream: ServerHttp2Stream, headers: Record<string, string> = {}): void {
  if (!stream.headersSent) {
    stream.respond({ ":status": 200, "content-type": "application/grpc+proto", ...headers }, { waitForTrailers: true });
  }
}

function end(stream: ServerHttp2Stream, refusal: Refusal | undefined): void {
  respond(stream, refusal?.headers);
  const trailers = setTrailerStatus(new Headers(), refusal === undefined ? undefined : errorOf(refusal));
  stream.once("wantTrailers", () => {
    stream.sendTrailers(Object.fromEntries(trailers));
  });
  stream.end();
}

function errorOf(refusal: Refusal): ConnectError {
  const error = new ConnectError("refused", refusal.refuse);
  const { reason, retryAfterMs } = refusal;
  if (reason !== undefined) {
    const domain = refusal.domain ?? "durablememory.dev";
    const value = { reason: `ERROR_REASON_${reason}`, domain, metadata: refusal.metadata ?? {} };
    error.details.push({ desc: ErrorInfoSchema, value });
  }
  if (retryAfterMs !== undefined) {
    const seconds = BigInt(Math.floor(retryAfterMs / 1_000));
    error.details.push({
      desc: RetryInfoSchema,
      value: { retryDelay: { seconds, nanos: (retryAfterMs % 1_000) * 1_000_000 } },
    });
  }
  return error;
}

function framed(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function unframed(bytes: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let place = 0; place + 5 <= bytes.length;) {
    const end = place + 5 + bytes.readUInt32BE(place + 1);
    messages.push(bytes.subarray(place + 5, end));
    place = end;
  }
  return messages;
}
