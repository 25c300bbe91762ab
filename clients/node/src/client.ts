/** The client: one connection, one default namespace, and views of others. */
import { create } from "@bufbuild/protobuf";
import { Calls, type CallOptions, type OnUnavailable } from "./calls.js";
import { resolveConnection, resolveNamespace, type TlsOptions, type Token } from "./connection.js";
import { MemoryUnavailableError } from "./errors.js";
import { GetServerInfoRequestSchema, SessionService } from "./gen/durablememory/v1/session_service_pb.js";
import { MemoryNamespace } from "./namespace/memory_namespace.js";
import { Transport } from "./transport.js";
import type { Namespace } from "./values/namespace.js";
import { toServerInfo, type ServerInfo } from "./values/session.js";
import { sleep } from "./waiting.js";

const READY_POLL_MS = 100;
const READY_ATTEMPT_MS = 2_000;
const READY_TIMEOUT_MS = 30_000;

/** Where the service is, and what to be there. */
export interface MemoryClientOptions {
  /** `host:port`, or a URL, where `https://` means TLS. Default: DURABLE_MEMORY_ADDRESS, else 127.0.0.1:7447. */
  readonly address?: string | undefined;
  /** A bearer token or a function that returns one. Default: DURABLE_MEMORY_TOKEN. */
  readonly token?: Token | undefined;
  /** The default namespace. Default: DURABLE_MEMORY_TENANT, else what the credential implies. */
  readonly tenant?: string | undefined;
  /** The default namespace. Default: DURABLE_MEMORY_PRINCIPAL, else what the credential implies. */
  readonly principal?: string | undefined;
  /** The default namespace. Default: DURABLE_MEMORY_SCOPE, else what the credential implies. */
  readonly scope?: string | undefined;
  /** True for the authorities that Node trusts, or certificates of your own. */
  readonly tls?: boolean | TlsOptions | undefined;
  /** What recalls do in an outage: throw MemoryUnavailableError (the default), or come back empty and marked. */
  readonly onUnavailable?: OnUnavailable | undefined;
}

/**
 * A connection to the service, and a view of its default namespace.
 *
 *     await using memory = new MemoryClient({ tenant: "acme", principal: "user-1", scope: "project-a" });
 *     await memory.remember("The office opens at 8.");
 *
 * It connects with the first call. Close it when nobody needs it any more; an idle one does not keep a process alive.
 */
export class MemoryClient extends MemoryNamespace implements AsyncDisposable {
  readonly #transport: Transport;

  constructor(options: MemoryClientOptions = {}) {
    const transport = new Transport(resolveConnection(options));
    super(new Calls(transport, options.onUnavailable), resolveNamespace(options));
    this.#transport = transport;
  }

  /** Close the connection. Calls that are running fail, and so do later ones. */
  close(): void {
    this.#transport.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  /** A view of another namespace over the same connection; a part that is left out is the client's own. */
  namespace(parts: Partial<Namespace>): MemoryNamespace {
    return new MemoryNamespace(this.calls, {
      tenant: parts.tenant ?? this.ref.tenant,
      principal: parts.principal ?? this.ref.principal,
      scope: parts.scope ?? this.ref.scope,
    });
  }

  /** What the server is and can do: profiles, generations, limits, defaults; and who it takes the caller for. */
  async serverInfo(options: CallOptions = {}): Promise<ServerInfo> {
    const request = create(GetServerInfoRequestSchema);
    return toServerInfo(await this.calls.unary(SessionService.method.getServerInfo, request, options));
  }

  /** Wait for the service to answer, by default up to 30 seconds. @throws MemoryUnavailableError. */
  async waitUntilReady(options: CallOptions = {}): Promise<ServerInfo> {
    const { timeoutMs = READY_TIMEOUT_MS, signal } = options;
    const endsAt = performance.now() + timeoutMs;
    for (;;) {
      const left = endsAt - performance.now();
      try {
        return await this.serverInfo({ timeoutMs: Math.max(50, Math.min(READY_ATTEMPT_MS, left)), signal });
      } catch (error) {
        if (!(error instanceof MemoryUnavailableError) || performance.now() + READY_POLL_MS >= endsAt) {
          throw error;
        }
      }
      await sleep(READY_POLL_MS, signal);
    }
  }
}
