// Why a job was not done, as handlers say it.

import { isMS } from "./check.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An error that says what is to become of the job. */
class Marked extends Error {
  readonly mark: object;

  constructor(mark: object, cause: unknown) {
    super(messageOf(cause), { cause });
    this.mark = mark;
  }

  override get name(): string {
    return "TickonceFailure";
  }
}

/** For a handler to throw: no try can succeed, the job dies at once. */
export function permanent(error: unknown): Error {
  return new Marked({ permanent: true }, error);
}

/** The longest duration of the engine. */
const mostMS = 9_223_372_036_854;

/** For a handler to throw: the job is tried again, after so many milliseconds rather than by its retry curve. */
export function retryAfter(ms: number, error: unknown): Error {
  isMS("ms", ms);
  return new Marked({ retryAfter: { forMS: Math.min(ms, mostMS) } }, error);
}

/** For a delivery to throw: it failed for now, and is tried again. Without this a result that a run has staged is given up. */
export function transient(error: unknown): Error {
  return new Marked({ transient: true }, error);
}

/**
 * What was thrown, as a request has it: its first mark counts, along the chain of
 * causes, and without one a timeout, as of AbortSignal.timeout, is transient (X6).
 */
export function failureOf(error: unknown): object {
  const message = messageOf(error);
  let timeout = false;
  try {
    for (let e = error, depth = 0; e instanceof Error && depth < 32; e = e.cause, depth++) {
      if (e instanceof Marked) return { message, ...e.mark };
      timeout ||= e.name === "TimeoutError";
    }
  } catch {} // to read it throws in turn
  return timeout ? { message, transient: true } : { message };
}

/** The message of whatever was thrown; half a surrogate pair, which JSON refuses, is U+FFFD. */
export function messageOf(error: unknown): string {
  try {
    return decoder.decode(encoder.encode(String(error instanceof Error ? error.message || error.name : error)));
  } catch {
    return "an error without a text";
  }
}
