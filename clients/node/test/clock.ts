/** The client's time, as a test tells it: for what hangs on time and not on how fast the machine is. */
import type { TestContext } from "node:test";

/** Until the test ends, or `resume` is called, `now` is what the client's clock says, in milliseconds; default: 0. */
export function standingClock(t: TestContext, now = (): number => 0): { resume: () => void } {
  const { mock } = t.mock.method(performance, "now", now);
  return {
    resume: () => {
      mock.restore();
    },
  };
}

/** Until the test ends, who can go on without an answer waits for it for a minute, and not for two seconds. */
export function patiently(t: TestContext): void {
  standingClock(t); // so that what is left of the two seconds is all of them
  const setTimer = globalThis.setTimeout;
  t.mock.method(globalThis, "setTimeout", (work: () => void, ms?: number) =>
    setTimer(work, ms === 2_000 ? 60_000 : ms),
  );
}
