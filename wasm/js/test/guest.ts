import { readFileSync } from "node:fs";

/** The module of the guest, compiled once. The tests run in the package's folder. */
export const module = new WebAssembly.Module(readFileSync("dist/tickonce.wasm"));
