import { LocalHost } from "./host.js";
import { fetchOnce, moduleOf, Runtime } from "./load.js";
import type { LoadOptions } from "./load.js";

export * from "./api.js";

const own = () => fetchOnce(new URL("./tickonce.wasm", import.meta.url).href);

/**
 * Loads the engine's module: the one beside this script, once, or the one that
 * the options name. Rejects with a TickonceError "load" that says what to do, and
 * can then be called again.
 */
export async function load(options: LoadOptions = {}): Promise<Runtime> {
  return new Runtime(new LocalHost(await moduleOf(options, own)));
}
