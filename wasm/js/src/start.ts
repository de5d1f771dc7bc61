/// <reference lib="esnext.disposable" preserve="true" />

import { isFunction, isMS, isOptions, isSignal, isWhole, refuse } from "./check.js";
import type { Engine } from "./engine.js";
import { StoreError, TickonceError } from "./errors.js";
import { failureOf } from "./failure.js";
import { Job } from "./job.js";
import type { OutRecord } from "./records.js";
import type { Listener, Session } from "./session.js";
import { safely } from "./session.js";
import { onWake } from "./wake.js";

/**
 * Does one job. Returning makes it done; throwing makes it tried again, or dead
 * with its attempts exhausted; see permanent, retryAfter and transient. The
 * signal is aborted when the job's time is over, its claim is lost or the engine
 * stops: what the handler does then does not count any more.
 */
export type Handler = (job: Job, context: { signal: AbortSignal }) => unknown;

/** A handler, and how it is called. */
export interface Work {
  handler: Handler;
  /** How many jobs are in hand at once. Default 1. */
  concurrency?: number | undefined;
  /** How long a run may take. Default: no bound. */
  timeoutMS?: number | undefined;
}

/** Handlers by the names of their queues. */
export type Handlers = Record<string, Handler | Work>;

/** How an engine is started. */
export interface StartOptions {
  /** Stops the run when it is aborted, as {@link Run.stop} does. */
  signal?: AbortSignal | undefined;
  /**
   * Handlers of outboxes, by their names. A result that a run has staged has 3 tries of 30 s; another one comes after
   * `transient`, `retryAfter` or a timeout alone, and any other error is the last. Other entries are tried again as jobs are.
   */
  outboxes?: Handlers | undefined;
  /** How many jobs of a queue are in hand at once, where its handler does not say. Default 1. */
  concurrency?: number | undefined;
  /** How long a run may take, where its handler does not say. Default: no bound. */
  timeoutMS?: number | undefined;
  /** How long runs may go on after the stop has begun, before their signals are aborted. Default 10 s. */
  stopTimeoutMS?: number | undefined;
  /** Is told of what fails and is tried again: the store, say. Default: console.error. */
  onError?: ((error: unknown) => void) | undefined;
}

const isWork = isOptions<Work>({ handler: isFunction, concurrency: isWhole, timeoutMS: isMS }, "handler");

const isHandlers = (name: string, value: unknown) => {
  if (typeof value !== "object" || value === null) refuse(name, value, "handlers by the names of their queues");
  for (const [queue, work] of Object.entries(value)) {
    if (typeof work === "function") continue;
    if (typeof work !== "object" || work === null) refuse(`${name}.${queue}`, work, "a function, or an object with a handler");
    isWork(`${name}.${queue}`, work);
  }
};

const isStartOptions = isOptions<StartOptions>({
  signal: isSignal,
  outboxes: isHandlers,
  concurrency: isWhole,
  timeoutMS: isMS,
  stopTimeoutMS: isMS,
  onError: isFunction,
});

/** An engine that runs. */
export interface Run extends AsyncDisposable {
  /**
   * Stops: nothing new is begun, what is in hand goes on for stopTimeoutMS, then
   * its signals are aborted, and 5 s later it is left. Resolves when all has
   * stopped; rejects with "abandoned" if jobs were left. They are tried again
   * when their claims have lapsed.
   */
  stop(): Promise<void>;

  /** The end of the run, however it comes: as {@link stop} resolves or rejects. */
  readonly done: Promise<void>;
}

/**
 * Runs an engine: its schedules fire, and handlers are called with the jobs of
 * their queues. An engine that follows waits until it leads. A fault is told to
 * onError and tried again: after 100, 200, 400 ms, then every 5 s.
 *
 *     const run = start(eng, { mail: async job => send(job.json()) }, { signal });
 */
export function start(engine: Engine, handlers: Handlers = {}, options: StartOptions = {}): Run {
  isHandlers("handlers", handlers);
  isStartOptions("options", options);
  if (engine.session.listener) throw new TickonceError("invalid_request", "the engine has been started: stop that run before");
  return new Loop(engine.session, handlers, options);
}

/** How long the loop sleeps at most before it looks at the clock, which may have been set, or have stood still. */
const sliceMS = 1000;

/** The default of StartOptions.stopTimeoutMS, and how long handlers have behind it: those of the engine. */
const stopTimeoutMS = 10_000, noticeMS = 5000;

/** What the queues of outboxes begin with. */
const outboxPrefix = "__alkstore_outbox:";

const pausesMS = [100, 200, 400, 5000];

/** A queue with its handler, and the worker that claims its jobs, if that is there. */
interface Line {
  readonly queue: string;
  readonly handler: Handler;
  readonly request: object;
  worker: number | undefined;
}

const hasWorker = ({ worker }: Line) => worker !== undefined;

class Loop implements Run, Listener {
  readonly done: Promise<void>;
  readonly #session: Session;
  readonly #options: StartOptions;
  readonly #lines: Line[];

  #runner = false;
  #gone: TickonceError | undefined; // why what was begun last is gone
  #inHand = new Map<number, AbortController>(); // by their runs
  #ends: { run: number; error: object | undefined }[] = []; // that are to be told
  #timer: unknown;
  #next = -Infinity; // when to step
  #seen = -Infinity; // the clock at the last step
  #stepping = false;
  #failures = 0;
  #stopping = false;
  #leaveAt = Infinity; // when a stop that cannot be stored is given up
  #halt!: () => void;
  readonly #halted = new Promise<void>(resolve => (this.#halt = resolve));
  #over = false;
  #error: unknown; // of the end
  #reported: unknown; // what onError was told last
  readonly #unwatch: () => void;
  #end!: { resolve(): void; reject(error: unknown): void };

  constructor(session: Session, handlers: Handlers, options: StartOptions) {
    this.#session = session;
    this.#options = options;
    this.#lines = [...this.#linesOf("queue", handlers), ...this.#linesOf("outbox", options.outboxes ?? {})];
    this.done = new Promise((resolve, reject) => (this.#end = { resolve, reject }));
    this.done.catch(() => {}); // whoever asks is told
    session.listener = this;
    this.#unwatch = onWake(() => this.#wake());
    const { signal } = options;
    const abort = () => void this.stop().catch(() => {});
    signal?.addEventListener("abort", abort, { once: true });
    void this.done.catch(() => {}).then(() => signal?.removeEventListener("abort", abort));
    if (signal?.aborted) abort();
    else this.#wake();
  }

  #linesOf(kind: "queue" | "outbox", handlers: Handlers): Line[] {
    const { concurrency, timeoutMS, stopTimeoutMS } = this.#options;
    return Object.entries(handlers).map(([name, work]) => {
      const { handler, ...own } = typeof work === "function" ? { handler: work } : work;
      return { queue: kind === "outbox" ? outboxPrefix + name : name, handler, request: { [kind]: name, options: { concurrency, timeoutMS, stopTimeoutMS, ...own } }, worker: undefined };
    });
  }

  stop(): Promise<void> {
    if (!this.#stopping) {
      this.#stopping = true;
      this.#failures = 0;
      this.#leaveAt = Date.now() + (this.#options.stopTimeoutMS ?? stopTimeoutMS) + noticeMS;
      this.#halt();
      this.#wake();
    }
    return this.done;
  }

  closing(): Promise<void> {
    return this.stop().catch(() => {});
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  written(): void {
    this.#wake();
  }

  /** Steps as soon as it can be. */
  #wake(): void {
    this.#next = -Infinity;
    if (this.#failures === 0 || this.#stopping) this.#sleep(0);
  }

  #sleep(ms: number): void {
    if (this.#stepping || this.#over) return; // it goes on by itself, or not at all
    this.#session.host.clearTimer(this.#timer);
    this.#timer = this.#session.host.setTimer(() => void this.#look(), Math.max(0, Math.min(ms, sliceMS)));
  }

  /** Looks at the clock, and steps if it is time, or if the clock was set back. */
  async #look(): Promise<void> {
    const now = Date.now();
    if (now < this.#next && now >= this.#seen) return this.#sleep(this.#next - now);
    if (this.#finished()) return;
    this.#stepping = true;
    try {
      await this.#begin();
      this.#next = Infinity; // unless it is woken meanwhile
      this.#seen = now;
      if (this.#runner || this.#lines.some(hasWorker)) {
        this.#tellEnds();
        if (this.#stopping) this.#tellStops();
        const { next } = await this.#session.step(0);
        this.#next = Math.min(this.#next, next);
      }
      this.#failures = 0;
    } catch (error) {
      this.#next = Date.now() + pausesMS[Math.min(this.#failures++, pausesMS.length - 1)]!;
      if (this.#session.closed || Date.now() >= this.#leaveAt) return this.#finish(error);
      if (!isLost(error)) this.#report(error);
    } finally {
      this.#stepping = false;
    }
    if (!this.#finished()) this.#sleep(this.#next - Date.now());
  }

  /** Tells which runs have ended, in the turn of the step that writes it; again, if they cannot be told for now. */
  #tellEnds(): void {
    const ends = this.#ends; // of this instance: what is refused when it is gone goes with it
    for (const end of ends.splice(0)) {
      this.#session.call("end", end).catch(error => {
        if (error instanceof StoreError) ends.push(end);
        else if (!isLost(error)) this.#report(error);
      });
    }
  }

  /** Tells the runner and the workers to stop, in the turn of a step; each time until they have, since it may be in vain. */
  #tellStops(): void {
    const calls = this.#lines.filter(hasWorker).map(({ worker }) => this.#session.call("stopWork", { worker }));
    if (this.#runner) calls.push(this.#session.call("stop"));
    for (const call of calls) call.catch(() => {}); // the step fails as they do
  }

  /** Begins the runner and the workers, as far as they are not there. */
  async #begin(): Promise<void> {
    if (this.#stopping || (this.#runner && this.#lines.every(hasWorker))) return;
    const session = this.#session;
    await Promise.race([session.lead(), this.#halted]);
    if (this.#stopping) return;
    this.#gone = undefined;
    const lines = this.#lines.filter(line => !hasWorker(line));
    const [runner, ...workers] = await Promise.allSettled([
      session.call("start"),
      ...lines.map(({ request }) => session.call("work", request)),
    ]);
    if (this.#gone) throw this.#gone;
    this.#runner ||= runner.status === "fulfilled";
    workers.forEach((w, i) => {
      if (w.status === "fulfilled") lines[i]!.worker = w.value.worker;
    });
    const refused = [runner, ...workers].find(r => r.status === "rejected");
    if (refused && (!this.#runner || refused.reason instanceof StoreError)) throw refused.reason; // they are asked again
    if (refused) this.#error = refused.reason; // a name or an option that there cannot be
    if (refused) void this.stop();
  }

  #finished(): boolean {
    if (!this.#stopping || this.#runner || this.#lines.some(hasWorker)) return false;
    this.#finish(this.#error);
    return true;
  }

  #finish(error?: unknown): void {
    this.#over = true;
    this.#session.host.clearTimer(this.#timer);
    this.#unwatch();
    if (this.#session.listener === this) this.#session.listener = undefined;
    this.#abort(new TickonceError("stopped", "the engine has stopped"));
    if (error === undefined) this.#end.resolve();
    else this.#end.reject(error);
  }

  records(records: OutRecord[]): void {
    for (const r of records) {
      switch (r.kind) {
        case "begun":
          void this.#run(r.run, new Job(r));
          break;
        case "ended":
          this.#inHand.get(r.run)?.abort(r.error);
          break;
        case "stopped":
          this.#stopped(r.worker, r.error);
          break;
      }
    }
  }

  async #run(id: number, job: Job): Promise<void> {
    // Not by its worker: another's step in the turn in which that began comes before the answer that names it.
    const handler = this.#lines.find(({ queue }) => queue === job.queue)?.handler;
    if (!handler) return;
    const controller = new AbortController();
    this.#inHand.set(id, controller);
    let error: object | undefined;
    try {
      await handler(job, { signal: controller.signal });
    } catch (thrown) {
      error = failureOf(thrown);
    }
    if (this.#inHand.get(id) !== controller) return; // it was left
    this.#inHand.delete(id);
    this.#ends.push({ run: id, error });
    this.#wake();
  }

  /** A worker or, as 0, the runner has ended. */
  #stopped(worker: number, error: TickonceError | undefined): void {
    if (worker === 0) this.#runner = false;
    for (const line of this.#lines) if (line.worker === worker) line.worker = undefined;
    this.#error ??= error;
    if (!this.#stopping) void this.stop(); // none of its own accord ends without a fault
  }

  gone(why: TickonceError): void {
    this.#gone = why;
    this.#runner = false;
    for (const line of this.#lines) line.worker = undefined;
    this.#ends = [];
    this.#abort(why);
    const fault = why.code === "leadership_lost" ? why.cause : why; // a lead that is lost is none, a state that is taken is one
    if (fault) this.#report(fault);
    this.#wake();
  }

  #abort(reason: TickonceError): void {
    const left = [...this.#inHand.values()];
    this.#inHand.clear();
    for (const controller of left) controller.abort(reason);
  }

  /** Tells of an error, once: it may be that of several calls of a turn, and end what was begun besides. */
  #report(error: unknown): void {
    if (error === this.#reported) return;
    this.#reported = error;
    safely(() => (this.#options.onError ?? console.error)(error));
  }
}

/** Whether another has what this engine had: no fault, and nothing to be done about. */
function isLost(error: unknown): boolean {
  return error instanceof TickonceError && (error.code === "leadership_lost" || error.code === "claim_lost");
}
