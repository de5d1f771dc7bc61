import { Worker } from "node:worker_threads";

import { moduleOf, once, Runtime } from "./load.js";
import type { LoadOptions } from "./load.js";
import { fileModule } from "./nodefile.js";
import { RemoteHost } from "./remote.js";
import type { Spawn } from "./remote.js";

export * from "./api.js";

const own = once(fileModule);

/** As that of worker.ts, in a thread of node:worker_threads. */
export async function load(options: LoadOptions = {}): Promise<Runtime> {
  return new Runtime(new RemoteHost(await moduleOf(options, own), spawn));
}

const spawn: Spawn = (told, gone) => {
  const worker = new Worker(new URL("./thread-node.js", import.meta.url), { name: "tickonce" });
  worker.on("message", told);
  worker.on("error", gone);
  worker.on("exit", code => gone(`it ended with code ${code}`));
  return {
    post: request => worker.postMessage(request),
    terminate: () => void worker.terminate(),
    hold: on => (on ? worker.ref() : worker.unref()),
  };
};
