// Where the instances of the guest live: in this thread, or in a Worker.

import { TickonceError } from "./errors.js";
import type { ErrorCode } from "./errors.js";
import { messageOf } from "./failure.js";
import { encodeRequest, Guest } from "./guest.js";
import type { Handle } from "./guest.js";
import { inOwnNames } from "./naming.js";
import { ops } from "./ops.js";
import type { Op } from "./ops.js";

/** One thing that an instance is asked to do, at an instant. */
export type Ask =
  | { op: Op; request: object; now: number }
  | { op: "step"; most: number; now: number }
  | { op: "snapshot"; now: number };

/** What came of it: a reply, or why it was refused, with the records beside it. It can be cloned and posted. */
export interface Answer {
  reply?: unknown;
  error?: { code: ErrorCode; message: string };
  out: Uint8Array;
}

/** An engine of the guest. */
export interface Instance {
  /**
   * Does what is asked, in order. After a fault of the guest nothing more is done:
   * the last answer is then "internal", and the instance is of no more use.
   */
  run(asks: Ask[]): Promise<Answer[]>;
  close(): void;
}

export interface Host {
  /** Opens an engine. Rejects with a TickonceError. */
  open(now: number, config: object, snapshot?: Uint8Array, log?: Uint8Array): Promise<Instance>;

  /** The timers of the thread: in a Worker they are punctual in a hidden tab, too. */
  setTimer(call: () => void, ms: number): unknown;
  clearTimer(timer: unknown): void;
}

/** The host that is this thread. Each engine has an instance of its own, so that a trap ends no other. */
export class LocalHost implements Host {
  readonly #module: WebAssembly.Module;

  constructor(module: WebAssembly.Module) {
    this.#module = module;
  }

  async open(now: number, config: object, snapshot?: Uint8Array, log?: Uint8Array): Promise<Instance> {
    const guest = await Guest.of(this.#module);
    try {
      return new LocalInstance(guest.open(now, config, snapshot, log));
    } catch (e) {
      if (!(e instanceof TickonceError)) throw e;
      throw new TickonceError(e.code, inOwnNames(e.message), { cause: e.cause });
    }
  }

  setTimer(call: () => void, ms: number): unknown {
    return setTimeout(call, ms);
  }

  clearTimer(timer: unknown): void {
    clearTimeout(timer as ReturnType<typeof setTimeout>);
  }
}

const nothing = new Uint8Array();

class LocalInstance implements Instance {
  readonly #handle: Handle;

  constructor(handle: Handle) {
    this.#handle = handle;
  }

  run(asks: Ask[]): Promise<Answer[]> {
    const answers: Answer[] = [];
    for (const ask of asks) {
      const answer = this.#answer(ask);
      answers.push(answer);
      if (answer.error?.code === "internal") break;
    }
    return Promise.resolve(answers);
  }

  #answer(ask: Ask): Answer {
    let request: Uint8Array = nothing;
    try {
      if ("request" in ask) request = encodeRequest(ask.request);
    } catch (e) { // before the guest is entered: it is as it was
      return { error: { code: "invalid_request", message: `the request is no text that JSON has: ${messageOf(e)}` }, out: nothing };
    }
    try {
      switch (ask.op) {
        case "snapshot":
          return { reply: this.#handle.snapshot(), out: nothing };
        case "step":
          return { reply: this.#handle.step(ask.now, ask.most), out: this.#handle.out() };
        default:
          return { reply: JSON.parse(this.#handle.callRaw(ask.now, ops[ask.op], request)), out: this.#handle.out() };
      }
    } catch (e) {
      if (!(e instanceof TickonceError)) throw e;
      // A snapshot puts out nothing: what is there is of the call before.
      return { error: { code: e.code, message: inOwnNames(e.message) }, out: e.code === "internal" || ask.op === "snapshot" ? nothing : this.#handle.out() };
    }
  }

  close(): void {
    this.#handle.close();
  }
}
