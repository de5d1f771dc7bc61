import assert from "node:assert/strict";
import { test } from "node:test";

import { Engine } from "../src/engine.js";
import { StoreError, TickonceError } from "../src/errors.js";
import { LocalHost } from "../src/host.js";
import type { Host } from "../src/host.js";
import { start } from "../src/start.js";
import { memoryStore } from "../src/stores/memory.js";
import type { Call } from "../src/leadership.js";
import type { Store } from "../src/store.js";
import { module } from "./guest.js";
import { Chair, Faulty, Gate, open, trapNext } from "./rig.js";

const refused = (code: string, message = /./) => (error: unknown) => {
  assert.ok(error instanceof TickonceError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, message);
  return true;
};

async function all<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const found = [];
  for await (const row of rows) found.push(row);
  return found;
}

test("a schedule is read back as it was written, with its options resolved", async () => {
  await using eng = open();
  const written = await eng.schedule("report", "@every 5m", "mail", {
    payload: { to: "ops" }, anchor: new Date(1000), catchUp: "none", overlap: "skip", activeHours: { from: "09:00", to: "17:00" },
  });
  assert.deepEqual(await eng.lookup("report"), written);
  assert.deepEqual(written.payload, new TextEncoder().encode('{"to":"ops"}'));
  assert.deepEqual(written.options, {
    visibilityMS: 300_000, maxAttempts: 3, baseBackoffMS: 60_000, priority: 0, expiresMS: 0, anchor: 1000, overlap: "skip",
    activeHours: { from: "09:00", to: "17:00", zone: "UTC" }, runOnce: false, breaker: 3, timeoutMS: 0,
    catchUp: { windowMS: 10_000, count: 1, newest: true },
  });
  assert.equal(await eng.lookup("other"), undefined);
  assert.equal(await eng.pause("report"), true);
  assert.equal(await eng.pause("report"), false);
  assert.equal((await eng.lookup("report"))!.paused, "user");
  assert.equal(await eng.resume("report", { catchUp: true }), true);
  assert.equal(await eng.unschedule("report"), true);
  assert.equal(await eng.unschedule("report"), false);
});

test("pages are read until their end", async () => {
  await using eng = open();
  const names = Array.from({ length: 401 }, (_, i) => `s${String(i).padStart(3, "0")}`);
  await eng.tx().commit();
  await Promise.all(names.map(name => eng.schedule(name, "@every 1h", `q${name}`)));
  await Promise.all(names.map(name => eng.trigger(name)));
  assert.deepEqual((await all(eng.schedules())).map(s => s.name), names);
  assert.deepEqual((await all(eng.queues())).map(q => q.name), names.map(name => `q${name}`));
  await Promise.all(names.map(() => eng.enqueue("dying")));
  for (const job of await eng.claim("dying", { worker: "w", max: 1000 })) await eng.fail(job, new Error("no"));
  const dead = await all(eng.dead("dying"));
  assert.equal(dead.length, names.length);
  assert.ok(dead.every((d, i) => d.lastError === "no" && (i === 0 || d.id > dead[i - 1]!.id)));
});

test("payloads are bytes, texts or JSON", async () => {
  await using eng = open();
  for (const [payload, text] of [[new Uint8Array([0x68, 0x69]), "hi"], ["grüße", "grüße"], [{ a: [1, null] }, '{"a":[1,null]}'], [0, "0"], [undefined, ""]] as const) {
    await eng.enqueue("q", payload);
    const [job] = await eng.claim("q", { worker: "w" });
    assert.equal(job!.text(), text);
  }
  const large = crypto.getRandomValues(new Uint8Array(60_000));
  await eng.enqueue("q", large);
  const [job] = await eng.claim("q", { worker: "w" });
  assert.deepEqual(job!.payload, large);
  assert.throws(() => job!.text(), TypeError);
});

test("a claim is settled once", async () => {
  await using eng = open();
  const id = await eng.enqueue("q", { n: 1 });
  const [job] = await eng.claim("q", { worker: "w" });
  assert.deepEqual([job!.id, job!.attempt, job!.maxAttempts, job!.json()], [id, 1, 3, { n: 1 }]);
  assert.ok((await eng.heartbeat(job!, 600_000)) > job!.deadline!);
  await eng.retry(job!, new Error("later"), { afterMS: 0 });
  await assert.rejects(eng.fail(job!, "no"), refused("claim_lost"));
  const [again] = await eng.claim("q", { worker: "w" });
  assert.deepEqual([again!.attempt, again!.lastError], [2, "later"]);
  assert.deepEqual(await eng.ack(again!, job!), [true, false]);
  const info = await eng.queue("q");
  assert.deepEqual([info.done, info.retried, info.pending, info.nextClaimAt], [1, 1, 0, undefined]);
});

test("dead jobs are requeued and purged, live ones cancelled", async () => {
  await using eng = open();
  await Promise.all([eng.enqueue("q"), eng.enqueue("q"), eng.enqueue("q")]);
  const [a, b, c] = await eng.claim("q", { worker: "w", max: 3 });
  await eng.fail(a!, "x");
  await eng.fail(b!, "y");
  assert.equal(await eng.cancel("q", c!.id), true);
  assert.equal(await eng.cancel("q", c!.id), false);
  assert.equal(await eng.requeue("q", a!.id), 4);
  await eng.purge("q", b!.id);
  assert.deepEqual(await all(eng.dead("q")), []);
  assert.equal(await eng.sweep("q"), 0);
  assert.ok((await eng.nextClaimAt("q"))! <= Date.now());
  await assert.rejects(eng.requeue("q", 99), refused("not_found"));
});

test("a transaction is done whole or not at all", async () => {
  await using eng = open();
  await eng.enqueue("q");
  const [job] = await eng.claim("q", { worker: "w" });
  const planned = await eng.tx().enqueue("next", 1).plan();
  assert.equal(planned[0]!.job, undefined);
  await assert.rejects(eng.tx().enqueue("next", 1).pause("").commit(), refused("invalid_name", /op 1, pause/));
  assert.equal((await eng.queue("next")).enqueued, 0);
  const [, enqueued, scheduled] = await eng.tx().ack(job!).enqueue("next", 1).schedule("s", "@every 1h", "q").deliver("out", 2).commit();
  assert.equal(enqueued!.job, 2);
  assert.equal(scheduled!.schedule!.name, "s");
  assert.equal((await eng.outbox("out").info()).pending, 1);
  await assert.rejects(eng.tx().ack(job!).commit(), refused("claim_lost"));
});

test("a transaction has what was put into it, whatever becomes of the options", async () => {
  await using eng = open();
  const enqueue = { key: "once" }, deliver = { key: "once" }, hours = { activeHours: { from: "08:00", to: "09:00" } };
  const tx = eng.tx().enqueue("q", 1, enqueue).enqueue("q", 2, enqueue).deliver("out", 1, deliver).deliver("out", 2, deliver)
    .schedule("s", "@every 1h", "q", hours);
  [enqueue.key, deliver.key, hours.activeHours.from] = ["", "", "00:00"];
  const entry = eng.outbox("out").enqueue(3, Object.assign(deliver, { key: "other" }));
  deliver.key = "once";
  await tx.commit();
  await entry;
  assert.deepEqual([(await eng.queue("q")).pending, (await eng.outbox("out").info()).pending], [1, 2]);
  assert.equal((await eng.lookup("s"))!.options.activeHours!.from, "08:00");
});

test("a transaction is committed once, and takes nothing behind that", async () => {
  await using eng = open();
  const tx = eng.tx().enqueue("q");
  await tx.plan();
  const committed = tx.commit();
  assert.throws(() => tx.enqueue("late"), refused("tx_done"));
  assert.equal((await committed).length, 1);
  await assert.rejects(tx.commit(), refused("tx_done"));
  await assert.rejects(tx.plan(), refused("tx_done"));
  assert.equal((await eng.queue("q")).enqueued, 1);

  const failed = eng.tx().pause("");
  await assert.rejects(failed.commit(), refused("invalid_name"));
  assert.throws(() => failed.enqueue("late"), refused("tx_done"));
});

test("a transaction reads what its ops have left, and is in conflict with what has changed since it was read", async () => {
  await using eng = open();
  assert.equal(await eng.lookup("s"), undefined);
  const create = () => eng.tx().unchanged("s", undefined).schedule("s", "@every 1h", "q", { payload: "first", activeHours: { from: "09:00", to: "17:00" } });
  const [, , found] = await create().lookup("s").plan();
  assert.equal(new TextDecoder().decode(found!.schedule!.payload), "first");
  await create().commit();
  await assert.rejects(create().commit(), refused("conflict"));

  const seen = await eng.lookup("s");
  const move = () => eng.tx().unchanged("s", seen).schedule("s", "@every 2h", "q").enqueue("moved");
  await move().commit();
  await assert.rejects(move().commit(), refused("conflict"));
  assert.equal((await eng.queue("moved")).enqueued, 1);
});

test("who waits for the lead may cease to, and the engine goes on", async () => {
  const chair = new Chair();
  await using eng = open({ leadership: chair });
  const enough = new AbortController();
  const waiting = assert.rejects(eng.lead({ signal: enough.signal }), /enough/);
  enough.abort(new Error("enough"));
  await waiting;
  await assert.rejects(eng.lead({ signal: enough.signal }), /enough/);
  chair.give();
  await eng.lead({ signal: new AbortController().signal });
  assert.equal(eng.leading, true);
});

test("a lock is one owner's at a time", async () => {
  await using eng = open();
  const lock = await eng.lock("l", { owner: "a", forMS: 60_000 });
  assert.equal(await eng.lock("l", { owner: "b", forMS: 60_000 }), undefined);
  const until = lock!.expiresAt;
  assert.equal(await lock!.renew(120_000), true);
  assert.ok(lock!.expiresAt > until);
  assert.equal(await lock!.release(), true);
  assert.equal(await lock!.release(), false);
  assert.ok((await eng.lock("l", { owner: "b", forMS: 60_000 }))!.term > lock!.term);
});

test("a host may step by itself, and ask why", async () => {
  await using eng = open();
  const boundary = (await eng.schedule("s", "@every 1h", "q")).next!;
  const { next, fired } = await eng.step();
  assert.deepEqual(fired, []);
  assert.ok(next! <= boundary);
  const why = await eng.why("s", boundary);
  assert.equal(why.kind, "not_yet");
  assert.notEqual(why.text, "");
  assert.deepEqual((await eng.totals("s")).skipped, { pause: 0, hours: 0, policy: 0, overlap: 0, cap: 0, missed: 0, before: 0 });
});

test("a snapshot opens an engine of the same state, without a store and with one", async () => {
  await using eng = open();
  await eng.enqueue("q", "kept");
  const snapshot = await eng.snapshot();
  for (const store of [undefined, memoryStore()]) {
    await using copy = open({ snapshot, store });
    assert.equal((await copy.queue("q")).pending, 1);
    await copy.close();
    if (store) {
      await using again = open({ store, snapshot: new Uint8Array() });
      assert.equal((await again.queue("q")).pending, 1, "what the store has counts");
    }
  }
});

test("nothing is told before it is stored", async () => {
  const store = new Faulty();
  const events: string[] = [];
  await using eng = open({ store, onEvent: e => events.push(e.kind) });
  await eng.lead();
  const gate = new Gate();
  store.gate = gate.promise;
  const handled = new Gate<string>();
  let told = false;
  const enqueued = eng.enqueue("q", "x").then(() => (told = true));
  start(eng, { q: job => handled.resolve(job.text()) });
  await new Promise(setImmediate);
  assert.deepEqual([told, events, store.calls], [false, [], ["load"]]);
  gate.resolve();
  await enqueued;
  assert.equal(await handled.promise, "x");
  assert.ok(store.calls.includes("append"));
});

test("calls of one tick are stored together", async () => {
  const store = new Faulty();
  await using eng = open({ store });
  await Promise.all([eng.enqueue("q"), eng.enqueue("q"), eng.enqueue("q"), eng.queue("q")]);
  assert.deepEqual(store.calls, ["load", "append"]);
});

test("what could not be stored is withheld until the state is", async () => {
  const store = new Faulty();
  const events: string[] = [];
  await using eng = open({ store, onEvent: e => events.push(e.kind) });
  await eng.lead();
  store.faults.append = [new StoreError("full", "no room")];
  store.faults.replace = [new Error("still none")];
  await assert.rejects(eng.enqueue("q"), (e: unknown) => e instanceof StoreError && refused("full", /no room/)(e));
  assert.deepEqual(events, []);
  await assert.rejects(eng.queue("q"), (e: unknown) => e instanceof StoreError && refused("unavailable", /still none/)(e));
  assert.deepEqual(events, []);
  assert.equal((await eng.queue("q")).pending, 1, "it has happened after all");
  assert.deepEqual(events, ["enqueued"]);
  assert.deepEqual(store.calls, ["load", "append", "replace", "replace"]);
  await eng.enqueue("q");
  await using again = open({ store });
  assert.equal((await again.queue("q")).pending, 2);
});

test("a store that cannot load is asked again by the next call, and the lead is given up meanwhile", async () => {
  const store = new Faulty(), chair = new Chair();
  store.faults.load = [new Error("locked")];
  await using eng = open({ store, leadership: chair });
  const first = eng.enqueue("q");
  chair.give();
  await assert.rejects(first, refused("unavailable", /cannot load the state: locked/));
  assert.equal(chair.released, 1);
  const second = eng.enqueue("q");
  await new Promise(setImmediate);
  chair.give();
  assert.equal(await second, 1);
});

test("what a store has and is no state is damaged", async () => {
  const inner = memoryStore();
  {
    await using eng = open({ store: inner });
    await eng.enqueue("q");
    await eng.enqueue("q");
  }
  const log = (await inner.load()).log!;
  log[20]! ^= 1;
  for (const [stored, message] of [
    [{ snapshot: new Uint8Array([1, 2, 3]) }, /cannot be read: snapshot is damaged/],
    [{ log }, /cannot be read: journal is damaged/],
    [{ snapshot: "text" as unknown as Uint8Array }, /is no Uint8Array/],
  ] as const) {
    await using eng = open({ store: { ...memoryStore(), load: async () => stored } });
    await assert.rejects(eng.queues().next(), refused("damaged", message));
  }
});

test("nothing is appended behind a torn record", async () => {
  const inner = memoryStore();
  {
    await using eng = open({ store: inner });
    await eng.enqueue("q");
    await eng.enqueue("q");
  }
  const { log } = await inner.load();
  const store = new Faulty();
  store.load = async () => ({ log: log!.slice(0, -1) });
  await using eng = open({ store });
  assert.equal((await eng.queue("q")).pending, 1);
  assert.deepEqual(store.calls, ["replace"]);
});

test("a snapshot takes the place of a long log, and a failure of that is none of the call", async () => {
  const store = new Faulty();
  await using eng = open({ store });
  store.faults.replace = [new StoreError("full", "no room")];
  const payload = new Uint8Array(600_000);
  for (let i = 0; i < 5; i++) {
    const id = await eng.enqueue("q", payload);
    await eng.cancel("q", id);
  }
  const replaced = store.calls.filter(c => c === "replace").length;
  assert.equal(replaced, 2, "once in vain at 1 MiB, once at twice as much");
});

test("a handle that breaks is opened anew from the store", async () => {
  const store = memoryStore();
  const told: boolean[] = [];
  await using eng = open({ store, onLeading: leading => told.push(leading) });
  await eng.enqueue("q", "before");
  trapNext("tk_call");
  await assert.rejects(eng.enqueue("q", "lost"), refused("internal", /trapped/));
  assert.equal((await eng.queue("q")).pending, 1);
  assert.deepEqual(told, [true, false, true]);
});

test("a guest that breaks while the store fails is opened anew, without what was withheld", async () => {
  const store = new Faulty();
  await using eng = open({ store });
  await eng.enqueue("q");
  store.faults.append = [new StoreError("full", "no room")];
  await assert.rejects(eng.enqueue("q"), refused("full"));
  trapNext("tk_snapshot");
  await assert.rejects(eng.queue("q"), refused("internal", /trapped/));
  assert.equal((await eng.queue("q")).pending, 1);
});

test("calls of the same turn, before a fault and behind it, are done", async () => {
  await using eng = open({ store: memoryStore() });
  await eng.lead();
  const calls = Promise.allSettled([eng.enqueue("q"), eng.queue("other"), eng.enqueue("q", "behind")]);
  trapNext("tk_call", 2);
  assert.deepEqual((await calls).map(c => c.status), ["fulfilled", "rejected", "fulfilled"]);
  assert.equal((await eng.queue("q")).pending, 2);
});

test("a handle that breaks without a store ends the engine", async () => {
  await using eng = open();
  await eng.lead();
  trapNext("tk_call");
  await assert.rejects(eng.enqueue("q"), refused("internal"));
  await assert.rejects(eng.queue("q"), refused("closed", /no store to open it from/));
});

test("one that follows asks the one that leads, and works once it leads itself", async () => {
  const calls: Call[] = [];
  const chair = new Chair();
  let leads = new AbortController().signal;
  const leadership = {
    acquire: (signal: AbortSignal) => chair.acquire(signal),
    ask: (call: Call, signal?: AbortSignal) => {
      calls.push(call);
      leads = signal!;
      if (call.op === "enqueue") return Promise.resolve({ job: 7 });
      return new Promise((_, reject) => signal!.addEventListener("abort", () => reject(signal!.reason)));
    },
  };
  await using eng = open({ leadership });
  assert.equal(eng.leading, false);
  assert.equal(await eng.enqueue("q", "x"), 7);
  const here = eng.queue("q");
  await new Promise(setImmediate);
  chair.give();
  assert.equal((await here).pending, 0);
  assert.equal(leads.aborted, true);
  assert.equal(eng.leading, true);
  await eng.enqueue("q");
  assert.deepEqual(calls.map(c => c.op), ["enqueue", "queue"]);
});

test("what one that follows has asked goes on when the lead is lost before its state is loaded", async () => {
  const chair = new Chair(), gate = new Gate(), inner = memoryStore();
  const store: Store = { ...inner, load: () => gate.promise.then(() => inner.load()) };
  const leadership = {
    acquire: (signal: AbortSignal) => chair.acquire(signal),
    ask: (_: Call, signal?: AbortSignal) =>
      new Promise((_, reject) => signal!.addEventListener("abort", () => reject(signal!.reason))),
  };
  await using eng = open({ store, leadership });
  chair.give();
  await new Promise(setImmediate);
  const asked = eng.queue("q");
  chair.take();
  await new Promise(setImmediate);
  gate.resolve();
  await new Promise(setImmediate);
  chair.give();
  assert.equal((await asked).pending, 0);
});

test("one that follows keeps nothing of its calls that are answered", async () => {
  const leadership = { acquire: () => new Promise<never>(() => {}), ask: async () => ({ job: 7 }) };
  const { session } = open({ leadership });
  const leading = session.lead(), { then } = leading;
  let waiting = 0;
  Object.assign(leading, { then: (...args: Parameters<typeof then>) => (waiting++, then.apply(leading, args)) });
  for (let i = 0; i < 10; i++) await session.call("enqueue", { queue: "q" });
  assert.equal(waiting, 0);
});

test("one that leads answers those that follow, but for what is its own", async () => {
  const served = new Gate<(call: Call) => Promise<unknown>>();
  await using eng = open({ leadership: { acquire: async () => ({ release() {}, lost: new Promise(() => {}), serve: served.resolve }) } });
  const answer = await served.promise;
  await answer({ op: "enqueue", request: { queue: "q", payload: "aGk=" } });
  const begun = (await answer({ op: "claim", request: { queue: "q", worker: "w" } })) as { payload: Uint8Array }[];
  assert.deepEqual(structuredClone(begun)[0]!.payload, new Uint8Array([0x68, 0x69]));
  assert.ok((await answer({ op: "snapshot", request: {} })) instanceof Uint8Array);
  for (const op of ["start", "end", "step", "toString", "other"]) {
    await assert.rejects(answer({ op, request: {} }), refused("invalid_request", /no call/));
  }
  await assert.rejects(answer({ op: "enqueue", request: { queue: 3 } }), refused("invalid_request"));
  assert.equal((await eng.queue("q")).claimed, 1);
});

test("a lost lead leaves what was asked unknown, and hands out nothing", async () => {
  const store = new Faulty(), chair = new Chair(), gate = new Gate();
  const events: string[] = [], told: boolean[] = [];
  await using eng = open({ store, leadership: chair, onEvent: e => events.push(e.kind), onLeading: l => told.push(l) });
  chair.give();
  await eng.lead();
  store.gate = gate.promise;
  const asked = eng.enqueue("q");
  await new Promise(setImmediate);
  chair.take();
  await new Promise(setImmediate);
  gate.resolve();
  await assert.rejects(asked, refused("leadership_lost", /not known/));
  assert.deepEqual([events, told, eng.leading, chair.waiting.length], [[], [true, false], false, 1]);
  const later = eng.queue("q");
  chair.give();
  assert.equal((await later).pending, 1, "it was stored, this time");
});

test("what was asked by one that follows ends with the term, and is not done later", async () => {
  const chair = new Chair(), store = new Faulty(), gate = new Gate(), served = new Gate<(call: Call) => Promise<unknown>>();
  await using eng = open({ store, leadership: {
    acquire: async signal => ({ ...(await chair.acquire(signal)), serve: served.resolve }),
  } });
  chair.give();
  const answer = await served.promise;
  store.gate = gate.promise;
  const first = eng.enqueue("q");
  await new Promise(setImmediate);
  const asked = answer({ op: "enqueue", request: { queue: "q" } });
  chair.take();
  await assert.rejects(asked, refused("leadership_lost"));
  gate.resolve();
  await assert.rejects(first, refused("leadership_lost"));
  chair.give();
  assert.equal((await eng.queue("q")).pending, 1, "the first was stored, the other was not begun");
});

test("who finds the state taken over does not lead any more", async () => {
  const store = new Faulty(), chair = new Chair();
  await using eng = open({ store, leadership: chair });
  chair.give();
  await eng.lead();
  store.faults.append = [new StoreError("taken", "another has it")];
  await assert.rejects(eng.enqueue("q"), refused("taken"));
  assert.deepEqual([eng.leading, chair.released], [false, 1]);
  const later = eng.queue("q");
  await new Promise(setImmediate);
  chair.give();
  assert.equal((await later).pending, 0);
});

test("of two engines that share a store only the one that loaded it last writes to it", async () => {
  let closed = 0;
  const store: Store = { ...memoryStore(), close: async () => void closed++ };
  const first = open({ store });
  await first.enqueue("q");
  const second = open({ store });
  assert.equal((await second.queue("q")).pending, 1, "it has loaded what the first had stored");
  await assert.rejects(first.enqueue("q"), refused("taken", /another engine has loaded the same store since/));
  assert.equal(first.leading, false);
  await second.enqueue("q");
  await first.close();
  assert.equal(closed, 0, "the other has it");
  await second.enqueue("q");
  await second.close();
  assert.equal(closed, 1);
  await using third = open({ store });
  assert.equal((await third.queue("q")).pending, 3);
});

test("what was asked by one that follows is not done later, either, when the state is taken over", async () => {
  const chair = new Chair(), store = new Faulty(), gate = new Gate(), served = new Gate<(call: Call) => Promise<unknown>>();
  await using eng = open({ store, leadership: {
    acquire: async signal => ({ ...(await chair.acquire(signal)), serve: served.resolve }),
  } });
  chair.give();
  const answer = await served.promise;
  store.gate = gate.promise;
  store.faults.append = [new StoreError("taken", "another has it")];
  const first = assert.rejects(eng.enqueue("q"), refused("taken"));
  await new Promise(setImmediate);
  const asked = assert.rejects(answer({ op: "enqueue", request: { queue: "q" } }), refused("leadership_lost"));
  gate.resolve();
  await Promise.all([first, asked]);
  const later = eng.queue("q");
  await new Promise(setImmediate);
  chair.give();
  assert.equal((await later).pending, 0);
});

test("what an instance has done that was given up meanwhile is not stored, and the next load waits for its end", async () => {
  const chair = new Chair(), store = new Faulty(), host = new LocalHost(module);
  let gate = new Gate();
  gate.resolve();
  let running = false;
  const slow: Host = {
    open: async (...args) => {
      assert.equal(running, false);
      const instance = await host.open(...args);
      return {
        close: () => instance.close(),
        run: async asks => {
          const answers = await instance.run(asks);
          running = true;
          await gate.promise;
          running = false;
          return answers;
        },
      };
    },
    setTimer: (call, ms) => host.setTimer(call, ms),
    clearTimer: timer => host.clearTimer(timer),
  };
  await using eng = new Engine(slow, { store, leadership: chair });
  chair.give();
  await eng.lead();
  gate = new Gate();
  const asked = assert.rejects(eng.enqueue("q"), refused("leadership_lost"));
  await new Promise(setImmediate);
  assert.equal(running, true);
  chair.take();
  await new Promise(setImmediate);
  chair.give();
  await new Promise(setImmediate);
  assert.deepEqual(store.calls, ["load"]);
  gate.resolve();
  await asked;
  assert.equal((await eng.queue("q")).pending, 0);
  assert.deepEqual(store.calls, ["load", "load"]);
});

test("who is closed as it loads gives the store back once it has loaded", async () => {
  const calls: string[] = [], gate = new Gate();
  const { load, append, replace } = memoryStore();
  const eng = open({ store: {
    append, replace,
    load: async () => {
      calls.push("load");
      await gate.promise;
      calls.push("loaded");
      return load();
    },
    close: async () => void calls.push("close"),
  } });
  await new Promise(setImmediate);
  const closed = eng.close();
  await new Promise(setImmediate);
  gate.resolve();
  await closed;
  assert.deepEqual(calls, ["load", "loaded", "close"]);
  await assert.rejects(eng.lead(), refused("closed"));
});

test("a closed engine refuses everything, and has given up all it had", async () => {
  const store = new Faulty(), chair = new Chair();
  const eng = open({ store, leadership: chair });
  const waiting = eng.enqueue("q");
  const closed = eng.close();
  void eng.close();
  await assert.rejects(waiting, refused("closed"));
  await closed;
  await eng.close();
  await assert.rejects(eng.enqueue("q"), refused("closed"));
  await assert.rejects(eng.schedules().next(), refused("closed"));
  assert.deepEqual(store.calls, ["close"]);

  const other = open({ store: new Faulty(), leadership: chair });
  chair.waiting.shift();
  chair.give();
  await other.lead();
  await other.close();
  assert.equal(chair.released, 1);
});

test("calls that wait are refused by a close at once, whatever the store does", async () => {
  const store = new Faulty(), gate = new Gate();
  const eng = open({ store });
  await eng.lead();
  store.gate = gate.promise;
  const storing = eng.enqueue("q");
  await new Promise(setImmediate);
  let refusal: unknown;
  eng.enqueue("q").catch(error => (refusal = error));
  const closed = eng.close();
  await new Promise(setImmediate);
  assert.ok(refused("closed")(refusal));
  gate.resolve();
  assert.equal(await storing, 1);
  await closed;
});

test("what a callback throws is its own affair", async t => {
  t.mock.method(console, "error", () => {});
  await using eng = open({ onEvent: () => { throw new Error("of the callback"); } });
  assert.equal(await eng.enqueue("q"), 1);
});
