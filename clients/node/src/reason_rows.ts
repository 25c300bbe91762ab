import { REASON_ROWS, type ReasonRow } from "./generated/reasons.js";

const ROWS: ReadonlyMap<string, ReasonRow> = new Map(Object.entries(REASON_ROWS));

/** What a reason means to a client; undefined for one that this version does not know. */
export function reasonRow(reason: string | undefined): ReasonRow | undefined {
  return reason === undefined ? undefined : ROWS.get(reason);
}
