import { fetchOnce, moduleOf, Runtime } from "./load.js";
import type { LoadOptions } from "./load.js";
import { RemoteHost } from "./remote.js";
import type { Spawn } from "./remote.js";

export * from "./api.js";

const own = () => fetchOnce(new URL("./tickonce.wasm", import.meta.url).href);

/**
 * As load of tickonce, with the engines in a Worker: they do not hold up the page,
 * and its timers are punctual in a hidden tab, too. Handlers, stores and
 * leaderships are called in this thread.
 */
export async function load(options: LoadOptions = {}): Promise<Runtime> {
  return new Runtime(new RemoteHost(await moduleOf(options, own), spawn));
}

const spawn: Spawn = (told, gone) => {
  const worker = new Worker(new URL("./thread.js", import.meta.url), { type: "module", name: "tickonce" });
  worker.onmessage = ({ data }) => told(data);
  worker.onmessageerror = () => gone("what it said cannot be read");
  worker.onerror = event => gone(event.message || "its script cannot be loaded");
  return { post: request => worker.postMessage(request), terminate: () => worker.terminate() };
};
