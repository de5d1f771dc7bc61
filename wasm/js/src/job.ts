import type { Begun } from "./records.js";

const decoder = new TextDecoder("utf-8", { fatal: true });

/** A job that was claimed. */
export class Job {
  readonly id: number;
  readonly queue: string;
  /** The schedule that fired it; "" if none did. */
  readonly schedule: string;
  /** The boundary that it was fired for. */
  readonly boundary: number | undefined;
  /** Of a delivery: the job whose result it is; else 0. */
  readonly origin: number;
  readonly enqueuedAt: number | undefined;
  readonly runAt: number | undefined;
  /** When the claim lapses, as far as it was known when it was made. */
  readonly deadline: number | undefined;
  /** From 1 on. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly priority: number;
  /** Why the attempt before failed. */
  readonly lastError: string;
  readonly payload: Uint8Array;

  /** @internal */
  constructor(from: Begun) {
    this.id = from.job;
    this.queue = from.queue;
    this.schedule = from.schedule;
    this.boundary = from.boundary;
    this.origin = from.origin;
    this.enqueuedAt = from.enqueued;
    this.runAt = from.runAt;
    this.deadline = from.deadline;
    this.attempt = from.attempt;
    this.maxAttempts = from.maxAttempts;
    this.priority = from.priority;
    this.lastError = from.lastError;
    this.payload = from.payload;
  }

  /** The payload as text. One that is not UTF-8 throws a TypeError. */
  text(): string {
    return decoder.decode(this.payload);
  }

  /** The payload as JSON. One that is none throws a SyntaxError. */
  json<T = unknown>(): T {
    return JSON.parse(this.text());
  }
}
