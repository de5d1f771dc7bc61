// Engines in another thread. The thread is one of the test's own: what it is
// told and says is cloned, as by a Worker.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Engine } from "../src/engine.js";
import type { OpenOptions } from "../src/engine.js";
import { TickonceError } from "../src/errors.js";
import { answerer, RemoteHost } from "../src/remote.js";
import type { Request } from "../src/remote.js";
import { start } from "../src/start.js";
import { memoryStore } from "../src/stores/memory.js";
import { module } from "./guest.js";

class Threads {
  live = 0;
  held: boolean | undefined;
  kill: (why: unknown) => void = () => {};
  readonly host = new RemoteHost(module, (told, gone) => {
    let over = false;
    this.live++;
    const answer = answerer(response => queueMicrotask(() => over || told(structuredClone(response))));
    const end = () => {
      over = true;
      this.live--;
    };
    this.kill = why => {
      end();
      gone(why);
    };
    return {
      post: request => {
        const sent: Request = request.kind === "module" ? request : structuredClone(request);
        setImmediate(() => over || answer(sent));
      },
      terminate: end,
      hold: on => void (this.held = on),
    };
  });

  open(options: OpenOptions = {}): Engine {
    return new Engine(this.host, { seed: 7n, ...options });
  }
}

test("an engine in another thread does what it does in this one", async () => {
  const threads = new Threads();
  await using eng = threads.open();
  const got = new Promise<string>(resolve => start(eng, { q: job => resolve(job.text()) }));
  await eng.enqueue("q", "hi");
  assert.equal(await got, "hi");
  await assert.rejects(eng.schedule("s", "daily", "q"), (e: unknown) => e instanceof TickonceError && e.code === "invalid_spec");
  const snapshot = await eng.snapshot();
  assert.equal(threads.live, 1);
  await eng.close();
  assert.equal(threads.live, 0, "nobody needs the thread");

  await using damaged = threads.open({ snapshot: snapshot.slice(1) });
  await assert.rejects(damaged.lead(), (e: unknown) => e instanceof TickonceError && e.code === "snapshot");
  assert.equal(threads.live, 0);
});

test("engines share a thread, and one that is gone is begun anew with their state", async () => {
  const threads = new Threads();
  await using a = threads.open({ store: memoryStore() });
  await using b = threads.open();
  await Promise.all([a.enqueue("q"), b.enqueue("q")]);
  assert.equal(threads.live, 1);
  const asked = assert.rejects(a.enqueue("q"), (e: unknown) => e instanceof TickonceError && e.code === "internal" && /thread is gone: killed/.test(e.message));
  await new Promise(setImmediate);
  threads.kill(new Error("killed"));
  await asked;
  assert.equal((await a.queue("q")).pending, 1);
  await assert.rejects(b.queue("q"), (e: unknown) => e instanceof TickonceError && e.code === "internal");
  await assert.rejects(b.queue("q"), (e: unknown) => e instanceof TickonceError && e.code === "closed");
});

test("an instance of a thread that is gone is refused, and begins no other", async () => {
  const threads = new Threads();
  const instance = await threads.host.open(0, { seed: "7" });
  threads.kill(new Error("killed"));
  await assert.rejects(instance.run([{ op: "snapshot", now: 0 }]), (e: unknown) => e instanceof TickonceError && e.code === "internal" && /thread is gone/.test(e.message));
  instance.close();
  assert.equal(threads.live, 0);
});

test("a process waits for the thread as long as something is asked of it", async () => {
  const threads = new Threads();
  const opened = threads.host.open(0, { seed: "7" });
  assert.equal(threads.held, true);
  const instance = await opened;
  assert.equal(threads.held, false);
  const timer = threads.host.setTimer(() => {}, 1e9);
  assert.equal(threads.held, true);
  threads.host.clearTimer(timer);
  assert.equal(threads.held, false);
  instance.close();
});

test("options may be proxies, as a framework's state is, which cannot be posted", async () => {
  const proxied = <T extends object>(value: T): T =>
    new Proxy(value, { get: (of, key) => {
      const field: unknown = Reflect.get(of, key);
      return typeof field === "object" ? proxied(field as object) : field;
    } });
  await using eng = new Threads().open(proxied({ limits: { schedules: 3 }, zones: {} }));
  const options = proxied({ catchUp: { count: 2 }, activeHours: { from: "08:00", to: "17:00", zone: "UTC" }, payload: { a: [1] } });
  const schedule = await eng.schedule("s", "@every 1h", "q", options);
  assert.deepEqual([schedule.options.catchUp.count, schedule.options.activeHours!.to], [2, "17:00"]);
  await eng.tx().schedule("t", "@every 1h", "q", options).enqueue("q", {}, proxied({ priority: 5 })).commit();
  const [job] = await eng.claim("q", proxied({ worker: "w", max: 1 }));
  assert.equal(job!.priority, 5);
});

test("timers that wait in a thread that is gone are due at once", async () => {
  const threads = new Threads();
  await threads.host.open(0, { seed: "7" });
  const due = new Promise<void>(resolve => threads.host.setTimer(resolve, 1e9));
  const never = threads.host.setTimer(() => assert.fail("it was cleared"), 1e9);
  threads.host.clearTimer(never);
  threads.kill(new Error("killed"));
  await due;
  assert.equal(threads.live, 0);
});

test("a timer that is set when another is due for a thread that is gone is not due itself, and begins no other", async () => {
  const threads = new Threads();
  await threads.host.open(0, { seed: "7" });
  let due = 0, timer: unknown;
  const again = () => {
    if (due++ < 10) timer = threads.host.setTimer(again, 1e9);
  };
  again();
  threads.kill(new Error("killed"));
  assert.deepEqual([due, threads.live], [2, 0]);
  threads.host.clearTimer(timer);
});

test("who is closed in a call is answered, and then its thread ends", async () => {
  const threads = new Threads();
  const instance = await threads.host.open(0, { seed: "7" });
  const ran = instance.run([{ op: "lookup", request: { name: "s" }, now: 0 }]);
  instance.close();
  assert.deepEqual((await ran).map(answer => answer.error), [undefined]);
  assert.equal(threads.live, 0);
});
