/** Times: Dates and milliseconds here; timestamps and durations on the wire, of which what is finer is dropped. */
import { durationFromMs, durationMs, timestampFromDate, type Duration, type Timestamp } from "@bufbuild/protobuf/wkt";

const NANOS_PER_MS = 1_000_000;

/** The time on the wire; undefined stays absent. @throws RangeError for an invalid Date. */
export function toTimestamp(time: Date | undefined, name: string): Timestamp | undefined {
  if (time === undefined) {
    return undefined;
  }
  if (Number.isNaN(time.getTime())) {
    throw new RangeError(`${name} is an invalid Date`);
  }
  return timestampFromDate(time);
}

export function toDate(timestamp: Timestamp | undefined): Date {
  return toDateIf(timestamp) ?? new Date(0);
}

export function toDateIf(timestamp: Timestamp | undefined): Date | undefined {
  if (timestamp === undefined) {
    return undefined;
  }
  return new Date(Number(timestamp.seconds) * 1_000 + Math.floor(timestamp.nanos / NANOS_PER_MS));
}

/** The span on the wire; undefined stays absent. */
export function toDuration(ms: number | undefined): Duration | undefined {
  return ms === undefined ? undefined : durationFromMs(ms);
}

export function toMs(duration: Duration | undefined): number {
  return duration === undefined ? 0 : durationMs(duration);
}

export function toMsIf(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration);
}
