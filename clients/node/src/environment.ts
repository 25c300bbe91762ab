/** Settings that nobody states in the program: DURABLE_MEMORY_ADDRESS, _TOKEN, _TENANT, _PRINCIPAL and _SCOPE. */

const PREFIX = "DURABLE_MEMORY_";
const NAMES = ["ADDRESS", "TOKEN", "TENANT", "PRINCIPAL", "SCOPE"] as const;
const SETTINGS: readonly string[] = NAMES.map((name) => PREFIX + name);
const OF_SERVERS = `${PREFIX}SERVER_`;
const OF_COMMANDS = `${PREFIX}TOKEN_FILE`;

/**
 * What is stated; else the variable DURABLE_MEMORY_`name`, unless it is empty.
 *
 * @throws TypeError where that is looked up beside a variable which no client, command or server reads: it would have
 * been meant for this one or another, whose default is somebody else's memory.
 */
export function setting<T>(name: (typeof NAMES)[number], stated: T | undefined): T | string | undefined {
  if (stated) {
    return stated;
  }
  const unknown = unknownVariables();
  if (unknown.length > 0) {
    const known = `${SETTINGS.slice(0, -1).join(", ")} and ${String(SETTINGS.at(-1))} (and ${OF_COMMANDS} for commands)`;
    throw new TypeError(`${unknown.join(", ")}: no such setting of a client; there are ${known}`);
  }
  return process.env[PREFIX + name] || undefined;
}

function unknownVariables(): string[] {
  const names = Object.keys(process.env).filter((name) => name.startsWith(PREFIX));
  const known = new Set([...SETTINGS, OF_COMMANDS, ...serviceLinks(names)]);
  return names.filter((name) => !known.has(name) && !name.startsWith(OF_SERVERS)).sort();
}

/** Those that Kubernetes sets in every container for a Service that is called like this one. */
function serviceLinks(names: readonly string[]): string[] {
  const host = "_SERVICE_HOST";
  const services = names.filter((name) => name.endsWith(host)).map((name) => name.slice(0, -host.length));
  return names.filter((name) =>
    services.some(
      (service) =>
        name === `${service}_PORT` || name.startsWith(`${service}_SERVICE_`) || name.startsWith(`${service}_PORT_`),
    ),
  );
}
