import { readFile } from "node:fs/promises";

import { TickonceError } from "./errors.js";
import { messageOf } from "./failure.js";
import { compile } from "./load.js";

/** The module in the file beside this script. */
export async function fileModule(): Promise<WebAssembly.Module> {
  const url = new URL("./tickonce.wasm", import.meta.url);
  let bytes;
  try {
    bytes = await readFile(url);
  } catch (cause) {
    throw new TickonceError("load", `${url} cannot be read: ${messageOf(cause)}. A bundler has left it behind: leave tickonce out of the bundle, or give its bytes`, { cause });
  }
  return compile(bytes, String(url));
}
