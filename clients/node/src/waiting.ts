/** Waiting, and doing several things: what can be given up. */
import type { StepOptions } from "./calls.js";
import { outOfTime } from "./failures.js";

// Node takes a longer one for none.
const MAX_DELAY_MS = 2 ** 31 - 1;

/** @throws the signal's reason, at once, when it is aborted. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    function stop(): void {
      clearTimeout(timer);
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- an abort reason is what it is
      reject(signal?.reason);
    }
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** The result of some work, or at once the signal's reason as an error; the work itself goes on. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = (): void => {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- an abort reason is what it is
      reject(signal.reason);
    };
  });
  if (signal.aborted) {
    stop();
  }
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** A signal that also ends with others. `release` when the work is done, or long-lived signals would keep it alive. */
export class LinkedAbort {
  readonly #controller = new AbortController();
  readonly #releases: (() => void)[] = [];

  constructor(...signals: (AbortSignal | undefined)[]) {
    for (const signal of signals) {
      if (signal === undefined) {
        continue;
      }
      if (signal.aborted) {
        this.abort(signal.reason);
        continue;
      }
      const follow = (): void => {
        this.abort(signal.reason);
      };
      signal.addEventListener("abort", follow, { once: true });
      this.#releases.push(() => {
        signal.removeEventListener("abort", follow);
      });
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason?: unknown): void {
    this.#controller.abort(reason);
  }

  /** Abort later, unless it is released before. */
  abortAfter(ms: number, reason: () => unknown): void {
    const timer = setTimeout(
      () => {
        this.abort(reason());
      },
      Math.min(ms, MAX_DELAY_MS),
    );
    this.#releases.push(() => {
      clearTimeout(timer);
    });
  }

  release(): void {
    for (const release of this.#releases.splice(0)) {
      release();
    }
  }
}

/** Does all at once; the results in order. The first error aborts the others, and is thrown when they have ended. */
export async function together<T>(
  signal: AbortSignal | undefined,
  work: readonly ((signal: AbortSignal) => Promise<T>)[],
): Promise<T[]> {
  const abort = new LinkedAbort(signal);
  let failure: { readonly error: unknown } | undefined;
  try {
    const results = await Promise.all(
      work.map(async (each) => {
        try {
          return [await each(abort.signal)];
        } catch (error) {
          failure ??= { error };
          abort.abort(error);
          return [];
        }
      }),
    );
    if (failure !== undefined) {
      throw failure.error;
    }
    return results.flat(1);
  } finally {
    abort.release();
  }
}

/** One after the other, in the order of asking. */
export class Lock {
  #last = Promise.resolve();
  #present = 0; // within, or waiting

  /**
   * Do the work when its turn has come. Who gives the wait up is passed over; the options are of the wait alone.
   *
   * @throws MemoryUnavailableError, definite, when the time is over; the signal's reason.
   */
  async run<T>({ timeoutMs, signal, onWait }: StepOptions, work: () => Promise<T>): Promise<T> {
    if (this.#present > 0) {
      onWait?.();
    }
    this.#present += 1;
    const before = this.#last;
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => {
      leave = (): void => {
        resolve();
      };
    });
    this.#last = before.then(() => left);
    const wait = new LinkedAbort(signal);
    if (timeoutMs !== undefined) {
      wait.abortAfter(timeoutMs, outOfTime);
    }
    try {
      await unlessAborted(wait.signal, before).finally(() => {
        wait.release();
      });
      return await work();
    } finally {
      this.#present -= 1;
      leave();
    }
  }
}
