// The loop, on timers and a clock that the tests move.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";

import type { Engine, OpenOptions } from "../src/engine.js";
import { StoreError, TickonceError } from "../src/errors.js";
import { LocalHost } from "../src/host.js";
import { permanent, retryAfter, transient } from "../src/failure.js";
import type { Job } from "../src/job.js";
import { start } from "../src/start.js";
import { memoryStore } from "../src/stores/memory.js";
import { Chair, Faulty, Gate, open, trapNext } from "./rig.js";

const epoch = Date.UTC(2030, 0, 1);

/** A test whose timers and clock stand still unless they are moved. */
function scenario(name: string, body: (t: TestContext, open: (options?: OpenOptions) => Engine) => Promise<void>): void {
  test(name, async t => {
    t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: epoch });
    const engines: Engine[] = [];
    try {
      await body(t, options => {
        engines.push(open(options));
        return engines.at(-1)!;
      });
    } finally {
      t.mock.restoreAll(); // but not the timers
      for (const eng of engines) await moving(t, eng.close());
    }
  });
}

/** Moves the clock until the promise is settled. */
async function moving<T>(t: TestContext, promise: Promise<T>): Promise<T> {
  let settled = false;
  promise.catch(() => {}).finally(() => (settled = true));
  for (let i = 0; !settled; i++) {
    assert.ok(i < 1000, "it never ends");
    await new Promise(setImmediate);
    t.mock.timers.tick(1000);
  }
  return promise;
}

/** Lets everything happen that is due. */
async function settle(t: TestContext, eng: Engine): Promise<void> {
  for (let i = 0; i < 12; i++) {
    t.mock.timers.tick(0);
    await new Promise(setImmediate);
    await eng.lookup("none");
  }
}

/** Moves the clock in steps of a second, as the loop sleeps. */
async function pass(t: TestContext, eng: Engine, ms: number): Promise<void> {
  await settle(t, eng);
  for (; ms > 0; ms -= 1000) {
    t.mock.timers.tick(Math.min(ms, 1000));
    await settle(t, eng);
  }
}

scenario("boundaries fire on their grid, and their handlers get the jobs", async (t, open) => {
  const eng = open();
  const got: [number, string][] = [];
  start(eng, { mail: job => void got.push([job.boundary! - epoch, job.text()]) });
  await eng.schedule("s", "@every 5s", "mail", { payload: "hi" });
  await pass(t, eng, 16_000);
  assert.deepEqual(got, [[5000, "hi"], [10_000, "hi"], [15_000, "hi"]]);
});

scenario("C100 a boundary in 60 days is slept for in slices, and nothing fires until then", async (t, open) => {
  const host = LocalHost.prototype;
  const slept: number[] = [];
  const setTimer = host.setTimer;
  t.mock.method(host, "setTimer", function (this: typeof host, call: () => void, ms: number) {
    slept.push(ms);
    return setTimer.call(this, call, ms);
  });
  const eng = open();
  const got: number[] = [];
  start(eng, { q: job => void got.push(job.boundary! - epoch) });
  await eng.schedule("s", "@every 60d", "q");
  await pass(t, eng, 3000);
  assert.ok(slept.length > 3 && slept.every(ms => ms >= 0 && ms <= 1000), String(slept));
  t.mock.timers.setTime(epoch + 60 * 86_400_000 - 1);
  await pass(t, eng, 0);
  assert.deepEqual(got, []);
  await pass(t, eng, 2000);
  assert.deepEqual(got, [60 * 86_400_000]);
  assert.ok(slept.every(ms => ms >= 0 && ms <= 1000), String(slept));
});

for (const [of, event] of [["document", "visibilitychange"], ["document", "resume"], ["window", "pageshow"], ["window", "online"]] as const) {
  scenario(`who wakes after hours, at ${event}, looks at the clock at once, and catches up`, async (t, open) => {
    const target = new EventTarget();
    Object.assign(globalThis, { [of]: target });
    t.after(() => delete (globalThis as Record<string, unknown>)[of]);
    // Timers that are frozen, as those of a page that sleeps.
    const timers: { call: () => void; ms: number }[] = [];
    const setTimer = t.mock.method(LocalHost.prototype, "setTimer", (call: () => void, ms: number) => timers.push({ call, ms }));
    const eng = open();
    const got: number[] = [];
    const run = start(eng, { q: job => void got.push(job.boundary! - epoch) });
    await eng.schedule("s", "@every 1h", "q", { catchUp: "latest" });
    const thaw = async () => {
      timers.at(-1)!.call();
      await settle(t, eng);
    };
    while (timers.at(-1)!.ms === 0) await thaw();
    t.mock.timers.setTime(epoch + 5 * 3_600_000 + 60_000);
    target.dispatchEvent(new Event(event));
    assert.equal(timers.at(-1)!.ms, 0);
    await thaw();
    assert.deepEqual(got, [5 * 3_600_000]);
    setTimer.mock.restore();
    target.dispatchEvent(new Event(event));
    await moving(t, run.stop());
    const stopped = t.mock.method(LocalHost.prototype, "setTimer");
    target.dispatchEvent(new Event(event));
    assert.equal(stopped.mock.callCount(), 0, "who has stopped wakes no more");
  });
}

scenario("a clock that is set back is noticed at once", async (t, open) => {
  const events: string[] = [];
  const eng = open({ clockRepair: "rearm", onEvent: e => events.push(e.kind) });
  start(eng, {});
  await eng.schedule("s", "@every 1m", "q");
  await pass(t, eng, 3000);
  const { now } = Date;
  t.mock.method(Date, "now", () => now() - 3_600_000);
  await pass(t, eng, 2000);
  assert.ok(events.includes("rearmed"), String(events));
});

scenario("what is enqueued is begun at once", async (t, open) => {
  const eng = open();
  const got: string[] = [];
  start(eng, { q: job => void got.push(job.text()) });
  await pass(t, eng, 2000);
  await eng.enqueue("q", "now");
  await pass(t, eng, 1);
  assert.deepEqual(got, ["now"]);
});

scenario("what handlers throw says what becomes of the job", async (t, open) => {
  const eng = open();
  const tries: Record<string, number[]> = {};
  const failing = (error: unknown) => (job: Job) => {
    (tries[job.queue] ??= []).push(Date.now() - epoch);
    if (job.attempt < 3) throw error;
  };
  start(eng, {
    dies: failing(permanent(new Error("never"))),
    wrapped: failing(new Error("outer", { cause: permanent("inner") })),
    after: failing(retryAfter(7000, new Error("soon"))),
    curve: failing("no Error at all"),
    rejects: async job => failing(retryAfter(1000, undefined))(job),
  });
  for (const queue of ["dies", "wrapped", "after", "curve", "rejects"]) await eng.enqueue(queue, "", { baseBackoffMS: 2000 });
  await pass(t, eng, 20_000);
  assert.deepEqual([tries["dies"], tries["wrapped"]], [[0], [0]]);
  assert.deepEqual(tries["after"], [0, 7000, 14_000]);
  assert.deepEqual(tries["rejects"], [0, 1000, 2000]);
  assert.equal(tries["curve"]!.length, 3);
  for (const [queue, error] of [["dies", "never"], ["wrapped", "outer"]] as const) {
    assert.equal((await eng.dead(queue).next()).value!.lastError, error);
  }
});

scenario("a wait beyond the longest that there is does not keep the worker", async (t, open) => {
  const eng = open();
  const got: string[] = [];
  start(eng, { q: job => {
    got.push(job.text());
    if (got.length === 1) throw retryAfter(Number.MAX_SAFE_INTEGER, new Error("never"));
  } });
  await eng.enqueue("q", "later");
  await eng.enqueue("q", "now");
  await pass(t, eng, 2000);
  assert.deepEqual(got, ["later", "now"]);
  const { claimed, retried } = await eng.queue("q");
  assert.deepEqual([claimed, retried], [0, 1]);
});

scenario("a result is delivered once its run is done, and a transient failure of that is tried again", async (t, open) => {
  const eng = open();
  const delivered: [string, number][] = [];
  start(eng, {
    q: async job => {
      await eng.deliver(job, "out", "result");
      await eng.summarize(job, "went well");
    },
  }, {
    outboxes: {
      out: entry => {
        delivered.push([entry.text(), entry.attempt]);
        if (entry.attempt === 1) throw transient(new Error("busy"));
      },
    },
  });
  await eng.schedule("s", "@every 1h", "q");
  await eng.trigger("s");
  await pass(t, eng, 10_000);
  assert.deepEqual(delivered, [["result", 1], ["result", 2]]);
  const [run] = [(await eng.history("s").next()).value!];
  assert.deepEqual([run.execution, run.summary, run.deliveries.map(d => d.delivery)], ["ok", "went well", ["transient", "delivered"]]);
  assert.equal((await eng.details()).details.length, 3);
});

scenario("a result whose delivery met a timeout is tried again, and given up after any other error", async (t, open) => {
  const eng = open();
  const tries: string[] = [];
  const failing = (name: string, error: Error) => () => {
    tries.push(name);
    throw error;
  };
  const timeout = new DOMException("too slow", "TimeoutError");
  start(eng, { q: job => eng.deliver(job, job.text(), "result") }, {
    outboxes: {
      slow: failing("slow", timeout),
      wrapped: failing("wrapped", new Error("fetch failed", { cause: timeout })),
      marked: failing("marked", permanent(timeout)),
      down: failing("down", new TypeError("fetch failed")),
    },
  });
  for (const outbox of ["slow", "wrapped", "marked", "down"]) await eng.enqueue("q", outbox);
  await pass(t, eng, 30_000);
  assert.deepEqual(tries.sort(), ["down", "marked", "slow", "slow", "slow", "wrapped", "wrapped", "wrapped"]);
});

scenario("a handler that takes too long is told, and its job is tried again when it returns", async (t, open) => {
  const eng = open();
  const reasons: unknown[] = [];
  start(eng, {
    q: {
      timeoutMS: 5000,
      handler: (job, { signal }) => job.attempt > 1 ? undefined : new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          reasons.push(signal.reason);
          reject(signal.reason);
        })),
    },
  });
  await eng.enqueue("q", "", { baseBackoffMS: 1000 });
  await pass(t, eng, 8000);
  assert.equal(reasons.length, 1);
  assert.ok(reasons[0] instanceof TickonceError && reasons[0].code === "timeout", String(reasons[0]));
  assert.equal((await eng.queue("q")).done, 1);
});

scenario("as many jobs are in hand as the concurrency allows", async (t, open) => {
  const eng = open();
  let inHand = 0, most = 0;
  const gate = new Gate();
  start(eng, { q: async () => { most = Math.max(most, ++inHand); await gate.promise; inHand--; } }, { concurrency: 3 });
  await Promise.all(Array.from({ length: 10 }, () => eng.enqueue("q")));
  await pass(t, eng, 1000);
  assert.equal(inHand, 3);
  gate.resolve();
  await pass(t, eng, 1000);
  assert.deepEqual([most, (await eng.queue("q")).done], [3, 10]);
});

scenario("a stop lets handlers end, and begins nothing more", async (t, open) => {
  const eng = open();
  const gate = new Gate();
  let begun = 0;
  const stop = new AbortController();
  const run = start(eng, { q: async () => { begun++; await gate.promise; } }, { signal: stop.signal });
  await eng.enqueue("q");
  await eng.enqueue("q");
  await pass(t, eng, 1000);
  stop.abort();
  await pass(t, eng, 3000);
  let stopped = false;
  void run.done.then(() => (stopped = true));
  await settle(t, eng);
  assert.equal(stopped, false);
  gate.resolve();
  await pass(t, eng, 100);
  await run.done;
  const { done, pending } = await eng.queue("q");
  assert.deepEqual([begun, done, pending], [1, 1, 1]);
  const again = start(eng, { q: () => void begun++ });
  await pass(t, eng, 1000);
  assert.equal(begun, 2);
  const stopping = again.stop();
  await pass(t, eng, 100);
  await stopping;
});

scenario("a handler that never settles is told to end, and then left", async (t, open) => {
  const eng = open();
  const aborted: TickonceError[] = [], errors: unknown[] = [], late = new Gate();
  const run = start(eng, {
    q: (_, { signal }) => {
      signal.addEventListener("abort", () => aborted.push(signal.reason));
      return late.promise;
    },
  }, { stopTimeoutMS: 2000, onError: e => errors.push(e) });
  await eng.enqueue("q");
  await pass(t, eng, 1000);
  const stopped = run.stop();
  await pass(t, eng, 1000);
  assert.equal(aborted.length, 0);
  await pass(t, eng, 2000);
  assert.deepEqual(aborted.map(e => e.code), ["stopped"]);
  await pass(t, eng, 6000);
  await assert.rejects(stopped, (e: unknown) => e instanceof TickonceError && e.code === "abandoned");
  late.resolve();
  await settle(t, eng);
  assert.equal((await eng.queue("q")).claimed, 1, "until its claim lapses");
  assert.deepEqual(errors, [], "it is too late to tell its end");
});

scenario("a store that fails is asked again, ever more slowly, and no handler is called meanwhile", async (t, open) => {
  const store = new Faulty(), errors: unknown[] = [], begun: string[] = [];
  const eng = open({ store });
  start(eng, { q: job => void begun.push(job.text()) }, { onError: e => errors.push(e) });
  await pass(t, eng, 1000);
  await eng.schedule("s", "@every 10s", "q", { payload: "x" });
  await pass(t, eng, 1000);
  const before = store.calls.length;
  store.faults.append = [new Error("gone")];
  store.faults.replace = Array.from({ length: 5 }, () => new Error("gone"));
  // Of the calls of settle the first ones fail as well.
  for (let i = 0; i < 12; i++) {
    t.mock.timers.tick(1000);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }
  assert.deepEqual(begun, []);
  assert.ok(errors.length > 0 && errors.every(e => e instanceof TickonceError && e.code === "unavailable"), String(errors));
  for (let i = 0; i < 30; i++) {
    t.mock.timers.tick(1000);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }
  await settle(t, eng);
  assert.equal(begun[0], "x");
  assert.ok(store.calls.slice(before).filter(c => c === "replace").length >= 6);
});

scenario("between tries of what fails there is a pause, ever longer", async (t, open) => {
  const store = new Faulty(), tries: number[] = [];
  store.faults.load = Array.from({ length: 6 }, () => new Error("gone"));
  const eng = open({ store });
  await assert.rejects(eng.lead());
  const { load } = store;
  store.load = () => {
    tries.push(Date.now() - epoch);
    return load.call(store);
  };
  start(eng, {}, { onError: () => {} });
  for (let ms = 0; ms <= 12_000; ms += 100) {
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
    t.mock.timers.tick(100);
  }
  assert.deepEqual(tries, [100, 200, 400, 800, 5800, 10_800]);
});

scenario("a step of a user's own in the turn in which the loop begins leaves no run out", async (t, open) => {
  const eng = open();
  await eng.lead();
  await eng.enqueue("q");
  await eng.outbox("o").enqueue();
  const begun: string[] = [];
  start(eng, { q: job => void begun.push(job.queue) }, { outboxes: { o: job => void begun.push(job.queue) } });
  t.mock.timers.tick(0);
  for (let i = 0; i < 20; i++) { // one of them is behind the loop's calls, in their turn
    await Promise.resolve();
    void eng.step();
  }
  await pass(t, eng, 1000);
  assert.deepEqual(begun, ["q", "__alkstore_outbox:o"]);
});

scenario("a lost lead aborts what is in hand, and the next one begins anew", async (t, open) => {
  const chair = new Chair(), store = memoryStore();
  const eng = open({ store, leadership: chair });
  const reasons: string[] = [];
  let begun = 0;
  start(eng, {
    q: (_, { signal }) => new Promise<void>(resolve => {
      if (++begun > 1) return resolve();
      signal.addEventListener("abort", () => {
        reasons.push((signal.reason as TickonceError).code);
        resolve();
      });
    }),
  });
  chair.give();
  await eng.enqueue("q", "", { visibilityMS: 10_000 });
  await pass(t, eng, 1000);
  assert.equal(begun, 1);
  chair.take();
  await new Promise(setImmediate);
  assert.deepEqual(reasons, ["leadership_lost"]);
  t.mock.timers.tick(1000);
  await new Promise(setImmediate);
  assert.equal(begun, 1, "one that follows begins nothing");
  chair.give();
  await pass(t, eng, 12_000);
  assert.deepEqual([begun, (await eng.queue("q")).done], [2, 1]);
});

scenario("a handler of a queue that there cannot be ends the run, and says why", async (t, open) => {
  const eng = open();
  let begun = 0;
  const run = start(eng, { q: () => void begun++, "__alkstore_x": () => {} });
  await assert.rejects(moving(t, run.done), (e: unknown) => e instanceof TickonceError && e.code === "reserved_name");
  await eng.enqueue("q");
  await pass(t, eng, 2000);
  assert.equal(begun, 0);
  start(eng, { q: () => void begun++ });
  await pass(t, eng, 1000);
  assert.equal(begun, 1);
});

scenario("a write that cannot be stored beside the start hinders no worker", async (t, open) => {
  const store = new Faulty(), errors: unknown[] = [];
  const eng = open({ store });
  await eng.lead();
  store.faults.append = [new Error("gone")];
  let begun = 0;
  start(eng, { q: () => void begun++ }, { onError: e => errors.push(e) });
  t.mock.timers.tick(0);
  await Promise.resolve(); // the loop has just asked for its workers
  await assert.rejects(eng.enqueue("q"), (e: unknown) => e instanceof TickonceError && e.code === "unavailable");
  await pass(t, eng, 2000);
  assert.deepEqual([begun, (await eng.queue("q")).done, store.calls.filter(c => c === "replace").length], [1, 1, 1]);
});

scenario("a run that ends in time has, however late the timers of the page are", async (t, open) => {
  const eng = open(), gate = new Gate();
  start(eng, { q: { handler: () => gate.promise, timeoutMS: 5000 } });
  await eng.schedule("s", "@every 1h", "q");
  await eng.trigger("s");
  await pass(t, eng, 1000);
  gate.resolve();
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  t.mock.timers.setTime(Date.now() + 60_000); // no timer has run
  await settle(t, eng);
  assert.equal((await eng.history("s").next()).value!.execution, "ok");
});

scenario("the end of a run that cannot be told while the store fails is told once it can be", async (t, open) => {
  const store = new Faulty(), gate = new Gate();
  const eng = open({ store });
  let begun = 0;
  start(eng, { q: () => ++begun === 1 ? gate.promise : undefined }, { onError: () => {} });
  await eng.enqueue("q");
  await pass(t, eng, 1000);
  store.faults.append = [new Error("gone")];
  store.faults.replace = Array.from({ length: 3 }, () => new Error("gone"));
  await assert.rejects(eng.enqueue("q"));
  gate.resolve();
  for (let i = 0; i < 20; i++) {
    t.mock.timers.tick(1000);
    for (let j = 0; j < 5; j++) await new Promise(setImmediate);
  }
  await pass(t, eng, 1000);
  assert.deepEqual([begun, (await eng.queue("q")).done, store.faults.replace.length], [2, 2, 0]);
});

scenario("the end of a run that was lost with its instance is not told to the next one", async (t, open) => {
  const store = new Faulty(), gates = [new Gate(), new Gate()];
  const eng = open({ store });
  const errors: unknown[] = [];
  let begun = 0;
  start(eng, { q: () => gates[begun++]!.promise }, { onError: e => errors.push(e) });
  await eng.enqueue("q");
  await pass(t, eng, 1000);
  store.faults.append = [new Error("gone")];
  store.faults.replace = [new StoreError("taken", "another has it")];
  await assert.rejects(eng.enqueue("q"));
  gates[0]!.resolve(); // its end meets the store that was taken
  for (let i = 0; i < 20; i++) {
    t.mock.timers.tick(100);
    for (let j = 0; j < 5; j++) await new Promise(setImmediate);
  }
  assert.equal(store.faults.replace.length, 0);
  await eng.enqueue("q");
  await pass(t, eng, 2000);
  const { done, claimed } = await eng.queue("q");
  assert.deepEqual([begun, done, claimed], [2, 0, 2]);
  assert.deepEqual(errors.map(e => (e as TickonceError).code), ["taken"]);
  gates[1]!.resolve();
});

scenario("a stop that cannot be told while the store fails is told once it can be", async (t, open) => {
  const store = new Faulty();
  const eng = open({ store });
  const run = start(eng, { q: () => {} }, { onError: () => {} });
  await pass(t, eng, 1000);
  store.faults.append = [new Error("gone")];
  store.faults.replace = Array.from({ length: 2 }, () => new Error("gone"));
  await assert.rejects(eng.enqueue("other"));
  await moving(t, run.stop());
  assert.equal(store.faults.replace.length, 0);
});

scenario("a worker that cannot be begun while the store fails is begun once it can be", async (t, open) => {
  const store = new Faulty(), gate = new Gate();
  const eng = open({ store });
  await eng.lead();
  store.gate = gate.promise;
  store.faults.append = [undefined, new Error("gone")];
  store.faults.replace = [new Error("gone")];
  const calls = [eng.enqueue("other")];
  await new Promise(setImmediate);
  let begun = 0;
  for (let i = 0; i < 255; i++) calls.push(eng.enqueue("q")); // with the runner they are a turn, and the worker is behind it
  start(eng, { q: () => void begun++ }, { onError: () => {}, concurrency: 100 });
  t.mock.timers.tick(0);
  await new Promise(setImmediate);
  gate.resolve();
  await Promise.allSettled(calls);
  await new Promise(setImmediate);
  await pass(t, eng, 2000);
  assert.deepEqual([begun, store.faults.replace.length], [255, 0]);
});

scenario("one that follows can be stopped, and closed", async (t, open) => {
  const run = start(open({ leadership: new Chair() }), {});
  await new Promise(setImmediate);
  await moving(t, run.stop());

  const chair = new Chair();
  const eng = open({ leadership: chair });
  start(eng, { q: () => {} });
  chair.give();
  await pass(t, eng, 1000);
  chair.take();
  await moving(t, eng.close());
});

scenario("a stop that cannot be stored is given up, and says why", async (t, open) => {
  const store = new Faulty(), gate = new Gate();
  const eng = open({ store });
  const run = start(eng, { q: () => gate.promise }, { onError: () => {} });
  await eng.enqueue("q");
  await pass(t, eng, 1000);
  store.faults.append = Array.from({ length: 99 }, () => new Error("gone"));
  store.faults.replace = Array.from({ length: 99 }, () => new Error("gone"));
  gate.resolve(); // what ends can be stored no more
  const begun = Date.now();
  await assert.rejects(moving(t, run.stop()), (e: unknown) => e instanceof TickonceError && e.code === "unavailable");
  assert.ok(Date.now() - begun <= 25_000, "its time is 15 s, and the next try");
});

scenario("after a trap the work goes on with the state of the store", async (t, open) => {
  const errors: unknown[] = [];
  const eng = open({ store: memoryStore() });
  let begun = 0;
  start(eng, { q: () => void begun++ }, { onError: e => errors.push(e) });
  await eng.schedule("s", "@every 2s", "q");
  await pass(t, eng, 3000);
  assert.equal(begun, 1);
  trapNext("tk_step");
  await pass(t, eng, 4000);
  assert.equal(begun, 3);
  assert.deepEqual(errors.map(e => (e as TickonceError).code), ["internal"], "told once");
});

// Calls: 1 begins the runner, 2 and 3 the workers, 4 comes in the same turn.
for (const nth of [1, 2, 3, 4]) {
  scenario(`after a trap in call ${nth} of the beginning all is begun once, in the next instance`, async (t, open) => {
    const errors: unknown[] = [], gate = new Gate();
    let inHand = 0, most = 0;
    const eng = open({ store: memoryStore() });
    await eng.lead();
    await eng.schedule("s", "@every 1s", "a");
    const { session } = eng, { call } = session;
    let first = true;
    t.mock.method(session, "call", function (this: typeof session, ...args: Parameters<typeof call>) {
      const answer = call.apply(this, args);
      if (first && args[0] === "work" && (args[1] as { queue: string }).queue === "b") {
        first = false;
        call.call(this, "lookup", { name: "s" }).catch(() => {});
      }
      return answer;
    });
    const handler = async () => {
      most = Math.max(most, ++inHand);
      await gate.promise;
      inHand--;
    };
    trapNext("tk_call", nth);
    const run = start(eng, { a: handler, b: handler }, { onError: e => errors.push(e) });
    await pass(t, eng, 3000);
    for (let i = 0; i < 3; i++) await eng.enqueue("b");
    await pass(t, eng, 3000);
    assert.deepEqual(errors.map(e => (e as TickonceError).code), ["internal"], "told once");
    assert.equal(most, 2, "one of each queue");
    gate.resolve();
    await pass(t, eng, 2000);
    assert.equal((await eng.queue("a")).pending, 0);
    await moving(t, run.stop());
  });
}

scenario("whatever a handler throws fails its job, and nothing else", async (t, open) => {
  const errors: unknown[] = [];
  const eng = open();
  const revoked = Proxy.revocable(new Error("x"), {});
  revoked.revoke();
  const thrown = [
    Object.assign(new Error("x"), { message: 5n }),
    Object.assign(new Error("x"), { message: { text: 1 } }),
    Object.defineProperty(new Error("cause"), "cause", { get() { throw new Error("of a getter"); } }),
    revoked.proxy,
    Symbol("s"), Object.create(null), undefined, "\ud800",
  ];
  start(eng, { q: job => { throw thrown[job.json<number>()]; } }, { onError: e => errors.push(e) });
  for (const i of thrown.keys()) await eng.enqueue("q", i, { maxAttempts: 1 });
  await pass(t, eng, 2000);
  assert.deepEqual(errors, []);
  const said = [];
  for await (const job of eng.dead("q")) said.push(job.lastError);
  assert.deepEqual(said, ["5", "[object Object]", "cause", "an error without a text", "Symbol(s)", "an error without a text", "undefined", "\ufffd"]);
});

scenario("closing an engine stops what was started: what is in hand ends, and its end is stored", async (t, open) => {
  const store = memoryStore(), gate = new Gate();
  const eng = open({ store });
  let told = false, closed = false;
  const run = start(eng, { q: (_, { signal }) => {
    signal.addEventListener("abort", () => (told = true));
    return gate.promise;
  } });
  await eng.enqueue("q");
  await pass(t, eng, 1000);
  const closing = eng.close().then(() => (closed = true));
  await pass(t, eng, 2000);
  assert.deepEqual([told, closed], [false, false]);
  gate.resolve();
  await moving(t, closing);
  await run.done;
  assert.equal((await open({ store }).queue("q")).done, 1);
});
