/** Where the service is, and with which credential and in which namespace to call it. */
import { BlockList, isIP } from "node:net";
import { setting } from "./environment.js";
import type { Namespace } from "./values/namespace.js";

const DEFAULT_ADDRESS = "127.0.0.1:7447";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * A bearer token, or a function that returns the current one; it is asked for every attempt. White space around it is
 * not sent, nor is an empty one.
 */
export type Token = string | (() => string | Promise<string>);

/** Certificates and keys, in PEM. */
export interface TlsOptions {
  /** What signed the server's certificate; default: the authorities that Node trusts. */
  readonly ca?: string | Buffer | undefined;
  /** The client's own certificate chain, for mutual TLS. */
  readonly cert?: string | Buffer | undefined;
  /** The client's own private key, for mutual TLS. */
  readonly key?: string | Buffer | undefined;
  /** Replaces the name that the server's certificate is checked against. */
  readonly serverName?: string | undefined;
}

/** Everything that a transport needs. `token` is not enumerable, so that nothing prints it by accident. */
export interface Connection {
  readonly baseUrl: string;
  readonly tls: TlsOptions;
  readonly token?: Token | undefined;
}

/**
 * The connection that the arguments, then DURABLE_MEMORY_ADDRESS and DURABLE_MEMORY_TOKEN, then defaults give.
 *
 * An address is `host:port`, or a URL: `https://host:port` is TLS, `http://host:port` is not.
 *
 * @throws TypeError for contradictions, for a token that would travel in clear text to another machine although nobody
 * said so with `tls: false` or `http://`, and for variables that are misspelt.
 */
export function resolveConnection(stated: {
  address?: string | undefined;
  token?: Token | undefined;
  tls?: boolean | TlsOptions | undefined;
}): Connection {
  const address = setting("ADDRESS", stated.address) ?? DEFAULT_ADDRESS;
  const token = setting("TOKEN", stated.token);
  const { tls } = stated;
  const scheme = /^(https?):\/\//.exec(address)?.[1];
  const byScheme = scheme === undefined ? undefined : scheme === "https";
  if (tls !== undefined && byScheme !== undefined && Boolean(tls) !== byScheme) {
    throw new TypeError(`the option tls contradicts the address ${quoted(address)}`);
  }
  const secure = tls === undefined ? byScheme : Boolean(tls);
  const target = scheme === undefined ? address : address.slice(scheme.length + 3).replace(/\/+$/, "");
  const url = urlOf(secure === true ? "https" : "http", target, address);
  if (secure === undefined && token !== undefined && !isLoopback(url.hostname)) {
    throw new TypeError(
      `the token would travel to ${target} in clear text: use tls: true or https://, or say tls: false or http://`,
    );
  }
  const connection = { baseUrl: url.origin, tls: typeof tls === "object" ? tls : {} };
  return Object.defineProperty(connection, "token", { value: token, enumerable: false });
}

/**
 * The namespace that the arguments, then DURABLE_MEMORY_TENANT, _PRINCIPAL and _SCOPE give.
 *
 * A part that neither gives stays open: the server fills it in if the credential allows exactly one value.
 *
 * @throws TypeError for variables that are misspelt.
 */
export function resolveNamespace(stated: Partial<Namespace>): Namespace {
  return {
    tenant: setting("TENANT", stated.tenant),
    principal: setting("PRINCIPAL", stated.principal),
    scope: setting("SCOPE", stated.scope),
  };
}

function urlOf(scheme: string, target: string, address: string): URL {
  const expected = `${quoted(address)} is not an address; expected host:port, http://host:port or https://host`;
  if (!/^[^\s/?#@]+$/.test(target)) {
    throw new TypeError(expected);
  }
  try {
    return new URL(`${scheme}://${target}`);
  } catch (error) {
    throw new TypeError(expected, { cause: error });
  }
}

/** The address for a message, without credentials that somebody put into it. */
function quoted(address: string): string {
  return JSON.stringify(address.replace(/^([a-z]+:\/\/)?.*@/is, "$1***@"));
}

function isLoopback(hostname: string): boolean {
  if (hostname === "localhost") {
    return true;
  }
  const host = hostname.replace(/^\[|\]$/g, "");
  const version = isIP(host);
  return version !== 0 && LOOPBACK.check(host, version === 6 ? "ipv6" : "ipv4");
}
