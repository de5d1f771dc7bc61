import assert from "node:assert/strict";
import { test } from "node:test";

import { TickonceError } from "../src/errors.js";
import type { Call, Term } from "../src/leadership.js";
import { webLocks } from "../src/weblocks.js";

// Locks as a browser has them: exclusive, in the order of the requests.
const lines = new Map<string, (() => void)[]>();
const holders = new Map<string, (reason: unknown) => void>();

const locks = {
  request(name: string, { signal, steal }: { signal?: AbortSignal; steal?: boolean }, work: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const line = lines.get(name) ?? [];
      lines.set(name, line);
      const grant = () => {
        signal?.removeEventListener("abort", abort);
        holders.set(name, reject);
        void work().then((value) => {
          resolve(value);
          if (holders.get(name) === reject) next();
        });
      };
      const next = () => {
        holders.delete(name);
        line.shift()?.();
      };
      const abort = () => {
        line.splice(line.indexOf(grant), 1);
        reject(signal!.reason);
      };
      if (steal) holders.get(name)?.(new DOMException("stolen", "AbortError"));
      if (steal || !holders.has(name)) return grant();
      signal?.addEventListener("abort", abort);
      line.push(grant);
    });
  },
};
Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });

const forever = new AbortController().signal;
const write: Call = { op: "enqueue", request: { queue: "mail" } };
const read: Call = { op: "lookup", request: { name: "report" } };
const code = (want: string) => (err: unknown) => err instanceof TickonceError && err.code === want;

function steal(name: string): () => void {
  let release!: () => void;
  locks.request(`tickonce:${name}`, { steal: true }, () => new Promise<void>((free) => (release = free))).catch(() => {});
  return release;
}

/** Leads until it is lost, and answers with its name. */
async function lead(leadership: ReturnType<typeof webLocks>, name: string): Promise<Term> {
  const term = await leadership.acquire(forever);
  term.serve!(async ({ op }) => `${name} did ${op}`);
  return term;
}

test("one leads, and the next one after it has released", async () => {
  const [a, b] = [webLocks("release"), webLocks("release")];
  const first = await a.acquire(forever);
  let granted = false;
  const second = b.acquire(forever).then((term) => {
    granted = true;
    return term;
  });
  await new Promise(setImmediate);
  assert.deepEqual([a.leads, b.leads, granted], [true, false, false]);
  first.release();
  (await second).release();
  assert.deepEqual([a.leads, b.leads], [false, false]);
});

test("who does not want to lead any more leaves the line", async () => {
  const [a, b] = [webLocks("line"), webLocks("line")];
  const term = await a.acquire(forever);
  const over = new AbortController();
  const waiting = b.acquire(over.signal);
  over.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  term.release();
  (await a.acquire(forever)).release();
});

test("a stolen lock ends the term at once, and its release later does no harm", async () => {
  const [a, b] = [webLocks("steal"), webLocks("steal")];
  const term = await a.acquire(forever);
  const release = steal("steal");
  await term.lost;
  assert.equal(a.leads, false);
  const next = b.acquire(forever);
  term.release();
  await new Promise(setImmediate);
  assert.equal(b.leads, false);
  release();
  (await next).release();
});

test("who resigns loses its term, and stands behind those that wait", async () => {
  const [a, b] = [webLocks("resign"), webLocks("resign")];
  const first = await a.acquire(forever);
  const second = b.acquire(forever);
  a.resign();
  await first.lost;
  const again = a.acquire(forever);
  const term = await second;
  assert.deepEqual([a.leads, b.leads], [false, true]);
  term.release();
  (await again).release();
});

test("calls are answered by the one that leads, errors with their code", async () => {
  const [a, b] = [webLocks("calls"), webLocks("calls")];
  const term = await a.acquire(forever);
  term.serve!(async ({ op, request }) => {
    if (op === "lookup") throw new TickonceError("not_found", "there is none");
    return { op, request };
  });
  assert.deepEqual(await b.ask!(write), { op: "enqueue", request: { queue: "mail" } });
  await assert.rejects(b.ask!(read), code("not_found"));
  term.release();
});

test("a call that nobody has seen waits for a leader, as long as its signal lets it", async () => {
  const [a, b] = [webLocks("wait"), webLocks("wait")];
  const asked = b.ask!(write);
  const over = new AbortController();
  const impatient = b.ask!(write, over.signal);
  over.abort(new Error("enough"));
  await assert.rejects(impatient, /enough/);
  await assert.rejects(b.ask!(write, over.signal), /enough/);
  const term = await lead(a, "a");
  assert.equal(await asked, "a did enqueue");
  term.release();
});

test("a leader goes before it has answered: reads go to the next one, of writes nobody knows", async () => {
  const [a, b, c] = [webLocks("gone"), webLocks("gone"), webLocks("gone")];
  const term = await a.acquire(forever);
  let seen = 0;
  const both = new Promise<void>((resolve) => {
    term.serve!(() => {
      if (++seen === 2) resolve();
      return new Promise(() => {});
    });
  });
  const reading = c.ask!(read);
  const writing = assert.rejects(c.ask!(write), code("leader_gone"));
  await both;
  const next = lead(b, "b");
  steal("gone")();
  await writing;
  assert.equal(await reading, "b did lookup");
  (await next).release();
});

test("writes are unknown as soon as the next one has the lock, however long it takes to load", async () => {
  const [a, b, c] = [webLocks("begins"), webLocks("begins"), webLocks("begins")];
  const term = await a.acquire(forever);
  const seen = new Promise<void>((resolve) => term.serve!(() => (resolve(), new Promise(() => {}))));
  const writing = assert.rejects(c.ask!(write), code("leader_gone"));
  await seen;
  const next = b.acquire(forever);
  steal("begins")();
  const begun = await next;
  await writing;
  begun.release();
});

test("a call that has no answer is given up, and says whether it may have been done", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const [a, b] = [webLocks("overdue"), webLocks("overdue")];
  const says = (message: RegExp) => (err: unknown) => code("leader_gone")(err) && message.test(String(err));
  const term = await a.acquire(forever);
  const unseen = assert.rejects(b.ask!(write), says(/enqueue: no tab that leads was found within 30 s: it was not done/));
  t.mock.timers.tick(30_000);
  await unseen;

  let seen = 0;
  const both = new Promise<void>((resolve) => term.serve!(() => (++seen === 2 && resolve(), new Promise(() => {}))));
  const asked = [
    assert.rejects(b.ask!(write), says(/has not answered within 30 s: whether it was done is not known/)),
    assert.rejects(b.ask!(read), says(/has not answered within 30 s: it was not done/)),
  ];
  await both;
  t.mock.timers.tick(30_000);
  await Promise.all(asked);
  term.release();
});

test("what waits for its own tab to load is not given up", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const a = webLocks("loading");
  const over = new AbortController();
  const waiting = assert.rejects(a.ask!(write, over.signal), /leads/);
  const term = await a.acquire(forever);
  t.mock.timers.tick(90_000);
  over.abort(new Error("leads"));
  await waiting;
  term.release();
});

test("a leader that is lost while it answers says so, and is gone for those that asked", async () => {
  const [a, b, c] = [webLocks("lost"), webLocks("lost"), webLocks("lost")];
  const term = await a.acquire(forever);
  let seen = 0;
  const both = new Promise<void>((resolve) => {
    term.serve!(async () => {
      if (++seen === 2) resolve();
      await term.lost;
      throw new TickonceError("leadership_lost", "lost");
    });
  });
  const reading = c.ask!(read);
  const writing = assert.rejects(c.ask!(write), code("leader_gone"));
  await both;
  const next = lead(b, "b");
  steal("lost")();
  await writing;
  assert.equal(await reading, "b did lookup");
  (await next).release();
});

test("what waits when its own tab leads is left to its signal: nothing is done twice", async () => {
  const a = webLocks("self");
  const over = new AbortController();
  const waiting = assert.rejects(a.ask!(write, over.signal), /leads/);
  const term = await a.acquire(forever);
  term.serve!(async () => assert.fail("the tab does its own calls"));
  over.abort(new Error("leads"));
  await waiting;
  term.release();
});

test("a write that was sent to the leader before is unknown to the tab that leads after it", async () => {
  const [a, b] = [webLocks("heir"), webLocks("heir")];
  const term = await a.acquire(forever);
  const seen = new Promise<void>((resolve) => {
    term.serve!(() => {
      resolve();
      return new Promise(() => {});
    });
  });
  const over = new AbortController();
  const sent = assert.rejects(b.ask!(write, over.signal), code("leader_gone"));
  await seen;
  const next = b.acquire(forever);
  steal("heir")();
  const own = await next;
  over.abort(new Error("leads"));
  await sent;
  own.release();
});

test("one that leads and answers nothing is overtaken, and one that answers never", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const ask = () => t.mock.timers.tick(4000);
  const channel = new BroadcastChannel("tickonce:still");
  let release!: () => void;
  const held = locks.request("tickonce:still", {}, () => new Promise<void>((free) => (release = free)));
  void held.catch(() => {});
  const a = webLocks("still");
  const granted = a.acquire(forever);
  await new Promise(setImmediate);

  channel.onmessage = ({ data }: MessageEvent) => {
    if (data.kind === "who") channel.postMessage({ kind: "leads", term: "other" });
    if (data.kind === "call") channel.postMessage({ kind: "answer", term: "other", id: data.id, value: "here" });
  };
  for (let i = 0; i < 10; i++) {
    ask();
    assert.equal(await a.ask!(read), "here"); // behind what was said before
  }
  channel.onmessage = null;
  const page = { visibilityState: "hidden", addEventListener() {}, removeEventListener() {} };
  Object.assign(globalThis, { document: page });
  t.after(() => Reflect.deleteProperty(globalThis, "document"));
  for (let i = 0; i < 10; i++) ask();
  page.visibilityState = "visible";
  for (let i = 0; i < 3; i++) ask();
  await new Promise(setImmediate);
  assert.equal(a.leads, false);
  ask();
  const begun = await granted;
  await assert.rejects(held);
  assert.equal(a.leads, true);

  // Overtaken before it takes calls, it waits for longer, lest it goes on like this.
  release();
  release = steal("still");
  await begun.lost;
  const again = a.acquire(forever);
  await new Promise(setImmediate);
  for (let i = 0; i < 6; i++) ask();
  await new Promise(setImmediate);
  assert.equal(a.leads, false);
  ask();
  (await again).release();
  release();
  channel.close();
});

test("one that shares the leadership of the one that leads, in the same tab, waits for its turn", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const shared = webLocks("shared");
  const first = await lead(shared, "first");
  const next = shared.acquire(forever);
  const lost = first.lost.then(() => "lost");
  await new Promise(setImmediate);
  for (let i = 0; i < 30; i++) t.mock.timers.tick(4000);
  assert.equal(await Promise.race([lost, new Promise(setImmediate).then(() => "leads")]), "leads");
  first.release();
  (await next).release();
});

test("an answer of one that was overtaken does not count", async () => {
  const [a, b, c] = [webLocks("stale"), webLocks("stale"), webLocks("stale")];
  const first = await a.acquire(forever);
  let goOn!: () => void, seen!: () => void;
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  const asked = new Promise<void>((resolve) => (seen = resolve));
  first.serve!(async () => {
    seen();
    await gate;
    return "as it was";
  });
  const reading = c.ask!(read);
  await asked;
  const channel = new BroadcastChannel("tickonce:stale");
  const answered = new Promise<void>((resolve) => {
    channel.onmessage = ({ data }: MessageEvent) => data.value === "as it was" && resolve();
  });
  const next = b.acquire(forever);
  steal("stale")();
  const second = await next;
  const again = a.acquire(forever);
  second.serve!(async () => {
    goOn();
    await answered;
    return "as it is";
  });
  assert.equal(await reading, "as it is");
  second.release();
  (await again).release();
  channel.close();
});

test("who took one that was overtaken for the one that leads hears of the other once that one knows it", async () => {
  const [a, c] = [webLocks("thawed"), webLocks("thawed")];
  const first = await a.acquire(forever);
  let seen!: () => void;
  const asked = new Promise<void>((resolve) => (seen = resolve));
  first.serve!(() => {
    seen();
    return new Promise(() => {});
  });
  const reading = c.ask!(read);
  await asked;
  const channel = new BroadcastChannel("tickonce:thawed");
  channel.onmessage = ({ data }: MessageEvent) => {
    if (data.kind === "who") channel.postMessage({ kind: "leads", term: "other" });
    if (data.kind === "call" && data.term === "other") channel.postMessage({ kind: "answer", term: "other", id: data.id, value: "as it is" });
  };
  const release = steal("thawed");
  assert.equal(await reading, "as it is");
  release();
  channel.close();
});

test("a name that is none, and a host without Web Locks, are refused", () => {
  assert.throws(() => webLocks(""), TypeError);
  assert.throws(() => webLocks(7 as never), TypeError);
  Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true });
  assert.throws(() => webLocks("x"), code("unavailable"));
  Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });
});
