// A host in another thread: what the threads say to each other, and both ends.

import { TickonceError } from "./errors.js";
import type { ErrorCode } from "./errors.js";
import { messageOf } from "./failure.js";
import { LocalHost } from "./host.js";
import type { Answer, Ask, Host, Instance } from "./host.js";

/** What the thread is asked; it answers those with an id. */
export type Request =
  | { kind: "module"; module: WebAssembly.Module }
  | { kind: "open"; id: number; now: number; config: object; snapshot?: Uint8Array | undefined; log?: Uint8Array | undefined }
  | { kind: "run"; id: number; instance: number; asks: Ask[] }
  | { kind: "close"; instance: number }
  | { kind: "timer"; timer: number; ms: number }
  | { kind: "clear"; timer: number };

export type Response =
  | { kind: "opened"; id: number }
  | { kind: "ran"; id: number; answers: Answer[] }
  | { kind: "failed"; id: number; code: ErrorCode; message: string }
  | { kind: "due"; timer: number };

/** A thread that answers. */
export interface Thread {
  post(request: Request): void;
  terminate(): void;
  /** Whether the process is to wait for the thread. */
  hold?(on: boolean): void;
}

/** Begins a thread; told is what it says, and why it is gone if it goes by itself. */
export type Spawn = (told: (response: Response) => void, gone: (why: unknown) => void) => Thread;

/**
 * The host that is another thread. The thread is there while there are engines, and
 * keeps a process alive as long as something is asked of it; timers that are set
 * without one are this thread's.
 */
export class RemoteHost implements Host {
  readonly #module: WebAssembly.Module;
  readonly #spawn: Spawn;
  #thread: Thread | undefined;
  #last = 0;
  readonly #asked = new Map<number, { resolve(value: any): void; reject(error: TickonceError): void }>();
  readonly #instances = new Set<number>();
  readonly #timers = new Map<number, () => void>();

  constructor(module: WebAssembly.Module, spawn: Spawn) {
    [this.#module, this.#spawn] = [module, spawn];
  }

  async open(now: number, config: object, snapshot?: Uint8Array, log?: Uint8Array): Promise<Instance> {
    const id = ++this.#last;
    this.#instances.add(id);
    const close = () => {
      if (!this.#instances.delete(id)) return;
      this.#thread?.post({ kind: "close", instance: id });
      this.#rest();
    };
    try {
      await this.#ask({ kind: "open", id, now, config, snapshot, log });
    } catch (error) {
      close();
      throw error;
    }
    return {
      run: asks =>
        this.#instances.has(id)
          ? this.#ask({ kind: "run", id: ++this.#last, instance: id, asks })
          : Promise.reject(new TickonceError("internal", "the engine's thread is gone")),
      close,
    };
  }

  setTimer(call: () => void, ms: number): unknown {
    if (this.#instances.size === 0) return { own: setTimeout(call, ms) };
    const timer = ++this.#last;
    this.#timers.set(timer, call);
    this.#running().post({ kind: "timer", timer, ms });
    this.#rest();
    return timer;
  }

  clearTimer(timer: unknown): void {
    if (typeof timer === "object") return clearTimeout((timer as { own: ReturnType<typeof setTimeout> }).own);
    if (!this.#timers.delete(timer as number)) return;
    this.#thread?.post({ kind: "clear", timer: timer as number });
    this.#rest();
  }

  #ask(request: Request & { id: number }): Promise<any> {
    return new Promise((resolve, reject) => {
      this.#asked.set(request.id, { resolve, reject });
      this.#running().post(request);
      this.#rest();
    });
  }

  #running(): Thread {
    if (!this.#thread) {
      const thread = this.#spawn(r => this.#told(r), why => this.#thread === thread && this.#gone(why));
      this.#thread = thread;
      thread.post({ kind: "module", module: this.#module });
    }
    return this.#thread;
  }

  /** Ends the thread when nobody needs it, and lets it go when nobody waits for it. */
  #rest(): void {
    const waited = this.#timers.size > 0 || this.#asked.size > 0;
    if (waited || this.#instances.size > 0) return this.#thread?.hold?.(waited);
    this.#thread?.terminate();
    this.#thread = undefined;
  }

  #told(r: Response): void {
    if (r.kind === "due") {
      const call = this.#timers.get(r.timer);
      this.#timers.delete(r.timer);
      call?.();
      return this.#rest();
    }
    const asked = this.#asked.get(r.id);
    this.#asked.delete(r.id);
    if (r.kind === "failed") asked?.reject(new TickonceError(r.code, r.message));
    else asked?.resolve(r.kind === "ran" ? r.answers : undefined);
    this.#rest();
  }

  #gone(why: unknown): void {
    this.#thread = undefined;
    this.#instances.clear();
    const error = new TickonceError("internal", `the engine's thread is gone: ${messageOf(why)}`, { cause: why });
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
    const due = [...this.#timers.values()];
    this.#timers.clear(); // who is called may set another
    for (const call of due) call();
  }
}

/** The other end: answers what a thread is asked. */
export function answerer(post: (response: Response) => void): (request: Request) => Promise<void> {
  let host: LocalHost;
  const instances = new Map<number, Instance>();
  const timers = new Map<number, unknown>();
  const failed = (id: number, e: unknown) =>
    post({ kind: "failed", id, code: e instanceof TickonceError ? e.code : "internal", message: messageOf(e) });

  return async request => {
    switch (request.kind) {
      case "module":
        host = new LocalHost(request.module);
        return;
      case "open":
        try {
          instances.set(request.id, await host.open(request.now, request.config, request.snapshot, request.log));
          post({ kind: "opened", id: request.id });
        } catch (e) {
          failed(request.id, e);
        }
        return;
      case "run":
        try {
          post({ kind: "ran", id: request.id, answers: await instances.get(request.instance)!.run(request.asks) });
        } catch (e) {
          failed(request.id, e);
        }
        return;
      case "close":
        instances.get(request.instance)?.close();
        instances.delete(request.instance);
        return;
      case "timer": {
        const { timer, ms } = request;
        timers.set(timer, setTimeout(() => {
          timers.delete(timer);
          post({ kind: "due", timer });
        }, ms));
        return;
      }
      case "clear":
        clearTimeout(timers.get(request.timer) as ReturnType<typeof setTimeout>);
        timers.delete(request.timer);
    }
  };
}
