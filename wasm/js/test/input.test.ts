// What is handed over and is not what it should be.
import assert from "node:assert/strict";
import { test } from "node:test";

import type { Engine } from "../src/engine.js";
import { TickonceError } from "../src/errors.js";
import { start } from "../src/start.js";
import { memoryStore } from "../src/stores/memory.js";
import { open } from "./rig.js";

// The calls as JavaScript has them, without their types.
type Loose = { [name: string]: (...args: unknown[]) => any };

const wrong: [string, (eng: Loose) => unknown, RegExp][] = [
  ["an option that is not known", e => e["schedule"]!("s", "@every 1s", "q", { colour: 1 }), /^options has no "colour", want any of payload, visibilityMS/],
  ["an option of Object's", e => e["enqueue"]!("q", "", { toString: 1 }), /^options has no "toString"/],
  ["options that are a number", e => e["schedule"]!("s", "@every 1s", "q", 5), /^options is 5, want an object$/],
  ["options that are null", e => e["enqueue"]!("q", "", null), /^options is null, want an object$/],
  ["a name that is a number", e => e["schedule"]!(5, "@every 1s", "q"), /^name is 5, want a string$/],
  ["no spec", e => e["schedule"]!("s"), /^spec is undefined, want a string$/],
  ["a duration in words", e => e["enqueue"]!("q", "", { delayMS: "5s" }), /^options.delayMS is "5s", want whole milliseconds$/],
  ["a duration of NaN", e => e["enqueue"]!("q", "", { delayMS: NaN }), /^options.delayMS is NaN/],
  ["half a priority", e => e["enqueue"]!("q", "", { priority: 0.5 }), /^options.priority is 0.5, want a whole number$/],
  ["an invalid Date", e => e["enqueue"]!("q", "", { runAt: new Date("never") }), /^options.runAt is an invalid Date/],
  ["a policy that there is not", e => e["schedule"]!("s", "@every 1s", "q", { catchUp: "some" }), /^options.catchUp is "some", want one of all, latest, grace, none$/],
  ["a policy with an unknown field", e => e["schedule"]!("s", "@every 1s", "q", { catchUp: { most: 1 } }), /^options.catchUp has no "most"/],
  ["an overlap that there is not", e => e["schedule"]!("s", "@every 1s", "q", { overlap: "queue" }), /want one of allow, skip, buffer_one$/],
  ["a flag that is a number", e => e["schedule"]!("s", "@every 1s", "q", { runOnce: 1 }), /^options.runOnce is 1, want true or false$/],
  ["a payload that is a function", e => e["enqueue"]!("q", () => 1), /^payload is a function, want a Uint8Array/],
  ["a payload that is a bigint", e => e["enqueue"]!("q", 1n), /^payload is no value that JSON has/],
  ["a payload in a circle", e => { const o: Record<string, unknown> = {}; o["o"] = o; return e["enqueue"]!("q", o); }, /^payload is no value that JSON has/],
  ["a claim that is none", e => e["ack"]!({ id: 1 }), /^the claim has no id and attempt/],
  ["no claim at all", e => e["fail"]!(undefined, "x"), /^the claim has no id and attempt/],
  ["jobs that are texts", e => e["purge"]!("q", "1"), /^jobs\[0\] is "1", want a whole number$/],
  ["an unknown option of claim", e => e["claim"]!("q", { worker: "w", n: 2 }), /^options has no "n", want any of worker, max$/],
  ["a claim of nobody", e => e["claim"]!("q", {}), /^options has no worker, which is needed$/],
  ["a claim without options", e => e["claim"]!("q"), /^options is undefined, want an object with worker$/],
  ["a lock of nobody", e => e["lock"]!("l", { forMS: 1000 }), /^options has no owner, which is needed$/],
  ["a lock for ever", e => e["lock"]!("l", { owner: "o" }), /^options has no forMS, which is needed$/],
  ["half of the active hours", e => e["schedule"]!("s", "@every 1s", "q", { activeHours: { from: "09:00" } }), /^options.activeHours has no to, which is needed$/],
  ["a window that stands for nothing", e => e["schedule"]!("s", "@every 1s", "q", { catchUp: { windowMS: -3 } }), /^options.catchUp.windowMS is -3, want whole milliseconds, or -1 or -2$/],
  ["half a surrogate pair", e => e["enqueue"]!("q", "", { key: "\ud800" }), /^options.key is "\\ud800", want a text without half a surrogate pair/],
  ["a schedule that was seen and is none", e => e["tx"]!()["unchanged"]!("s", { name: "s" }), /^seen is an object, want a schedule as lookup answers it, or undefined$/],
  ["a wait with something else than a signal", e => e["lead"]!({ signal: 5 }), /^options.signal is no AbortSignal$/],
  ["a step that is less than none", e => e["step"]!({ max: -1 }), /^options.max is -1, want a whole number from 0 to 2147483647$/],
  ["a step that would wrap", e => e["step"]!({ max: 2 ** 32 + 1 }), /^options.max is 4294967297, want/],
  ["a boundary that is no instant", e => e["why"]!("s", "today"), /^boundary is "today", want milliseconds since the epoch, or a Date$/],
];

for (const [what, call, message] of wrong) {
  test(`${what} is a TypeError that says what is allowed`, async () => {
    await using eng = open();
    await assert.rejects(async () => call(eng as unknown as Loose), (e: unknown) => e instanceof TypeError && message.test(e.message) || assert.fail(String(e)));
    assert.equal((await eng.queues().next()).done, true, "nothing was written");
  });
}

const refused: [string, (eng: Engine) => Promise<unknown>, string][] = [
  ["cron", e => e.schedule("s", "*/5 * * * *", "q"), "invalid_spec"],
  ["a reserved name", e => e.schedule("__alkstore_x", "@every 1s", "q"), "reserved_name"],
  ["an empty queue", e => e.enqueue(""), "invalid_name"],
  ["a negative delay", e => e.enqueue("q", "", { delayMS: -1 }), "invalid_option"],
  ["a zone that is not there", e => e.schedule("s", "@every 1s", "q", { activeHours: { from: "09:00", to: "10:00", zone: "Europe/Berlin" } }), "invalid_option"],
  ["a payload above the limit", e => e.enqueue("q", new Uint8Array((1 << 20) + 1)), "limit"],
  ["no worker", e => e.claim("q", { worker: "" }), "invalid_worker"],
];

for (const [what, call, code] of refused) {
  test(`${what} is refused as ${code}`, async () => {
    await using eng = open();
    await assert.rejects(call(eng), (e: unknown) => e instanceof TickonceError && e.code === code || assert.fail(`${e}`));
    assert.equal((await eng.queues().next()).done, true, "nothing was written");
  });
}

// The engine has the rules, and Go's names of the options; who reads a message has these.
const claimed = async (eng: Engine) => {
  await eng.enqueue("q");
  return (await eng.claim("q", { worker: "w" }))[0]!;
};
const started = (work: object, options = {}) => (eng: Engine) => start(eng, { q: { handler: () => {}, ...work } }, options).done;

const named: [(eng: Engine) => Promise<unknown>, string][] = [
  [e => e.enqueue("q", "", { delayMS: -1 }), "delayMS is -1 ms, want 0 or more"],
  [e => e.enqueue("q", "", { delayMS: 1, runAt: 1 }), "runAt and delayMS are both set, want one"],
  [e => e.enqueue("q", "", { runAt: 9e15 }), "runAt is in the year 287168, want -280000 to 280000"],
  [e => e.enqueue("q", "", { expiresMS: -1 }), "expiresMS is -1 ms, want 0 or more"],
  [e => e.enqueue("q", "", { visibilityMS: -1 }), "visibilityMS is -1 ms, want 0 or more"],
  [e => e.enqueue("q", "", { maxAttempts: -1 }), "maxAttempts is -1, want 0 to 2147483647"],
  [e => e.enqueue("q", "", { baseBackoffMS: 3_600_001 }), "baseBackoffMS is 3600001 ms, want at most 3600000 ms"],
  [e => e.schedule("s", "@every 1h", "q", { timeoutMS: -1 }), "timeoutMS is -1 ms, want 0 or more"],
  [e => e.schedule("s", "@every 1h", "q", { breaker: 256 }), "breaker is 256, want -1 to 255"],
  [e => e.schedule("s", "@every 1h", "q", { catchUp: { count: 65 } }), "catchUp.count is 65, want 0 to 64"],
  [e => e.schedule("s", "@every 1h", "q", { activeHours: { from: "9", to: "10:00" } }), 'activeHours.from is "9", want hh:mm from 00:00 to 23:59'],
  [e => e.schedule("s", "@every 1h", "q", { activeHours: { from: "09:00", to: "10:00", zone: "Delay 5m" } }), 'activeHours.zone is "Delay 5m": it is none of the zones in the configuration'],
  [e => e.schedule("s", "@every 1h", "q", { anchor: -9e15 }), "anchor is in the year -283229, want -280000 to 280000"],
  [e => e.schedule("s", "@every 1h", "q", { runOnce: true, maxAttempts: 3 }), "maxAttempts is 3, want 1 or 0 with runOnce"],
  [e => e.claim("q", { worker: "w", max: 0 }), "max is 0, want 1 to 10000"],
  [e => e.claim("q", { worker: "w", max: 10_001 }), "max is 10001, want 1 to 10000"],
  [e => e.lock("l", { owner: "o", forMS: 86_400_001 }), "forMS is 86400001 ms, want whole milliseconds from 1 ms to 86400000 ms"],
  [async e => (await e.lock("l", { owner: "o", forMS: 1000 }))!.renew(0), "forMS is 0 ms, want whole milliseconds from 1 ms to 86400000 ms"],
  [async e => e.heartbeat(await claimed(e), -1), "forMS is -1 ms, want 0 or more"],
  [async e => e.retry(await claimed(e), "x", { afterMS: -1 }), "afterMS is -1 ms, want 0 or more"],
  [e => e.outbox("o").enqueue(1, { maxAttempts: -1 }), "maxAttempts is -1, want 0 to 2147483647"],
  [started({ concurrency: 10_001 }), "concurrency is 10001, want 1 to 10000"],
  [started({ timeoutMS: -1 }), "timeoutMS is -1 ms, want whole milliseconds from 1 ms to 9223372036854 ms"],
  [() => open({ batch: -1 }).lead(), "batch is -1, want 1 to 100000"],
  [() => open({ onTimeMS: -1 }).lead(), "onTimeMS is -1 ms, want whole milliseconds from 1 ms to 86400000 ms"],
  [() => open({ details: -1 }).lead(), "details is -1, want 1 to 100000"],
  [() => open({ limits: { runs: -1, skips: -1 } }).lead(), "limits.runs is -1, want 1 to 2147483647\ninvalid option: limits.skips is -1, want 1 to 2147483647"],
];

for (const [call, message] of named) {
  test(`an option is named as it was given: ${message}`, async () => {
    await using eng = open();
    await assert.rejects(call(eng), { name: "TickonceError", code: "invalid_option", message: `invalid option: ${message}` });
  });
}

test("an option is named as it was given in a transaction, and so is a limit", async () => {
  await using eng = open({ limits: { queueLength: 1, payload: 3 } });
  await assert.rejects(eng.tx().enqueue("q", "", { delayMS: -1 }).commit(), { message: "op 0, enqueue: invalid option: delayMS is -1 ms, want 0 or more" });
  await assert.rejects(eng.enqueue("q", "long"), { message: "limit exceeded: limits.payload is 3, this would make 4" });
  await eng.enqueue("q");
  await assert.rejects(eng.enqueue("q"), { message: /limit exceeded: limits.queueLength is 1, this would make 2 in "q"$/ });
});

test("what is no JSON is refused, and the engine is as it was", async () => {
  const records: number[] = [];
  const inner = memoryStore();
  for (const store of [undefined, { ...inner, append: async (b: Uint8Array) => (records.push(b.length), inner.append(b)) }]) {
    await using eng = open({ store });
    const seen = await eng.schedule("s", "@every 1h", "q");
    const cyclic: Record<string, unknown> = { ...seen };
    cyclic["self"] = cyclic;
    for (const bad of [cyclic, { ...seen, big: 1n }]) {
      assert.throws(() => eng.tx().unchanged("s", bad as never), /^TypeError: seen is no schedule as lookup answers it: /);
    }
    await eng.tx().unchanged("s", new Proxy(seen, {})).commit();
    const nothing = { toJSON() { throw new Error("too long"); } };
    await assert.rejects(eng.session.call("lookup", nothing), { code: "invalid_request", message: "the request is no text that JSON has: too long" });
    assert.equal((await eng.lookup("s"))!.name, "s");
  }
  assert.equal(records.length, 1, "no record is stored twice");
});

const opened: [object, RegExp][] = [
  [{ storage: {} }, /^options has no "storage", want any of store, leadership/],
  [{ store: {} }, /^options.store has no method load, want an object with load, append, replace$/],
  [{ leadership: () => {} }, /^options.leadership has no method acquire/],
  [{ seed: 0 }, /^options.seed is 0, want a whole number from 1/],
  [{ seed: 1n << 64n }, /^options.seed is 18446744073709551616/],
  [{ zones: { "Europe/Berlin": "TZif" } }, /^options.zones.Europe\/Berlin is "TZif", want a Uint8Array$/],
  [{ limits: { jobs: 1 } }, /^options.limits has no "jobs"/],
  [{ clockRepair: true }, /^options.clockRepair is true, want one of hold, rearm$/],
  [{ onEvent: {} }, /^options.onEvent is an object, want a function$/],
];

for (const [options, message] of opened) {
  test(`open refuses ${message.source}`, () => {
    assert.throws(() => open(options), (e: unknown) => e instanceof TypeError && message.test(e.message) || assert.fail(String(e)));
  });
}

test("start refuses what is no handler, options that are not known, and a second start", async () => {
  await using eng = open();
  const loose = start as unknown as (...args: unknown[]) => unknown;
  assert.throws(() => loose(eng, () => {}), /^TypeError: handlers is a function, want handlers by the names of their queues$/);
  assert.throws(() => loose(eng, { q: 5 }), /^TypeError: handlers.q is 5, want a function, or an object with a handler$/);
  assert.throws(() => loose(eng, { q: { concurrency: 2 } }), /^TypeError: handlers.q has no handler, which is needed$/);
  assert.throws(() => loose(eng, { q: { handler: () => {}, retries: 2 } }), /^TypeError: handlers.q has no "retries"/);
  assert.throws(() => loose(eng, {}, { signal: {} }), /^TypeError: options.signal is no AbortSignal$/);
  assert.throws(() => loose(eng, {}, { queues: {} }), /^TypeError: options has no "queues"/);
  start(eng);
  assert.throws(() => start(eng), /has been started/);
});
