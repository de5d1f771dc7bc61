import { TickonceError } from "./errors.js";
import type { ErrorCode } from "./errors.js";
import type { Call, Leadership, Term } from "./leadership.js";
import { isRead } from "./ops.js";

// What tabs say to each other. A call is addressed to one term of one leader, so
// when another term begins it is known which calls nobody has seen.
type Message =
  | { kind: "who" } // leads?
  | { kind: "leads"; term?: string } // without a term: nobody for now
  | { kind: "call"; term: string; id: string; call: Call }
  | { kind: "answer"; id: string; value?: unknown; error?: { code: ErrorCode; message: string } };

/** A call that has no answer yet. */
interface Pending {
  call: Call;
  sentTo?: string;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** How long a call waits for its answer: a leader that is frozen gives none. */
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
 * A leader that is frozen keeps its lock, and so nothing fires until it thaws;
 * then what was missed is caught up as after any sleep. Chromium does not freeze a
 * tab that holds a Web Lock to save energy; on phones it may all the same. A page
 * that goes to the back/forward cache resigns, and stands in line again when it
 * comes back.
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
    throw new TickonceError("unavailable", "there are no Web Locks here: a page has them if it comes by https or from localhost");
  }
  const shared = `tickonce:${name}`;
  const pending = new Map<string, Pending>();
  let channel: BroadcastChannel | undefined;
  let leader: string | undefined; // the latest term of another that was heard of
  let mine: { term: string; answer?: (call: Call) => Promise<unknown>; lose(): void } | undefined;

  const post = (message: Message) => channel?.postMessage(message);

  // A page in the back/forward cache neither leads nor waits in line, or nobody
  // would lead until the browser drops it.
  let shown = Promise.resolve();
  let hidden = new AbortController();

  function hide(): void {
    shown = new Promise((resolve) => addEventListener("pageshow", () => resolve(), { once: true }));
    hidden.abort();
    hidden = new AbortController();
    mine?.lose();
  }

  // The channel is open while this tab leads, waits to lead, or for an answer.
  let users = 0;

  function enter(): void {
    if (users++ > 0) return;
    globalThis.addEventListener?.("pagehide", hide);
    channel = new BroadcastChannel(shared);
    channel.onmessage = ({ data }: MessageEvent<Message>) => heard(data);
  }

  function leave(): void {
    if (--users > 0) return;
    globalThis.removeEventListener?.("pagehide", hide);
    channel?.close();
    channel = leader = undefined;
  }

  function heard(message: Message): void {
    switch (message.kind) {
      case "who":
        if (mine?.answer) post({ kind: "leads", term: mine.term });
        return;
      case "leads":
        leader = message.term;
        sendAll();
        return;
      case "call":
        if (message.term === mine?.term) void serve(message.id, message.call);
        return;
      case "answer":
        answered(message);
    }
  }

  async function serve(id: string, call: Call): Promise<void> {
    try {
      post({ kind: "answer", id, value: await mine!.answer!(call) });
    } catch (err) {
      const { code, message } = err instanceof TickonceError ? err : new TickonceError("error", String(err));
      post({ kind: "answer", id, error: { code, message } });
    }
  }

  function answered({ id, value, error }: Message & { kind: "answer" }): void {
    const p = pending.get(id);
    if (!p) return;
    if (!error) {
      p.resolve(value);
    } else if (error.code === "leadership_lost" || error.code === "closed") {
      gone(p); // and waits for the next one, if it can
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
          post({ kind: "leads", term });
        },
      },
    };
  }

  /** Waits in line for the lock. */
  function request(signal: AbortSignal): Promise<Term> {
    return new Promise((resolve, reject) => {
      let lose: (() => void) | undefined;
      const held = () =>
        new Promise<void>((release) => {
          const begun = begin(release);
          lose = begun.lose;
          resolve(begun.term);
        });
      locks.request(shared, { signal }, held).catch((err) => (lose ? lose() : reject(err)));
    });
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
        await shown;
        const away = hidden.signal;
        try {
          return await request(AbortSignal.any([signal, away]));
        } catch (err) {
          if (away.aborted && !signal.aborted) continue;
          leave();
          throw err;
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
