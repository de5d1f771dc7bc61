import { TickonceError } from "./errors.js";
import { messageOf } from "./failure.js";
import { ops } from "./ops.js";
import type { Op } from "./ops.js";
import { imports } from "./wasi.js";

/** The version of the ABI that this package speaks. */
const abi = 1;

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  tk_abi(): number;
  tk_alloc(n: number): number;
  tk_free(block: number): void;
  tk_open(now: number, config: number, n: number, snapshot: number, n2: number, log: number, n3: number): number;
  tk_close(handle: number): void;
  tk_call(handle: number, now: number, op: number, request: number, n: number): bigint;
  tk_step(handle: number, now: number, most: number): number;
  tk_out(handle: number): bigint;
  tk_snapshot(handle: number): bigint;
  tk_error(): bigint;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
const nothing = new Uint8Array();

/**
 * An instance of the guest. After a trap it is dead: every call throws "internal".
 * Everything it hands out is a copy.
 */
export class Guest {
  readonly #exports: Exports;
  #dead: TickonceError | undefined;

  private constructor(exports: Exports) {
    this.#exports = exports;
  }

  /** Makes an instance. A module that is no guest of this package throws "load". */
  static async of(module: WebAssembly.Module): Promise<Guest> {
    let exports: Exports | undefined;
    let found: number;
    try {
      const instance = await WebAssembly.instantiate(module, imports(() => exports!.memory.buffer));
      exports = instance.exports as unknown as Exports;
      exports._initialize();
      found = exports.tk_abi();
    } catch (cause) {
      throw new TickonceError("load", `the module does not start, want the tickonce.wasm of this package: ${messageOf(cause)}`, { cause });
    }
    if (found !== abi) {
      throw new TickonceError("load", `the module has version ${found} of the ABI, want ${abi}: take the tickonce.wasm of this package`);
    }
    return new Guest(exports);
  }

  /** Why the instance is dead, if it is. */
  get dead(): TickonceError | undefined {
    return this.#dead;
  }

  open(now: number, config: object, snapshot: Uint8Array = nothing, log: Uint8Array = nothing): Handle {
    const handle = this.#enter(e =>
      this.#lend([encoder.encode(JSON.stringify(config)), snapshot, log], ([c, s, l]) =>
        e.tk_open(now, c!.at, c!.n, s!.at, s!.n, l!.at, l!.n)));
    if (handle < 0) throw this.#refusal();
    return new Handle(this, handle);
  }

  /** @internal */
  close(handle: number): void {
    if (!this.#dead) this.#enter(e => e.tk_close(handle));
  }

  /** @internal The reply, as JSON. */
  call(handle: number, now: number, op: number, request: Uint8Array): string {
    const place = this.#enter(e => this.#lend([request], ([r]) => e.tk_call(handle, now, op, r!.at, r!.n)));
    if (place === 0n) throw this.#refusal();
    return decoder.decode(this.#view(place));
  }

  /** @internal */
  step(handle: number, now: number, most: number): number {
    const next = this.#enter(e => e.tk_step(handle, now, most));
    if (Number.isNaN(next)) throw this.#refusal();
    return next;
  }

  /** @internal */
  out(handle: number): Uint8Array {
    return this.#view(this.#enter(e => e.tk_out(handle))).slice();
  }

  /** @internal */
  snapshot(handle: number): Uint8Array {
    const place = this.#enter(e => e.tk_snapshot(handle));
    if (place === 0n) throw this.#refusal();
    return this.#view(place).slice();
  }

  /** Enters the instance, which a trap kills. */
  #enter<T>(call: (exports: Exports) => T): T {
    if (this.#dead) throw this.#dead;
    try {
      return call(this.#exports);
    } catch (cause) {
      if (cause instanceof TickonceError) throw cause;
      this.#dead = new TickonceError("internal", `the engine has trapped: ${messageOf(cause)}`, { cause });
      throw this.#dead;
    }
  }

  /** Lends arguments to the instance for one call. */
  #lend<T>(arguments_: Uint8Array[], call: (places: { at: number; n: number }[]) => T): T {
    const { tk_alloc, tk_free } = this.#exports;
    const places: { at: number; n: number }[] = [];
    for (const bytes of arguments_) {
      const n = bytes.length;
      const at = n > 0 ? tk_alloc(n) >>> 0 : 0;
      places.push({ at, n }); // at 0 it is refused: there was no block that large
      if (at > 0) new Uint8Array(this.#exports.memory.buffer, at, n).set(bytes);
    }
    const answer = call(places);
    for (const p of places) if (p.at > 0) tk_free(p.at);
    return answer;
  }

  /** The bytes of a place, which the next call may move. */
  #view(place: bigint): Uint8Array {
    const at = Number((place >> 32n) & 0xffffffffn), n = Number(place & 0xffffffffn);
    return new Uint8Array(this.#exports.memory.buffer, at, n);
  }

  #refusal(): TickonceError {
    return refusalOf(decoder.decode(this.#view(this.#enter(e => e.tk_error()))));
  }
}

/** A request as a call takes it. Throws what JSON.stringify does. */
export function encodeRequest(request: object): Uint8Array {
  return encoder.encode(JSON.stringify(request));
}

/** A handle that is open in a guest. */
export class Handle {
  readonly #guest: Guest;
  readonly #handle: number;

  /** @internal */
  constructor(guest: Guest, handle: number) {
    [this.#guest, this.#handle] = [guest, handle];
  }

  /** Makes a call. */
  call(now: number, op: Op, request: object): unknown {
    return JSON.parse(this.callRaw(now, ops[op], encodeRequest(request)));
  }

  callRaw(now: number, op: number, request: Uint8Array): string {
    return this.#guest.call(this.#handle, now, op, request);
  }

  /** Steps the runner and the workers, and answers when to step next; Infinity: nothing is waited for. */
  step(now: number, most = 0): number {
    return this.#guest.step(this.#handle, now, most);
  }

  /** The records of the last call or step. */
  out(): Uint8Array {
    return this.#guest.out(this.#handle);
  }

  snapshot(): Uint8Array {
    return this.#guest.snapshot(this.#handle);
  }

  close(): void {
    this.#guest.close(this.#handle);
  }
}

/** The error that tk_error tells of. */
export function refusalOf(text: string): TickonceError {
  const { code, message = "" } = JSON.parse(text);
  return new TickonceError(code, message);
}
