import { LocalHost } from "./host.js";
import { compile, moduleOf, once, Runtime } from "./load.js";
import type { LoadOptions } from "./load.js";
import packed from "./tickonce.wasm.gz";
import { decodeBase64 } from "./values.js";

export * from "./api.js";

const own = once(async () => {
  const stream = new Blob([decodeBase64(packed) as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream("gzip"));
  return compile(await new Response(stream).arrayBuffer(), "the module in the script");
});

/** As load of tickonce, with the module in this script: there is no other file to serve. It is a third larger on its way. */
export async function load(options: LoadOptions = {}): Promise<Runtime> {
  return new Runtime(new LocalHost(await moduleOf(options, own)));
}
