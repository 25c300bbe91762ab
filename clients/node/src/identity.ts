/** Ids that the client mints: of requests, and of the process it runs in. */
import { randomBytes } from "node:crypto";

let lastMs = 0;

/** A UUID of version 7: unique, and in the order in which this process made them, up to the millisecond. */
export function newRequestId(): string {
  // A clock that is set back must not break the order.
  lastMs = Math.max(lastMs, Date.now());
  const bytes = Buffer.concat([Buffer.alloc(6), randomBytes(10)]);
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Identifies this process to the service. */
export const HOST_INSTANCE = newRequestId();
