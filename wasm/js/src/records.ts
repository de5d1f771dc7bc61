// What a call puts out beside its reply: the records of ../../ABI.md.

import { TickonceError } from "./errors.js";
import type { ErrorCode } from "./errors.js";

/** A job that was handed out. */
export interface Begun {
  kind: "begun";
  run: number;
  job: number;
  boundary: number | undefined;
  origin: number;
  enqueued: number | undefined;
  runAt: number | undefined;
  deadline: number | undefined;
  worker: number;
  attempt: number;
  maxAttempts: number;
  priority: number;
  queue: string;
  schedule: string;
  lastError: string;
  payload: Uint8Array;
}

export interface Fired {
  kind: "fired";
  job: number;
  boundary: number;
  schedule: string;
  queue: string;
}

export type OutRecord =
  | Fired
  | Begun
  | { kind: "ended"; run: number; error: TickonceError | undefined }
  | { kind: "stopped"; worker: number; error: TickonceError | undefined }
  | { kind: "journal"; data: Uint8Array }
  | { kind: "event"; event: Record<string, unknown> };

const decoder = new TextDecoder();

/** Reads the records, which it copies; kinds that are not known are passed over. */
export function parseRecords(out: Uint8Array): OutRecord[] {
  const records: OutRecord[] = [];
  const view = new DataView(out.buffer, out.byteOffset, out.byteLength);
  for (let start = 0; start < out.length; ) {
    const size = start + 8 <= out.length ? view.getUint32(start + 4, true) : 0;
    if (size < 8 || size % 8 !== 0 || start + size > out.length) throw damaged();
    const fields = new Fields(out, view, start + 8, start + size);
    const record = parse(fields, view.getUint32(start, true));
    if (record && fields.left >= 8) throw damaged();
    if (record) records.push(record);
    start += size;
  }
  return records;
}

function damaged(): TickonceError {
  return new TickonceError("internal", "the records of the engine are cut or damaged");
}

function parse(f: Fields, kind: number): OutRecord | undefined {
  switch (kind) {
    case 1: {
      const job = f.whole(), boundary = f.whole(), sizes = f.u32s(2);
      const [schedule, queue] = [f.text(sizes[0]!), f.text(sizes[1]!)];
      return { kind: "fired", job, boundary, schedule, queue };
    }
    case 2: {
      const run = f.whole(), job = f.whole(), boundary = f.at(), origin = f.whole();
      const enqueued = f.at(), runAt = f.at(), deadline = f.at();
      const worker = f.u32(), attempt = f.u32(), maxAttempts = f.u32(), priority = f.u32() | 0;
      const sizes = f.u32s(4);
      const queue = f.text(sizes[0]!), schedule = f.text(sizes[1]!), lastError = f.text(sizes[2]!), payload = f.bytes(sizes[3]!);
      return {
        kind: "begun", run, job, boundary, origin, enqueued, runAt, deadline,
        worker, attempt, maxAttempts, priority, queue, schedule, lastError, payload,
      };
    }
    case 3:
    case 4: {
      const of = f.whole(), sizes = f.u32s(2);
      const code = f.text(sizes[0]!), message = f.text(sizes[1]!);
      const error = code ? new TickonceError(code as ErrorCode, message) : undefined;
      return kind === 3 ? { kind: "ended", run: of, error } : { kind: "stopped", worker: of, error };
    }
    case 5:
      return { kind: "journal", data: f.bytes(f.u32()) };
    case 6:
      return { kind: "event", event: JSON.parse(f.text(f.u32())) };
    default:
      return undefined;
  }
}

/** The fields of one record that are yet to be read. */
class Fields {
  readonly #out: Uint8Array;
  readonly #view: DataView;
  #at: number;
  readonly #end: number;

  constructor(out: Uint8Array, view: DataView, start: number, end: number) {
    [this.#out, this.#view, this.#at, this.#end] = [out, view, start, end];
  }

  #next(n: number): number {
    const at = this.#at;
    if (at + n > this.#end) throw damaged();
    this.#at += n;
    return at;
  }

  u32(): number {
    return this.#view.getUint32(this.#next(4), true);
  }

  u32s(n: number): number[] {
    return Array.from({ length: n }, () => this.u32());
  }

  /** A whole number, which a float holds. */
  whole(): number {
    const v = this.#view.getFloat64(this.#next(8), true);
    if (!Number.isInteger(v) || Math.abs(v) > 2 ** 53) throw damaged();
    return v;
  }

  /** An instant, which may be absent. */
  at(): number | undefined {
    if (Number.isNaN(this.#view.getFloat64(this.#next(8), true))) return undefined;
    this.#at -= 8;
    return this.whole();
  }

  /** How many bytes are yet to be read. */
  get left(): number {
    return this.#end - this.#at;
  }

  bytes(n: number): Uint8Array {
    const at = this.#next(n);
    return this.#out.slice(at, at + n);
  }

  text(n: number): string {
    const at = this.#next(n);
    return decoder.decode(this.#out.subarray(at, at + n));
  }
}
