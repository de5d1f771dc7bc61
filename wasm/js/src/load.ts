import { isOptions } from "./check.js";
import { Engine } from "./engine.js";
import type { OpenOptions } from "./engine.js";
import { TickonceError } from "./errors.js";
import { messageOf } from "./failure.js";
import type { Host } from "./host.js";

/** Where the module comes from; at most one of these. */
export interface LoadOptions {
  /** The address of tickonce.wasm. */
  wasmURL?: string | URL | undefined;
  /** The module, compiled. */
  module?: WebAssembly.Module | undefined;
  /** The bytes of tickonce.wasm. */
  bytes?: BufferSource | undefined;
}

export const isLoadOptions = isOptions<LoadOptions>({
  wasmURL: (name, value) => {
    if (typeof value !== "string" && !(value instanceof URL)) throw new TypeError(`${name} is no string and no URL`);
  },
  module: (name, value) => {
    if (!(value instanceof WebAssembly.Module)) throw new TypeError(`${name} is no WebAssembly.Module`);
  },
  bytes: (name, value) => {
    if (!(value instanceof ArrayBuffer || ArrayBuffer.isView(value))) throw new TypeError(`${name} are no ArrayBuffer and no Uint8Array`);
  },
});

/** A module that is loaded. Opens engines. */
export class Runtime {
  readonly #host: Host;

  /** @internal */
  constructor(host: Host) {
    this.#host = host;
  }

  /** Opens an engine, which waits for its lead and its state by itself. An option that is not known is a TypeError. */
  open(options?: OpenOptions): Engine {
    return new Engine(this.#host, options);
  }
}

/** The module that the options name, or that of `own`. Rejects with "load". */
export async function moduleOf(options: LoadOptions, own?: () => Promise<WebAssembly.Module>): Promise<WebAssembly.Module> {
  isLoadOptions("options", options);
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  if (given.length > 1) throw new TypeError(`options have ${given.map(([key]) => key).join(" and ")}, want one of them`);
  if (options.module) return options.module;
  if (options.bytes) return compile(options.bytes, "options.bytes");
  if (options.wasmURL !== undefined) return fetchOnce(String(options.wasmURL));
  if (own) return own();
  throw new TypeError("options have none of wasmURL, module, bytes, want one of them");
}

const fetched = new Map<string, () => Promise<WebAssembly.Module>>();

/** The module at the address, which is fetched and compiled once. */
export function fetchOnce(url: string): Promise<WebAssembly.Module> {
  let load = fetched.get(url);
  if (!load) fetched.set(url, (load = once(() => fetchModule(url))));
  return load();
}

/** Fetches a module and compiles it. */
async function fetchModule(url: string): Promise<WebAssembly.Module> {
  let response: Response;
  try {
    response = await fetch(url);
  } catch (cause) {
    throw new TickonceError("load", `${url} cannot be fetched: ${messageOf(cause)}`, { cause });
  }
  if (!response.ok) throw new TickonceError("load", `${url} cannot be fetched: the server answers ${response.status} ${response.statusText}`);
  const type = response.headers.get("content-type")?.split(";")[0]?.trim() ?? "no content type";
  const what = `${url} (${type})`;
  try {
    if (type === "application/wasm") return await WebAssembly.compileStreaming(response.clone());
  } catch {
    // The bytes tell why.
  }
  let bytes: ArrayBuffer;
  try {
    bytes = await response.arrayBuffer();
  } catch (cause) {
    throw new TickonceError("load", `${url} cannot be fetched whole: ${messageOf(cause)}`, { cause });
  }
  const module = await compile(bytes, what);
  if (type !== "application/wasm") console.warn(`tickonce: ${url} is served as ${type}: as application/wasm it is compiled while it loads, and cached`);
  return module;
}

/** Compiles bytes; what they are instead of a module is said. */
export async function compile(bytes: BufferSource, what: string): Promise<WebAssembly.Module> {
  const head = new Uint8Array(ArrayBuffer.isView(bytes) ? bytes.buffer : bytes, ArrayBuffer.isView(bytes) ? bytes.byteOffset : 0);
  if (!(head[0] === 0 && head[1] === 0x61 && head[2] === 0x73 && head[3] === 0x6d)) {
    const page = /^\s*</.test(new TextDecoder().decode(head.subarray(0, 64)));
    throw new TickonceError("load", page
      ? `${what} is a page, no module: the server answers with it where it has no file. Serve tickonce.wasm, and give its address as wasmURL`
      : `there is no WebAssembly module in ${what}: the magic word is missing`);
  }
  try {
    return await WebAssembly.compile(bytes);
  } catch (cause) {
    const policy = /Content.?Security.?Policy|unsafe-eval|disallowed by embedder/i.test(messageOf(cause));
    throw new TickonceError("load", policy
      ? `${what} may not be compiled: the page's Content-Security-Policy needs 'wasm-unsafe-eval' in script-src`
      : `${what} cannot be compiled: ${messageOf(cause)}`, { cause });
  }
}

/** Loads once, and again after a failure. */
export function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    if (!loading) {
      const begun = (loading = load());
      begun.catch(() => {
        if (loading === begun) loading = undefined;
      });
    }
    return loading;
  };
}
