// Whole lives of an engine that runs, drawn from seeds: handlers that throw, hang
// or end late, a store that fails before or behind its work, is full or slow, a
// guest that traps, closes and crashes. SEEDS=1..500 has it draw more.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";

import { Engine } from "../src/engine.js";
import { StoreError } from "../src/errors.js";
import { permanent, retryAfter } from "../src/failure.js";
import { Guest } from "../src/guest.js";
import { LocalHost } from "../src/host.js";
import type { Host, Instance } from "../src/host.js";
import type { Job } from "../src/job.js";
import { start } from "../src/start.js";
import type { Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { module } from "./guest.js";
import { Gate } from "./rig.js";

const epoch = Date.UTC(2030, 0, 1);

/** Numbers in [0, 1), by mulberry32. */
function numbers(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let n = Math.imul(seed ^ (seed >>> 15), seed | 1);
    n ^= n + Math.imul(n ^ (n >>> 7), n | 61);
    return ((n ^ (n >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What is on the disk, and who reads it beside the engines. */
class Disk {
  readonly store = memoryStore();
  readonly #reader: Guest;

  private constructor(reader: Guest) {
    this.#reader = reader;
  }

  static async make(): Promise<Disk> {
    return new Disk(await Guest.of(module));
  }

  /** What the state on the disk says of a boundary. */
  async why(name: string, boundary: number): Promise<{ job: number; state: string; runs?: { then?: string }[] }> {
    const { snapshot, log } = await this.store.load();
    const handle = this.#reader.open(Date.now(), { seed: "7" }, snapshot, log);
    try {
      return (handle.call(Date.now(), "why", { name, boundary }) as { why: never }).why;
    } finally {
      handle.close();
    }
  }
}

/** A life of the process: until it ends, its store reaches the disk, and its guest may trap. */
class Life implements Host {
  over = false;
  opening = 0;
  hung = 0;
  readonly #host = new LocalHost(module);
  readonly #draw: () => number;
  readonly #faults: () => boolean;
  readonly #disk: Disk;

  constructor(draw: () => number, faults: () => boolean, disk: Disk) {
    [this.#draw, this.#faults, this.#disk] = [draw, faults, disk];
  }

  #likely(p: number): boolean {
    return this.#faults() && this.#draw() < p;
  }

  /** Does something on the disk, or not, and says so, or not. */
  async #reach<T>(work: () => Promise<T>): Promise<T> {
    if (this.over) return new Promise(() => {});
    if (this.#likely(0.1)) await new Promise(resolve => setTimeout(resolve, Math.floor(this.#draw() * 4000)));
    if (this.over) return new Promise(() => {});
    if (this.#likely(0.1)) throw new StoreError(this.#draw() < 0.5 ? "full" : "unavailable", "before it was done");
    const done = await work();
    if (this.#likely(0.1)) throw new Error("behind its work");
    return done;
  }

  get store(): Store {
    const { store } = this.#disk;
    return {
      load: () => this.#reach(() => store.load()),
      append: records => this.#reach(() => store.append(records)),
      replace: snapshot => this.#reach(() => store.replace(snapshot)),
    };
  }

  async open(now: number, config: object, snapshot?: Uint8Array, log?: Uint8Array): Promise<Instance> {
    this.opening++;
    const instance = await this.#host.open(now, config, snapshot, log).finally(() => this.opening--);
    let dead = false;
    return {
      run: async asks => {
        const whole = dead ? 0 : this.#likely(0.01) ? Math.floor(this.#draw() * asks.length) : asks.length;
        const answers = await instance.run(asks.slice(0, whole));
        if (whole === asks.length) return answers;
        dead = true;
        return [...answers, { error: { code: "internal", message: "trapped" }, out: new Uint8Array() }];
      },
      close: () => instance.close(),
    };
  }

  setTimer(call: () => void, ms: number): unknown {
    return this.#host.setTimer(call, ms);
  }

  clearTimer(timer: unknown): void {
    this.#host.clearTimer(timer);
  }
}

const everyMS = { fast: 2000, slow: 7000 };

async function live(t: TestContext, seed: number): Promise<void> {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: epoch });
  const draw = numbers(seed);
  const disk = await Disk.make();
  const jobs = new Map<string, number>(); // that boundaries fired
  const succeeded = new Set<number>(), failed = new Set<number>(); // jobs
  const promised: number[] = []; // jobs whose enqueue has been answered
  const faults: unknown[] = [];
  let late: Gate[] = [];
  let quiet = false;

  /** Does one job, as the seed has it. */
  const handler = (life: Life) => async (job: Job, { signal }: { signal: AbortSignal }) => {
    if (job.schedule) {
      const what = `${job.schedule} at ${job.boundary! - epoch}, try ${job.attempt}`;
      const { job: fired, state, runs = [] } = await disk.why(job.schedule, job.boundary!);
      assert.deepEqual([fired, state], [job.id, "claimed"], `${what}: a handler is called before its claim is stored`);
      assert.ok(!runs.some(r => r.then === "done" || r.then === "dead"), `${what}: it had ended`);
      assert.equal(jobs.get(`${job.schedule} ${job.boundary}`) ?? job.id, job.id, `${what}: it has fired twice`);
      jobs.set(`${job.schedule} ${job.boundary}`, job.id);
    }
    const drawn = quiet ? 1 : draw();
    if (drawn < 0.1) throw new Error("failed");
    if (drawn < 0.15) throw retryAfter(Math.floor(draw() * 3000), "later");
    if (drawn < 0.2) {
      failed.add(job.id);
      throw permanent("never");
    }
    if (drawn < 0.35) await new Promise(resolve => setTimeout(resolve, Math.floor(draw() * 8000))); // some behind their time
    if (drawn > 0.35 && drawn < 0.4) {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }
    if (drawn > 0.4 && drawn < 0.45 && life.hung < 2) {
      life.hung++; // and its slot is taken for the rest of this life
      late.push(new Gate());
      await late.at(-1)!.promise;
    }
    succeeded.add(job.id);
  };
  const checked = (handle: ReturnType<typeof handler>) => async (...of: Parameters<typeof handle>) => {
    try {
      await handle(...of);
    } catch (error) {
      if (error instanceof assert.AssertionError) faults.push(error);
      throw error;
    }
  };

  let life!: Life, eng!: Engine;
  const begin = () => {
    life = new Life(draw, () => !quiet, disk);
    eng = new Engine(life, { store: life.store, seed: 7n, limits: { runs: 10_000 } });
    const handle = checked(handler(life));
    const work = { handler: handle, concurrency: 4, timeoutMS: 5000 };
    start(eng, { q: work, r: work }, { stopTimeoutMS: 3000, onError: () => {} });
  };

  /** Lets everything happen that is due, and that comes of it. */
  const settle = async () => {
    for (let i = 0; i < 10; i++) {
      do await new Promise(setImmediate);
      while (life.opening > 0);
      t.mock.timers.tick(0);
    }
  };
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms);
    await settle();
  };
  const until = async <T>(promise: Promise<T>): Promise<T> => {
    let over = false;
    promise.catch(() => {}).finally(() => (over = true));
    for (let i = 0; !over; i++) {
      assert.ok(i < 1000, "it never ends");
      await pass(500);
    }
    return promise;
  };
  /** Asks again until it is known to have happened. */
  const insist = async <T>(ask: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await until(ask());
      } catch {}
    }
  };

  begin();
  const stamps = { visibilityMS: 10_000, baseBackoffMS: 500, maxAttempts: 6 };
  await insist(() => eng.schedule("fast", "@every 2s", "q", { ...stamps, breaker: -1 }));
  await insist(() => eng.schedule("slow", "@every 7s", "r", { ...stamps, breaker: -1 }));
  for (const end = Date.now() + 90_000; Date.now() < end; await pass(50 + Math.floor(draw() * 900))) {
    const drawn = draw();
    if (drawn < 0.1) {
      eng.enqueue("q", "", stamps).then(id => promised.push(id), () => {});
    } else if (drawn < 0.15) {
      eng.step().catch(() => {});
    } else if (drawn < 0.2) {
      late.pop()?.resolve();
    } else if (drawn < 0.22) {
      await until(eng.close());
      begin();
    } else if (drawn < 0.25) {
      life.over = true; // and with it what its handlers come to
      begin();
    }
  }
  quiet = true;
  for (const gate of late) gate.resolve();
  late = [];
  const last = Date.now();
  for (let i = 0; i < 90; i++) await pass(1000);

  for (const [name, every] of Object.entries(everyMS)) {
    const schedule = (await until(eng.lookup(name)))!;
    for (let boundary = schedule.options.anchor + every; boundary <= last; boundary += every) {
      const why = await until(eng.why(name, boundary));
      assert.equal(why.kind, "ran", `${name}: ${why.text}`);
      const ends = why.runs.filter(r => r.then === "done" || r.then === "dead");
      assert.equal(ends.length, 1, `${name}: ended once: ${why.text}`);
      if (ends[0]!.then === "done") assert.ok(succeeded.has(why.job), `${name}: done by a handler: ${why.text}`);
      else assert.ok(failed.has(why.job) || why.runs.length === stamps.maxAttempts, `${name}: dead by a handler: ${why.text}`);
    }
  }
  const exhausted = new Set<number>();
  for (const rows = eng.dead("q"); ; ) {
    const { done, value } = await until(rows.next());
    if (done) break;
    if (value.attempts === stamps.maxAttempts) exhausted.add(value.id);
  }
  for (const id of promised) {
    assert.ok(succeeded.has(id) || failed.has(id) || exhausted.has(id), `job ${id} was promised, and no handler has ended it`);
  }
  const { pending, claimed } = await until(eng.queue("q"));
  assert.ok(pending + claimed <= 1, `${pending} pending, ${claimed} claimed`);
  await until(eng.close());
  assert.deepEqual(faults, []);
}

test("D2 D4 I1 I5 whatever fails, each boundary is done once, and nothing before it is stored", async t => {
  const [, from = 1, to = 5] = /^(\d+)\.\.(\d+)$/.exec(process.env["SEEDS"] ?? "") ?? [];
  for (let seed = Number(from); seed <= Number(to); seed++) await t.test(`seed ${seed}`, t => live(t, seed));
});
