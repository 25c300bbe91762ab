/** One HTTP/2 connection, and the three ways of calling over it. Nothing is repeated here. */
import type {
  DescMessage,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport as ConnectTransport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Connection } from "./connection.js";
import { DurableMemoryError } from "./errors.js";
import { traceHeaders } from "./tracing.js";
import { VERSION } from "./version.js";
import { LinkedAbort, unlessAborted } from "./waiting.js";

// A peer that vanished without a word is noticed, by open streams and by the first call after a pause. Servers allow
// one ping a minute beside data.
const PING_INTERVAL_MS = 61_000;
const PING_TIMEOUT_MS = 5_000;

// In megabytes; Node refuses new streams beyond it. The server bounds what it sends (ServerLimits.max_response_bytes).
const MAX_SESSION_MEMORY = 1_024;

const CLOSED = "this client is closed";

// grpc-timeout has at most 8 digits.
const MAX_TIMEOUT_MS = 99_999_999;

/** The messages of one streaming call. */
export interface Replies<O extends DescMessage> extends AsyncIterable<MessageShape<O>> {
  /** End the call; harmless after its end. */
  cancel(): void;
}

/** Connects with the first call, and again with the next one when the connection is lost. */
export class Transport {
  readonly #connection: Connection;
  readonly #sessions: Http2SessionManager;
  readonly #transport: ConnectTransport;
  readonly #closing = new AbortController();

  constructor(connection: Connection) {
    const { baseUrl, tls } = connection;
    this.#connection = connection;
    this.#sessions = new Http2SessionManager(
      baseUrl,
      { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS },
      {
        maxSessionMemory: MAX_SESSION_MEMORY,
        ...(tls.ca === undefined ? {} : { ca: tls.ca }),
        ...(tls.cert === undefined ? {} : { cert: tls.cert }),
        ...(tls.key === undefined ? {} : { key: tls.key }),
        ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
      },
    );
    this.#transport = createGrpcTransport({ baseUrl, sessionManager: this.#sessions });
  }

  /** @throws ConnectError; the signal's reason. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<MessageShape<O>> {
    const abort = this.#linked(signal, timeoutMs);
    try {
      const headers = await unlessAborted(abort.signal, this.#headers(timeoutMs));
      abort.signal.throwIfAborted();
      const response = await this.#transport.unary(method, abort.signal, undefined, headers, request);
      return response.message;
    } catch (failure) {
      throw failureOf(failure, abort.signal);
    } finally {
      abort.release();
    }
  }

  /** @throws ConnectError; the signal's reason; what reading the requests throws. */
  async upload<I extends DescMessage, O extends DescMessage>(
    method: DescMethodClientStreaming<I, O>,
    requests: AsyncIterable<MessageShape<I>>,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<MessageShape<O>> {
    const abort = this.#linked(signal, timeoutMs);
    async function* guarded(): AsyncGenerator<MessageInitShape<I>> {
      try {
        yield* requests;
      } catch (error) {
        abort.abort(error);
        throw error;
      }
    }
    try {
      let answer: MessageShape<O> | undefined;
      // Read to the end: the status comes after the message.
      for await (const reply of await this.#start(method, guarded(), timeoutMs, abort.signal)) {
        answer = reply;
      }
      if (answer === undefined) {
        throw new ConnectError("the answer is empty", Code.Unknown);
      }
      return answer;
    } catch (failure) {
      throw failureOf(failure, abort.signal);
    } finally {
      abort.release();
    }
  }

  /** Starts a streaming call. Iterating throws: ConnectError; the signal's reason. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageShape<I>,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Replies<O> {
    const abort = this.#linked(signal, timeoutMs);
    const start = async (): Promise<AsyncIterable<MessageShape<O>>> =>
      this.#start(method, only(request as MessageInitShape<I>), timeoutMs, abort.signal);
    async function* messages(): AsyncGenerator<MessageShape<O>> {
      try {
        yield* await start();
      } catch (failure) {
        throw failureOf(failure, abort.signal);
      } finally {
        abort.release();
        abort.abort();
      }
    }
    return {
      [Symbol.asyncIterator]: messages,
      cancel: () => {
        abort.abort();
      },
    };
  }

  /** Ends the connection, and with an error whatever is running over it. */
  close(): void {
    // To what is running it is a lost connection: it may have been done.
    this.#closing.abort(new ConnectError(CLOSED, Code.Canceled));
    this.#sessions.abort();
  }

  async #start<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    requests: AsyncIterable<MessageInitShape<I>>,
    timeoutMs: number | undefined,
    signal: AbortSignal,
  ): Promise<AsyncIterable<MessageShape<O>>> {
    const headers = await unlessAborted(signal, this.#headers(timeoutMs));
    signal.throwIfAborted();
    return (await this.#transport.stream(method, signal, undefined, headers, requests)).message;
  }

  /** What ends one attempt: its caller, its deadline, or the end of the client. */
  #linked(signal: AbortSignal | undefined, timeoutMs: number | undefined): LinkedAbort {
    if (this.#closing.signal.aborted) {
      throw new DurableMemoryError(CLOSED);
    }
    signal?.throwIfAborted();
    const abort = new LinkedAbort(signal, this.#closing.signal);
    if (timeoutMs !== undefined) {
      // Not left to the library: it forgets the timer of a stream that nobody reads to its end.
      abort.abortAfter(
        wireTimeout(timeoutMs),
        () => new ConnectError("the deadline has passed", Code.DeadlineExceeded),
      );
    }
    return abort;
  }

  /** The headers of one attempt. */
  async #headers(timeoutMs: number | undefined): Promise<Record<string, string>> {
    const headers: Record<string, string> = {
      ...(await traceHeaders()),
      "user-agent": `durable-memory-node/${VERSION}`,
      ...(timeoutMs === undefined ? {} : { "grpc-timeout": `${wireTimeout(timeoutMs)}m` }),
    };
    const { token } = this.#connection;
    const current = typeof token === "function" ? await token() : token;
    return current ? { ...headers, authorization: `Bearer ${checkedToken(current)}` } : headers;
  }
}

/** Checked here, as the error of whoever sets the header would quote it. */
function checkedToken(token: string): string {
  const trimmed = token.trim();
  if (!/^[\x21-\x7e]+$/.test(trimmed)) {
    throw new TypeError("the token has characters that a header cannot carry");
  }
  return trimmed;
}

function failureOf(failure: unknown, signal: AbortSignal): unknown {
  return signal.aborted ? signal.reason : failure;
}

/** Whole milliseconds, and at least one: what comes after the last attempt is for the deadline of the call. */
function wireTimeout(timeoutMs: number): number {
  return Math.min(MAX_TIMEOUT_MS, Math.max(1, Math.ceil(timeoutMs)));
}

// eslint-disable-next-line @typescript-eslint/require-await -- the transport takes an asynchronous iterable
async function* only<T>(item: T): AsyncGenerator<T> {
  yield item;
}
