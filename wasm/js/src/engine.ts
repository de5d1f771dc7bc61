/// <reference lib="esnext.disposable" preserve="true" />

import { has, instantOf, isBytes, isCount, isFlag, isFunction, isInstant, isListOf, isMS, isOneOf, isOptions, isSignal, isText, isWhole } from "./check.js";
import { TickonceError } from "./errors.js";
import { messageOf } from "./failure.js";
import type { Host } from "./host.js";
import { Job } from "./job.js";
import type { Leadership } from "./leadership.js";
import { Lock } from "./lock.js";
import { Outbox } from "./outbox.js";
import type { Begun } from "./records.js";
import { deadOf, detailOf, queueOf, runOf, scheduleOf, skipOf, totalsOf, whyOf } from "./replies.js";
import { claimOf, enqueueRequest, plain, scheduleRequest } from "./requests.js";
import { Session } from "./session.js";
import type { Store } from "./store.js";
import { Tx } from "./tx.js";
import type {
  Claim, DeadJob, Detail, EngineEvent, EnqueueOptions, Fire, Instant, Limits, PastRun, PastSkip, Payload, QueueInfo,
  Schedule, ScheduleOptions, Totals, Why,
} from "./types.js";
import { encodeBase64, encodePayload } from "./values.js";

/** How an engine is opened. What is left out has its default. */
export interface OpenOptions {
  /** Keeps the state. Without one it is in memory alone, and a fault of the engine ends it. */
  store?: Store | undefined;
  /** Lets one of several engines that share a store work at a time. Without a store whoever leads next begins with nothing. Default: this one works. */
  leadership?: Leadership | undefined;
  /** A snapshot to begin with, where the store has nothing. */
  snapshot?: Uint8Array | undefined;
  /** What the jitter of retries is drawn from, 1 to 2^64 − 1. Default: random. */
  seed?: bigint | number | undefined;
  /** What claims and leases carry. Default "tickonce". */
  owner?: string | undefined;
  /** Time zones of active hours beside UTC: their names, and their data in the format TZif. */
  zones?: Record<string, Uint8Array> | undefined;
  limits?: Limits | undefined;
  /** How late a boundary is still on time. Default 10 s; a page that may be hidden sets 120,000. */
  onTimeMS?: number | undefined;
  /** After a clock that was wrong: "hold" (the default) keeps what has fired; "rearm" lets it fire again. */
  clockRepair?: "hold" | "rearm" | undefined;
  /** How many boundaries fire in a tick. Default 1,000. */
  batch?: number | undefined;
  /** How many details are kept. */
  details?: number | undefined;
  /** Is told of what happens, while this engine leads, and once it is stored. */
  onEvent?: ((event: EngineEvent) => void) | undefined;
  /** Is told when this engine begins to lead, and when it has lost the lead. */
  onLeading?: ((leading: boolean) => void) | undefined;
}

const isOpenOptions = isOptions<OpenOptions>({
  store: has("load", "append", "replace"),
  leadership: has("acquire"),
  snapshot: isBytes,
  seed: (name, value) => {
    if (typeof value === "bigint" ? value <= 0n || value >= 1n << 64n : !(Number.isSafeInteger(value) && (value as number) > 0)) {
      throw new TypeError(`${name} is ${String(value)}, want a whole number from 1 to 2^64 - 1, a bigint where it is above 2^53`);
    }
  },
  owner: isText,
  zones: (name, value) => {
    if (typeof value !== "object" || value === null) throw new TypeError(`${name} is no object, want time zones by their names`);
    for (const [zone, data] of Object.entries(value)) isBytes(`${name}.${zone}`, data);
  },
  limits: isOptions<Limits>({
    payload: isWhole, queueLength: isWhole, schedules: isWhole, lastError: isWhole, runs: isWhole, skips: isWhole, history: isWhole,
  }),
  onTimeMS: isMS,
  clockRepair: isOneOf("hold", "rearm"),
  batch: isWhole,
  details: isWhole,
  onEvent: isFunction,
  onLeading: isFunction,
});

/** Which part of a history is wanted. */
export interface HistoryOptions {
  /** Only what has a lesser id. */
  before?: number | undefined;
}

const isHistoryOptions = isOptions<HistoryOptions>({ before: isWhole });

/** How many rows a page has. */
const page = 200;

/**
 * An engine: schedules, queues, locks, outboxes. It is opened at once; what is
 * asked of it waits until it leads and has loaded its state. A promise of it
 * resolves once what was asked is stored, in the order of the calls. It rejects
 * with a {@link TickonceError}; after a StoreError, "leader_gone" or
 * "leadership_lost" it is unknown whether it has happened. An argument of a wrong
 * type is a TypeError.
 */
export class Engine implements AsyncDisposable, Disposable {
  /** @internal */
  readonly session: Session;

  /** @internal */
  constructor(host: Host, options: OpenOptions = {}) {
    isOpenOptions("options", options);
    const { store, leadership, snapshot, seed, zones, onEvent, onLeading, ...config } = options;
    this.session = new Session({
      host, store, leadership, snapshot, onEvent, onLeading,
      config: {
        ...config,
        limits: plain(config.limits),
        seed: String(seed ?? randomSeed()),
        zones: zones && Object.entries(zones).map(([name, data]) => ({ name, data: encodeBase64(data) })),
        journal: store !== undefined,
        events: onEvent !== undefined,
      },
    });
  }

  /** Whether this engine leads and has its state. */
  get leading(): boolean {
    return this.session.leading;
  }

  /**
   * Resolves once this engine leads and has its state: for one that follows that may be days. With a `signal` it
   * rejects with the reason of its abort; the engine goes on waiting.
   */
  async lead(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    isOptions<{ signal?: AbortSignal }>({ signal: isSignal })("options", options);
    const { signal } = options;
    if (!signal) return this.session.lead();
    signal.throwIfAborted();
    const over = new AbortController();
    const aborted = new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason), { signal: over.signal }));
    await Promise.race([this.session.lead(), aborted]).finally(() => over.abort());
  }

  /** Creates a schedule, or replaces the one of its name. Its boundaries become jobs of the queue. `spec` is as "@every 5m". */
  async schedule(name: string, spec: string, queue: string, options: ScheduleOptions = {}): Promise<Schedule> {
    return scheduleOf((await this.session.call("schedule", scheduleRequest(name, spec, queue, options))).schedule);
  }

  /** Removes a schedule; what it fired stays. Answers whether it was there. */
  async unschedule(name: string): Promise<boolean> {
    isText("name", name);
    return (await this.session.call("unschedule", { name })).done ?? false;
  }

  /** Pauses a schedule. Answers false if it is paused or not there. */
  async pause(name: string): Promise<boolean> {
    isText("name", name);
    return (await this.session.call("pause", { name })).done ?? false;
  }

  /** Ends a pause. What was missed is skipped or, with `catchUp`, fires. Answers false if it is not paused or not there. */
  async resume(name: string, options: { catchUp?: boolean | undefined } = {}): Promise<boolean> {
    isText("name", name);
    isOptions<{ catchUp?: boolean }>({ catchUp: isFlag })("options", options);
    return (await this.session.call("resume", { name, catchUp: options.catchUp })).done ?? false;
  }

  /** Enqueues a job of a schedule now, beside its boundaries, and answers its id. */
  async trigger(name: string): Promise<number> {
    isText("name", name);
    return (await this.session.call("trigger", { name })).job;
  }

  /** The schedule, if there is one. */
  async lookup(name: string): Promise<Schedule | undefined> {
    isText("name", name);
    const { schedule } = await this.session.call("lookup", { name });
    return schedule && scheduleOf(schedule);
  }

  /** The schedules, by name. */
  async *schedules(): AsyncGenerator<Schedule, void, void> {
    for (let after = ""; ; ) {
      const { schedules = [] } = await this.session.call("schedules", { after, max: page });
      yield* schedules.map(scheduleOf);
      if (schedules.length < page) return;
      after = schedules.at(-1).name;
    }
  }

  /** Puts a job into a queue and answers its id. */
  async enqueue(queue: string, payload?: Payload, options: EnqueueOptions = {}): Promise<number> {
    return (await this.session.call("enqueue", enqueueRequest(queue, payload, options))).job;
  }

  /**
   * Claims jobs for a worker, 1 unless `max` says more. What is claimed is settled by {@link ack},
   * {@link retry} or {@link fail} before its deadline; else another may claim it.
   */
  async claim(queue: string, options: { worker: string; max?: number | undefined }): Promise<Job[]> {
    isText("queue", queue);
    isOptions<{ worker: string; max?: number }>({ worker: isText, max: isWhole }, "worker")("options", options);
    if (options.max === 0) throw new TickonceError("invalid_option", "invalid option: max is 0, want 1 to 10000"); // in the ABI it is left out
    const begun = await this.session.call("claim", { queue, worker: options.worker, max: options.max });
    return begun.map((b: Begun) => new Job(b));
  }

  /** The jobs are done. Answers of each whether its claim was still live. */
  async ack(...claims: Claim[]): Promise<boolean[]> {
    return (await this.session.call("ack", { claims: claims.map(claimOf) })).acked ?? [];
  }

  /** The job is tried again later: after `afterMS`, or as its retry curve says; with its attempts exhausted it dies. */
  async retry(claim: Claim, error: unknown, options: { afterMS?: number | undefined } = {}): Promise<void> {
    isOptions<{ afterMS?: number }>({ afterMS: isMS })("options", options);
    const message = messageOf(error);
    const retryAfter = options.afterMS === undefined ? undefined : { forMS: options.afterMS };
    await this.session.call("retry", { claim: claimOf(claim), error: { message, retryAfter } });
  }

  /** The job dies. */
  async fail(claim: Claim, error: unknown): Promise<void> {
    await this.session.call("fail", { claim: claimOf(claim), error: { message: messageOf(error) } });
  }

  /** Makes the claim last so long from now, and answers its deadline. */
  async heartbeat(claim: Claim, forMS: number): Promise<number> {
    isMS("forMS", forMS);
    return (await this.session.call("heartbeat", { claim: claimOf(claim), forMS })).at;
  }

  /** Stages a result of a job in hand: it is put into the outbox together with the job's ack, and delivered by a handler of start's `outboxes`. */
  async deliver(claim: Claim, outbox: string, payload?: Payload): Promise<void> {
    isText("outbox", outbox);
    await this.session.call("deliver", { claim: claimOf(claim), outbox, payload: encodePayload(payload) });
  }

  /** Keeps a line about the run of a job in hand, for {@link history}. */
  async summarize(claim: Claim, text: string): Promise<void> {
    isText("text", text);
    await this.session.call("summarize", { claim: claimOf(claim), text });
  }

  /** Removes a job that is pending or claimed. Answers whether it was there. */
  async cancel(queue: string, job: number): Promise<boolean> {
    isText("queue", queue);
    isWhole("job", job);
    return (await this.session.call("cancel", { queue, job })).done ?? false;
  }

  /** Enqueues a dead job anew, and answers its new id. */
  async requeue(queue: string, job: number): Promise<number> {
    isText("queue", queue);
    isWhole("job", job);
    return (await this.session.call("requeue", { queue, job })).job;
  }

  /** Removes dead jobs. */
  async purge(queue: string, ...jobs: number[]): Promise<void> {
    isText("queue", queue);
    isListOf(isWhole)("jobs", jobs);
    await this.session.call("purge", { queue, jobs });
  }

  /** Moves the jobs that have expired, or have no attempts left, to the dead ones, and answers how many. */
  async sweep(queue: string): Promise<number> {
    isText("queue", queue);
    return (await this.session.call("sweep", { queue })).count ?? 0;
  }

  /** The dead jobs of a queue, by id. */
  dead(queue: string): AsyncGenerator<DeadJob, void, void> {
    isText("queue", queue);
    return this.deadOf({ queue });
  }

  /** @internal */
  async *deadOf(of: object): AsyncGenerator<DeadJob, void, void> {
    for (let from = 0; ; ) {
      const { dead = [] } = await this.session.call("dead", { ...of, from, max: page });
      yield* dead.map(deadOf);
      if (dead.length < page) return;
      from = dead.at(-1).id + 1;
    }
  }

  /** When the next job of a queue can be claimed; undefined: none is waiting. */
  async nextClaimAt(queue: string): Promise<number | undefined> {
    isText("queue", queue);
    return (await this.session.call("nextClaim", { queue })).at;
  }

  /** What is known of a queue; of one that was never used, zeros. */
  async queue(name: string): Promise<QueueInfo> {
    isText("name", name);
    return queueOf((await this.session.call("queue", { queue: name })).queue);
  }

  /** The queues, by name. */
  async *queues(): AsyncGenerator<QueueInfo, void, void> {
    for (let after = ""; ; ) {
      const { queues = [] } = await this.session.call("queues", { after, max: page });
      yield* queues.map(queueOf);
      if (queues.length < page) return;
      after = queues.at(-1).name;
    }
  }

  /** Takes a lock for an owner, if it is free or the owner's. */
  async lock(name: string, options: { owner: string; forMS: number }): Promise<Lock | undefined> {
    isText("name", name);
    isOptions<typeof options>({ owner: isText, forMS: isMS }, "owner", "forMS")("options", options);
    const { term, at } = await this.session.call("lock", { name, owner: options.owner, forMS: options.forMS });
    return term ? new Lock(this.session, name, term, at) : undefined;
  }

  /** The outbox of that name. */
  outbox(name: string): Outbox {
    isText("name", name);
    return new Outbox(this, name);
  }

  /** Begins a transaction, a batch of which all is done or nothing. */
  tx(): Tx {
    return new Tx(this.session);
  }

  /** The runs of a schedule that are kept, the newest first. */
  history(name: string, options: HistoryOptions = {}): AsyncGenerator<PastRun, void, void> {
    return this.#past("history", "runs", runOf, name, options);
  }

  /** The ranges of boundaries of a schedule that did not fire, the newest first. */
  skips(name: string, options: HistoryOptions = {}): AsyncGenerator<PastSkip, void, void> {
    return this.#past("skips", "skips", skipOf, name, options);
  }

  #past<T>(op: "history" | "skips", field: string, of: (raw: any) => T, name: string, options: HistoryOptions) {
    isText("name", name);
    isHistoryOptions("options", options);
    const { session } = this;
    return (async function* (): AsyncGenerator<T, void, void> {
      for (let before = options.before; ; ) {
        const rows = (await session.call(op, { name, before, max: page }))[field] ?? [];
        yield* rows.map(of);
        if (rows.length < page) return;
        before = rows.at(-1).id;
      }
    })();
  }

  /** What ever happened to a schedule, in numbers. */
  async totals(name: string): Promise<Totals> {
    isText("name", name);
    return totalsOf((await this.session.call("totals", { name })).totals ?? {});
  }

  /** What became of a boundary of a schedule. */
  async why(name: string, boundary: Instant): Promise<Why> {
    isText("name", name);
    isInstant("boundary", boundary);
    const { why, whyText } = await this.session.call("why", { name, boundary: instantOf(boundary) });
    return whyOf(why ?? {}, whyText);
  }

  /** Summaries of runs and tries to deliver, from a number on, at most 1,000; and how many are not kept any more. */
  async details(options: { from?: number | undefined; max?: number | undefined } = {}): Promise<{ details: Detail[]; dropped: number }> {
    isOptions<{ from?: number; max?: number }>({ from: isWhole, max: isWhole })("options", options);
    const { details = [], count = 0 } = await this.session.call("details", { ...options });
    return { details: details.map(detailOf), dropped: count };
  }

  /**
   * Fires what is due, at most about `max` boundaries, and answers when to be
   * called next, if at all. For hosts that drive the engine themselves: start does it.
   */
  async step(options: { max?: number | undefined } = {}): Promise<{ next: number | undefined; fired: Fire[] }> {
    isOptions<{ max?: number }>({ max: isCount })("options", options);
    void this.session.call("start").catch(() => {}); // shares the turn of the step, which fails as it does
    const { next, records } = await this.session.step(options.max ?? 0);
    const fired = records.flatMap(r => (r.kind === "fired" ? [{ job: r.job, boundary: r.boundary, schedule: r.schedule, queue: r.queue }] : []));
    return { next: next === Infinity ? undefined : next, fired };
  }

  /** The state as bytes, for {@link OpenOptions.snapshot}. */
  async snapshot(): Promise<Uint8Array> {
    return this.session.call("snapshot");
  }

  /** Stops what was started, stores what is in hand, and gives up the lead and the store. Calls that wait are refused. */
  close(): Promise<void> {
    return this.session.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  [Symbol.dispose](): void {
    this.close().catch(console.error);
  }
}

function randomSeed(): bigint {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2)) as unknown as [number, number];
  return (BigInt(high) << 32n) | BigInt(low) || 1n;
}
