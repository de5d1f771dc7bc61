// What the tests of engines share.
import { Engine } from "../src/engine.js";
import type { OpenOptions } from "../src/engine.js";
import { LocalHost } from "../src/host.js";
import type { Leadership, Term } from "../src/leadership.js";
import type { Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { module } from "./guest.js";

export function open(options: OpenOptions = {}): Engine {
  return new Engine(new LocalHost(module), { seed: 7n, ...options });
}

/** A promise and what settles it. */
export class Gate<T = void> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;
  reject!: (error: unknown) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
  }
}

/** A store in memory that tells what it is asked, and fails where it is told to. */
export class Faulty implements Store {
  readonly calls: string[] = [];
  /** What the next calls fail with. */
  readonly faults: Partial<Record<keyof Store, unknown[]>> = {};
  /** What the next append waits for. */
  gate: Promise<void> | undefined;
  readonly #inner = memoryStore();

  #call(name: keyof Store): void {
    this.calls.push(name);
    const fault = this.faults[name]?.shift();
    if (fault) throw fault;
  }

  async load() {
    this.#call("load");
    return this.#inner.load();
  }

  async append(records: Uint8Array) {
    await this.gate;
    this.#call("append");
    return this.#inner.append(records);
  }

  async replace(snapshot: Uint8Array) {
    this.#call("replace");
    return this.#inner.replace(snapshot);
  }

  async close() {
    this.#call("close");
  }
}

/** Terms that a test gives, and takes away. */
export class Chair implements Leadership {
  readonly waiting: Gate<Term>[] = [];
  released = 0;
  #lost = new Gate();

  acquire(signal: AbortSignal): Promise<Term> {
    const gate = new Gate<Term>();
    signal.addEventListener("abort", () => gate.reject(signal.reason));
    this.waiting.push(gate);
    return gate.promise;
  }

  give(): void {
    this.#lost = new Gate();
    this.waiting.shift()!.resolve({ release: () => void this.released++, lost: this.#lost.promise });
  }

  take(): void {
    this.#lost.resolve();
  }
}

const traps = new Map<string, number>();
const instantiate = WebAssembly.instantiate as Function;
WebAssembly.instantiate = (async (module: WebAssembly.Module, imports: WebAssembly.Imports) => {
  const { exports } = (await instantiate(module, imports)) as WebAssembly.Instance;
  const trapping = ([name, value]: [string, unknown]) => [name, typeof value !== "function" ? value : (...args: unknown[]) => {
    const left = (traps.get(name) ?? 0) - 1;
    traps.set(name, left);
    if (left === 0) throw new WebAssembly.RuntimeError("unreachable");
    return value(...args);
  }];
  return { exports: Object.fromEntries(Object.entries(exports).map(trapping as (e: [string, unknown]) => [string, unknown])) };
}) as typeof WebAssembly.instantiate;

/** Makes the next call of an export trap, or one behind it, of whatever instance. */
export function trapNext(name: string, nth = 1): void {
  traps.set(name, nth);
}
