import { TickonceError } from "./errors.js";
import type { ErrorCode } from "./errors.js";
import type { Call, Leadership, Term } from "./leadership.js";
import { isRead } from "./ops.js";

// What tabs say to each other. A call is addressed to one term of one leader, so
// when another term begins it is known which calls nobody has seen.
type Message =
  | { kind: "who" } // leads?
  | { kind: "leads"; term?: string } // without a term: it takes no calls yet
  | { kind: "call"; term: string; id: string; call: Call }
  | { kind: "answer"; term: string; id: string; value?: unknown; error?: { code: ErrorCode; message: string } };

/** How often who waits in line asks whether anybody leads, and how often in vain until it takes the lead. */
const askEveryMS = 4000, mostInVain = 3;

/** A call that has no answer yet. */
interface Pending {
  call: Call;
  sentTo?: string;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** How long a call waits for its answer: a leader that stands still gives none. */
const answerMS = 30_000;

/** The leadership of a tab, see {@link webLocks}. */
export interface WebLocks extends Leadership {
  /** Whether this tab leads. */
  readonly leads: boolean;

  /** Ends this tab's term, if it leads: the next one in line leads, and this one stands behind all that wait. */
  resign(): void;
}

/**
 * Has one of the tabs and workers of an origin lead: the one that holds the Web
 * Lock of that name. The others wait in line, and send their calls to the one
 * that leads over a BroadcastChannel.
 *
 * The browser gives the lock to the next in line when a tab is closed, reloaded,
 * or its process dies. When the lock is stolen (`steal` of `navigator.locks`) the
 * term is lost at once.
 *
 * When the leader goes before it has answered, a read is sent to the next one; of
 * a write nobody knows whether it was done, and it rejects with "leader_gone" as
 * soon as the next one has the lock. So does a call that has no answer after 30 s;
 * one that no leader has seen by then was not done, and its error says so.
 *
 * A page that is frozen, or goes to the back/forward cache, resigns, and stands in
 * line again when it comes back. Not every browser tells a page that it will stand
 * still: a tab that leads and says nothing for a quarter of a minute is overtaken by
 * one that can be seen. Its term is lost then, which it learns when it goes on; the
 * store sees to it that it does nothing more till then.
 *
 * Throws a {@link TickonceError} "unavailable" where there are no Web Locks: in
 * Node before 24, and in pages that are neither of https nor of localhost.
 */
export function webLocks(name: string): WebLocks {
  if (typeof name !== "string" || name === "") {
    throw new TypeError("webLocks: the name is a text that is not empty");
  }
  const { locks } = globalThis.navigator ?? {};
  if (!locks) {
    throw new TickonceError("unavailable", "there are no Web Locks here: a page has them if it comes by https or from localhost, and Node from 24 on");
  }
  const shared = `tickonce:${name}`;
  const pending = new Map<string, Pending>();
  let channel: BroadcastChannel | undefined;
  let leader: string | undefined; // the latest term of another that was heard of
  let mine: { term: string; answer?: (call: Call) => Promise<unknown>; lose(): void } | undefined;

  const post = (message: Message) => channel?.postMessage(message);

  // A page that stands still neither leads nor waits in line, or nobody would lead
  // until it goes on. Nor does it listen: a message ends its stay in the cache.
  let going = Promise.resolve();
  let standing = new AbortController();

  function stand(): void {
    const goes = (going = new Promise((resolve) => {
      addEventListener("pageshow", () => resolve(), { once: true });
      document.addEventListener("resume", () => resolve(), { once: true });
    }));
    void goes.then(() => going === goes && users > 0 && listen());
    standing.abort();
    standing = new AbortController();
    mine?.lose();
    deafen();
    for (const p of pending.values()) {
      if (p.sentTo !== undefined) gone(p);
    }
  }

  // This tab listens while it leads, waits to lead, or for an answer.
  let users = 0;

  function enter(): void {
    if (users++ > 0) return;
    globalThis.addEventListener?.("pagehide", stand);
    globalThis.document?.addEventListener("freeze", stand);
    listen();
  }

  function leave(): void {
    if (--users > 0) return;
    globalThis.removeEventListener?.("pagehide", stand);
    globalThis.document?.removeEventListener("freeze", stand);
    deafen();
  }

  function listen(): void {
    channel?.close();
    channel = new BroadcastChannel(shared);
    channel.onmessage = ({ data }: MessageEvent<Message>) => heard(data);
    if (pending.size > 0) post({ kind: "who" });
  }

  function deafen(): void {
    channel?.close();
    channel = leader = undefined;
  }

  function heard(message: Message): void {
    switch (message.kind) {
      case "who":
        if (mine) post({ kind: "leads", ...(mine.answer && { term: mine.term }) });
        return;
      case "leads":
        inVain = 0;
        leader = message.term;
        if (leader !== undefined) patience = mostInVain;
        sendAll();
        return;
      case "call":
        if (message.term === mine?.term) void serve(message.term, message.id, message.call);
        return;
      case "answer":
        answered(message);
    }
  }

  async function serve(term: string, id: string, call: Call): Promise<void> {
    try {
      post({ kind: "answer", term, id, value: await mine!.answer!(call) });
    } catch (err) {
      const { code, message } = err instanceof TickonceError ? err : new TickonceError("error", String(err));
      post({ kind: "answer", term, id, error: { code, message } });
    }
  }

  function answered({ term, id, value, error }: Message & { kind: "answer" }): void {
    const p = pending.get(id);
    if (p?.sentTo !== term) return; // by one that was overtaken and does not know it yet
    if (!error) {
      p.resolve(value);
    } else if (error.code === "leadership_lost" || error.code === "closed") {
      gone(p); // and waits for the next one, if it can
      if (leader !== term) return;
      leader = undefined;
      post({ kind: "who" });
    } else {
      p.reject(new TickonceError(error.code, error.message));
    }
  }

  /** The leader that a call was sent to will not answer. */
  function gone(p: Pending): void {
    delete p.sentTo;
    if (!isRead(p.call.op, p.call.request)) {
      p.reject(new TickonceError("leader_gone", `the tab that leads went before it had answered ${p.call.op}: whether it was done is not known`));
    }
  }

  /** There is no answer in time. Where this tab leads by now, it waits for itself to have loaded. */
  function overdue(p: Pending): void {
    if (mine) return;
    const found = p.sentTo === undefined ? "no tab that leads was found" : "the tab that leads has not answered";
    const so = p.sentTo === undefined || isRead(p.call.op, p.call.request) ? "it was not done" : "whether it was done is not known";
    p.reject(new TickonceError("leader_gone", `${p.call.op}: ${found} within ${answerMS / 1000} s: ${so}`));
  }

  /** Sends what waits to the leader, and sees to what was sent to an earlier one. */
  function sendAll(): void {
    for (const [id, p] of pending) {
      if (p.sentTo === leader) continue;
      if (p.sentTo !== undefined) gone(p);
      if (leader === undefined || !pending.has(id)) continue;
      p.sentTo = leader;
      post({ kind: "call", term: leader, id, call: p.call });
    }
  }

  function begin(release: () => void): { term: Term; lose(): void } {
    const term = crypto.randomUUID();
    let lose!: () => void;
    const lost = new Promise<void>((resolve) => (lose = resolve));
    const over = () => {
      if (mine?.term !== term) return;
      mine = undefined;
      release();
      leave();
    };
    mine = {
      term,
      lose: () => {
        lose();
        over();
      },
    };
    leader = undefined;
    sendAll(); // nobody answers any more
    post({ kind: "leads" });
    return {
      lose: mine.lose,
      term: {
        lost,
        release: over,
        serve(answer) {
          if (mine?.term !== term) return;
          mine.answer = answer;
          patience = mostInVain;
          post({ kind: "leads", term });
        },
      },
    };
  }

  /** Waits in line for the lock, or steals it. */
  function request(options: LockOptions): Promise<Term> {
    return new Promise((resolve, reject) => {
      let lose: (() => void) | undefined;
      const held = () =>
        new Promise<void>((release) => {
          const begun = begin(release);
          lose = begun.lose;
          resolve(begun.term);
        });
      locks.request(shared, options, held).catch((err) => {
        if (!lose) return reject(err);
        post({ kind: "who" }); // some may have heard from this one that it leads when another did
        lose();
      });
    });
  }

  // Counted in questions, not by the clock, which goes on while the machine sleeps. It
  // takes twice as many after each theft until someone has begun: else two that are
  // slow to load would take the lead from each other for ever.
  let inVain = 0;
  let patience = mostInVain;

  /** Asks now and then whether anybody leads, until the watch is over; says when nobody has answered for long. */
  function watch(over: AbortSignal, silent: () => void): void {
    inVain = 0;
    const timer = setInterval(() => {
      // Who is hidden may be frozen itself before long; who leads, for another engine of this tab, does not hear itself.
      if (mine || globalThis.document?.visibilityState === "hidden") inVain = 0;
      else if (inVain++ < patience) post({ kind: "who" });
      else silent();
    }, askEveryMS);
    over.addEventListener("abort", () => clearInterval(timer));
  }

  return {
    get leads() {
      return mine !== undefined;
    },

    resign() {
      mine?.lose();
    },

    async acquire(signal) {
      enter();
      for (;;) {
        await going;
        const stands = standing.signal;
        const silent = new AbortController(), over = new AbortController();
        watch(over.signal, () => silent.abort());
        try {
          return await request({ signal: AbortSignal.any([signal, stands, silent.signal]) });
        } catch (err) {
          if (!signal.aborted && stands.aborted) continue;
          let why = err;
          if (!signal.aborted && silent.signal.aborted) {
            patience *= 2;
            try {
              return await request({ steal: true });
            } catch (refused) {
              why = refused;
            }
          }
          leave();
          throw why;
        } finally {
          over.abort();
        }
      }
    },

    ask(call, signal) {
      return new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        enter();
        const id = crypto.randomUUID();
        const done = () => {
          if (pending.delete(id)) leave();
          clearInterval(late);
          signal?.removeEventListener("abort", aborted);
        };
        const aborted = () => {
          done();
          reject(signal!.reason);
        };
        signal?.addEventListener("abort", aborted);
        const p: Pending = {
          call,
          resolve: (value) => {
            done();
            resolve(value);
          },
          reject: (reason) => {
            done();
            reject(reason);
          },
        };
        pending.set(id, p);
        const late = setInterval(() => overdue(p), answerMS);
        if (leader === undefined) post({ kind: "who" });
        sendAll();
      });
    },
  };
}
