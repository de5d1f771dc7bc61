import { LocalHost } from "./host.js";
import { moduleOf, once, Runtime } from "./load.js";
import type { LoadOptions } from "./load.js";
import { fileModule } from "./nodefile.js";

export * from "./api.js";

const own = once(fileModule);

/** As that of index.ts, from the file beside this script. */
export async function load(options: LoadOptions = {}): Promise<Runtime> {
  return new Runtime(new LocalHost(await moduleOf(options, own)));
}
