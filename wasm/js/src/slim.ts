import { LocalHost } from "./host.js";
import { moduleOf, Runtime } from "./load.js";
import type { LoadOptions } from "./load.js";

export * from "./api.js";

/** Loads the engine from what the options name: tickonce/slim brings no module of its own. */
export async function load(options: LoadOptions): Promise<Runtime> {
  return new Runtime(new LocalHost(await moduleOf(options ?? {})));
}
