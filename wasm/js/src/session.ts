import { StoreError, TickonceError } from "./errors.js";
import { messageOf } from "./failure.js";
import type { Answer, Ask, Host, Instance } from "./host.js";
import type { Call, Leadership, Term } from "./leadership.js";
import { isRead, ops } from "./ops.js";
import type { Op } from "./ops.js";
import { parseRecords } from "./records.js";
import type { OutRecord } from "./records.js";
import type { Store, Stored } from "./store.js";
import { concat } from "./stores/concat.js";

/** What runs an engine: it is told what the records say, once they may be acted on. */
export interface Listener {
  records(records: OutRecord[]): void;
  /** Something was written: a step may be due. */
  written(): void;
  /** The instance is gone, and with it every run in hand. */
  gone(why: TickonceError): void;
  /** The engine is being closed; resolves when the listener has stopped. */
  closing(): Promise<void>;
}

export interface SessionOptions {
  host: Host;
  config: object;
  store: Store | undefined;
  leadership: Leadership | undefined;
  snapshot: Uint8Array | undefined;
  onEvent: ((event: any) => void) | undefined;
  onLeading: ((leading: boolean) => void) | undefined;
}

/** A call that waits for its turn. */
interface Waiting {
  ask: (now: number) => Ask;
  bound: object | undefined; // the instance or the term with which it ends
  resolve(reply: any): void;
  reject(error: unknown): void;
}

/** The log is replaced by a snapshot once it is as large as the last one, and at least so large. */
const leastLog = 1 << 20;

/** How many calls are answered before their records are stored. */
const mostCalls = 256;

/** Who has loaded a store last. Each store tells others from itself, but not two sessions that share it. */
const loadedBy = new WeakMap<Store, Session>();

/** The calls of an engine that runs: they are none of one that follows. */
const own: ReadonlySet<string> = new Set(["start", "stop", "work", "stopWork", "end", "step"]);

/**
 * An engine with its state: the lead, the store, and the instance of the guest.
 *
 *     state      event                     to
 *     following  acquired                  loading
 *     loading    loaded                    leading
 *     loading    store or module fails     following, without the term; the next call begins anew
 *     leading    records cannot be stored  unstored
 *     unstored   a snapshot is stored      leading: what was withheld is told
 *     unstored   the guest traps           loading, without what was withheld
 *     leading    the state is taken over   following, without the term
 *     leading    the guest traps           loading, if there is a store; else closed
 *     any        the term is lost          following
 *     any        close                     closed
 */
export class Session {
  readonly #o: SessionOptions;
  readonly #closing = new AbortController();
  #waiting: Waiting[] = [];
  #pumping: Promise<void> | undefined;
  #closed: Promise<void> | undefined;
  #leading: Promise<void> | undefined;
  #term: Term | undefined;
  #instance: Instance | undefined;
  #unstored: OutRecord[] | undefined; // what is withheld until the state is stored
  #logSize = 0;
  #replaceAt = leastLog;
  readonly #asking = new Set<AbortController>(); // the one that leads
  #using: Promise<unknown> = Promise.resolve(); // the instance and the store

  listener: Listener | undefined;

  constructor(options: SessionOptions) {
    this.#o = options;
    this.lead().catch(() => {}); // whoever calls is told
  }

  get host(): Host {
    return this.#o.host;
  }

  get leading(): boolean {
    return this.#instance !== undefined;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Resolves once this engine leads and its state is loaded. */
  lead(): Promise<void> {
    if (!this.#leading) {
      const opening = (this.#leading = this.#open());
      // Once, and not by each call: one that follows may do so for days.
      const over = (why: unknown) => this.#asking.forEach(asking => asking.abort(why));
      opening.then(() => over(leads), error => {
        if (this.#leading && this.#leading !== opening) return; // the lead was lost meanwhile, and is waited for anew
        this.#leading = undefined;
        over(error);
      });
    }
    return this.#leading;
  }

  /** Makes a call, here or at the engine that leads. */
  async call(op: Op | "snapshot", request: object = {}): Promise<any> {
    this.#refuseIfClosed();
    if (!this.leading && this.#o.leadership?.ask && !own.has(op)) {
      const asking = new AbortController();
      this.#asking.add(asking);
      void this.lead();
      try {
        return await this.#o.leadership.ask({ op, request }, asking.signal);
      } catch (error) {
        if (error !== leads) throw error;
      } finally {
        this.#asking.delete(asking);
      }
    }
    return this.#turn(now => (op === "snapshot" ? { op, now } : { op, request, now }), own.has(op) ? this.#instance : undefined);
  }

  /** Steps the runner and the workers, here, and answers when to step next. */
  step(most: number): Promise<{ next: number; records: OutRecord[] }> {
    this.#refuseIfClosed();
    return this.#turn(now => ({ op: "step", most, now }), this.#instance);
  }

  /** Ends the session: what waits is refused, what is being stored is waited for. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    await this.listener?.closing();
    this.#closing.abort(new TickonceError("closed", "the engine was closed"));
    this.#refuseAll(this.#closing.signal.reason);
    await this.#pumping;
    await this.#using; // by an opening
    this.#drop();
    this.#release();
    const { store } = this.#o;
    if (store && (loadedBy.get(store) ?? this) === this) await store.close?.(); // else it is another's now
  }

  #refuseIfClosed(): void {
    this.#closing.signal.throwIfAborted();
  }

  #refuseAll(error: unknown): void {
    for (const w of this.#waiting.splice(0)) w.reject(error);
  }

  /** Refuses what waits for an instance or a term that is over. */
  #refuseBound(error: TickonceError): void {
    const over = ({ bound }: Waiting) => bound !== undefined && bound !== this.#instance && bound !== this.#term;
    for (const w of this.#waiting.filter(over)) w.reject(error);
    this.#waiting = this.#waiting.filter(w => !over(w));
  }

  /** Does something with the instance and the store, once what was begun with them before is over. */
  #inOrder(work: () => Promise<void>): Promise<void> {
    const done = this.#using.then(work);
    this.#using = done.catch(() => {});
    return done;
  }

  #turn(ask: Waiting["ask"], bound: object | undefined): Promise<any> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ask, bound, resolve, reject });
      this.#pumping ??= this.#pump();
    });
  }

  /** Takes the calls that wait in turns, until there are none. */
  async #pump(): Promise<void> {
    await undefined; // so that calls of one tick share a turn
    while (this.#waiting.length > 0) {
      try {
        await this.lead();
        await this.#inOrder(async () => {
          this.#refuseIfClosed();
          await this.#settle();
          await this.#takeTurn();
        });
      } catch (error) {
        this.#refuseAll(error);
      }
    }
    this.#pumping = undefined; // at once: who was just answered may call
  }

  /** One turn: calls, then one record of all that they wrote, and only then what comes of them. */
  async #takeTurn(): Promise<void> {
    const instance = this.#instance;
    if (!instance) return;
    const calls = this.#waiting.splice(0, mostCalls);
    const now = Date.now();
    const asks = calls.map(c => c.ask(now));
    let answers: Answer[], told: OutRecord[][];
    try {
      answers = await instance.run(asks);
      told = answers.map(a => parseRecords(a.out));
    } catch (cause) {
      answers = [{ error: { code: "internal", message: messageOf(cause) }, out: new Uint8Array() }];
      told = [[]];
    }
    const errors = answers.map(a => a.error && errorOf(a));
    const fault = errors.at(-1)?.code === "internal" ? errors.at(-1) : undefined;
    if (fault) this.#waiting.unshift(...calls.slice(answers.length)); // they were not begun
    calls.length = answers.length;
    const records = told.flat().filter(r => r.kind !== "journal" && !isClaimed(r));
    const answer = (i: number) => {
      if (errors[i]) calls[i]!.reject(errors[i]);
      else calls[i]!.resolve(valueOf(asks[i]!, answers[i]!, told[i]!));
    };

    const failure = await this.#keep(instance, told.flat(), !fault);
    if (this.#instance !== instance) {
      const lost = new TickonceError("leadership_lost", "another engine leads now: whether the operation has happened is not known");
      for (const c of calls) c.reject(lost);
      return;
    }
    if (failure) {
      // What an engine that runs is told of itself is in no record.
      calls.forEach((call, i) => {
        if (own.has(asks[i]!.op) && asks[i]!.op !== "step") answer(i);
        else call.reject(failure);
      });
      if (!fault) this.#unstored = records;
      if (failure.code === "taken") return this.#taken(failure);
    } else {
      calls.forEach((_, i) => answer(i));
      this.#tell(records);
      if (asks.some(ask => "request" in ask && !isRead(ask.op, ask.request))) this.listener?.written();
    }
    if (fault) this.#fault(fault);
  }

  /** Stores what the journal of a turn says. Answers why that failed. */
  async #keep(instance: Instance, records: OutRecord[], whole: boolean): Promise<StoreError | undefined> {
    const journal = records.flatMap(r => (r.kind === "journal" ? [r.data] : []));
    if (!this.#o.store || journal.length === 0) return undefined;
    if (this.#instance !== instance) return undefined; // it was given up meanwhile, and another may have the state
    const bytes = concat(journal);
    try {
      await this.#loaded().append(bytes);
      this.#logSize += bytes.length;
    } catch (cause) {
      return storeError(cause, "cannot store what has changed");
    }
    if (whole && this.#logSize >= this.#replaceAt && this.#instance === instance) {
      // What is stored is whole without it, so a failure is no failure of the turn.
      await this.#replace(instance).catch(() => (this.#replaceAt = 2 * this.#logSize));
    }
    return undefined;
  }

  /** Stores the state as a snapshot, if records of it could not be, and tells what was withheld. */
  async #settle(): Promise<void> {
    const withheld = this.#unstored, instance = this.#instance;
    if (!withheld || !instance) return;
    try {
      await this.#replace(instance);
    } catch (error) {
      if (error instanceof StoreError && error.code === "taken") this.#taken(error);
      if (error instanceof TickonceError && error.code === "internal") this.#fault(error); // the store is loaded, without what was withheld
      throw error;
    }
    if (this.#instance !== instance) return;
    this.#unstored = undefined;
    this.#tell(withheld);
    this.listener?.written();
  }

  async #replace(instance: Instance): Promise<void> {
    const term = this.#term;
    const [answer] = await instance.run([{ op: "snapshot", now: Date.now() }]);
    if (answer!.error) throw errorOf(answer!);
    if (this.#term !== term) throw another();
    const snapshot = answer!.reply as Uint8Array;
    try {
      await this.#loaded().replace(snapshot);
    } catch (cause) {
      throw storeError(cause, "cannot store the state");
    }
    this.#logSize = 0;
    this.#replaceAt = Math.max(leastLog, snapshot.length);
  }

  /** The store, unless another session has loaded it since. */
  #loaded(): Store {
    const store = this.#o.store!;
    if (loadedBy.get(store) !== this) throw new StoreError("taken", "another engine has loaded the same store since");
    return store;
  }

  #tell(records: OutRecord[]): void {
    for (const r of records) {
      if (r.kind === "event") safely(() => this.#o.onEvent?.(r.event));
    }
    this.listener?.records(records);
  }

  /** Waits for the lead, and begins to. */
  async #open(): Promise<void> {
    this.#refuseIfClosed();
    const signal = this.#closing.signal;
    const term = (this.#term ??= (await this.#o.leadership?.acquire(signal)) ?? alone);
    if (signal.aborted) {
      this.#release();
      throw signal.reason;
    }
    if (term !== alone) void term.lost.then(() => this.#lost(term));
    return this.#inOrder(() => this.#load(term));
  }

  /** Opens an instance with the state that is stored, and leads. */
  async #load(term: Term): Promise<void> {
    const { host, config, store } = this.#o;
    const refuseIfOver = () => {
      this.#refuseIfClosed();
      if (this.#term !== term) throw another();
    };
    let instance: Instance | undefined;
    try {
      refuseIfOver();
      if (store) loadedBy.set(store, this);
      const stored: Stored = store ? await load(store) : {};
      const snapshot = stored.snapshot ?? (stored.log?.length ? undefined : this.#o.snapshot);
      instance = await host.open(Date.now(), config, snapshot, stored.log).catch(cause => {
        throw store && cause instanceof TickonceError && cause.code === "snapshot"
          ? new StoreError(/newer/.test(cause.message) ? "newer" : "damaged", `what the store has cannot be read: ${cause.message}`, { cause })
          : cause;
      });
      this.#logSize = stored.log?.length ?? 0;
      this.#replaceAt = Math.max(leastLog, snapshot?.length ?? 0);
      if (store) {
        const [found] = await instance.run([{ op: "recovery", request: {}, now: Date.now() }]);
        if (found!.error) throw errorOf(found!);
        const torn = (found!.reply as { recovery?: { torn?: string } } | undefined)?.recovery?.torn;
        refuseIfOver();
        if (torn || snapshot !== stored.snapshot) await this.#replace(instance); // nothing may be appended behind a torn record
      }
      refuseIfOver();
      this.#instance = instance;
    } catch (error) {
      instance?.close();
      if (this.#term === term) this.#release();
      throw error;
    }
    safely(() => this.#o.onLeading?.(true));
    term.serve?.(call => this.#serve(call, term));
  }

  /** Answers a call of an engine that follows. */
  #serve({ op, request }: Call, term: Term): Promise<unknown> {
    if (!(Object.hasOwn(ops, op) || op === "snapshot") || own.has(op)) {
      return Promise.reject(new TickonceError("invalid_request", `there is no call ${op} of one that follows`));
    }
    return this.#turn(now => (op === "snapshot" ? { op, now } : { op: op as Op, request, now }), term);
  }

  #lost(term: Term): void {
    if (this.#term !== term || this.closed) return;
    this.#term = undefined;
    this.#lose(another());
    this.lead().catch(() => {});
  }

  /** Another engine has the state by now; this one does not lead before it has loaded it again. */
  #taken(why: StoreError): void {
    this.#release();
    this.#lose(new TickonceError("leadership_lost", why.message, { cause: why }));
  }

  /** The instance is of no more use. Its state is loaded anew, if there is a store. */
  #fault(error: TickonceError): void {
    this.#lose(error);
    if (this.#o.store) {
      this.lead().catch(() => {});
    } else {
      this.#closing.abort(new TickonceError("closed", `the engine is gone, and there is no store to open it from: ${error.message}`, { cause: error }));
      this.#release();
    }
  }

  /** Gives up the instance, with all that was to be done with it. */
  #lose(why: TickonceError): void {
    const led = this.leading;
    this.#drop();
    this.#refuseBound(why);
    if (!led) return;
    safely(() => this.#o.onLeading?.(false));
    this.listener?.gone(why);
  }

  #drop(): void {
    this.#instance?.close();
    this.#instance = this.#leading = this.#unstored = undefined;
  }

  #release(): void {
    const term = this.#term;
    this.#term = undefined;
    term?.release();
  }
}

/** Why one that leads asks no other. */
const leads = Symbol("leads");

/** The term of an engine that shares its state with none. */
const alone: Term = { release() {}, lost: new Promise<void>(() => {}) };

async function load(store: Store): Promise<Stored> {
  let stored: Stored;
  try {
    stored = await store.load();
  } catch (cause) {
    throw storeError(cause, "cannot load the state");
  }
  for (const part of ["snapshot", "log"] as const) {
    if (stored?.[part] !== undefined && !(stored[part] instanceof Uint8Array)) {
      throw new StoreError("damaged", `the ${part} that the store has loaded is no Uint8Array`);
    }
  }
  return stored ?? {};
}

function storeError(cause: unknown, what: string): StoreError {
  return cause instanceof StoreError ? cause : new StoreError("unavailable", `${what}: ${messageOf(cause)}`, { cause });
}

/** What a call resolves with. */
function valueOf(ask: Ask, { reply }: Answer, told: OutRecord[]): unknown {
  switch (ask.op) {
    case "step":
      return { next: reply, records: told };
    case "claim":
      return told.filter(isClaimed);
    default:
      return reply;
  }
}

/** A job that was claimed by a call, whose reply has it. */
function isClaimed(r: OutRecord): boolean {
  return r.kind === "begun" && r.run === 0;
}

function another(): TickonceError {
  return new TickonceError("leadership_lost", "another engine leads now");
}

function errorOf({ error }: Answer): TickonceError {
  return new TickonceError(error!.code, error!.message);
}

/** Calls what a user gave; what it throws is its own affair. */
export function safely(call: () => void): void {
  try {
    call();
  } catch (error) {
    console.error(error);
  }
}

