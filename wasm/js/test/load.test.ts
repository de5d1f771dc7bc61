// Where the module comes from, and what is said when it does not come.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";

import { TickonceError } from "../src/errors.js";
import { Guest } from "../src/guest.js";
import { moduleOf, once } from "../src/load.js";
import type { LoadOptions } from "../src/load.js";
import { load as loadSlim } from "../src/slim.js";
import { imports } from "../src/wasi.js";
import { module } from "./guest.js";
import { trapNext } from "./rig.js";

const bytes = readFileSync("dist/tickonce.wasm");
const empty = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);

const asked: string[] = [];
const server = createServer((request, response) => {
  asked.push(request.url!);
  const [type, body] = {
    "/tickonce.wasm": ["application/wasm", bytes],
    "/plain.wasm": ["application/octet-stream", bytes],
    "/page.wasm": ["text/html; charset=utf-8", "<!doctype html><title>app</title>"],
    "/typed-page.wasm": ["application/wasm", "<!doctype html><title>app</title>"],
    "/cut.wasm": ["application/wasm", bytes.subarray(0, 1000)],
    "/other.wasm": ["application/wasm", empty],
  }[request.url!] ?? [];
  response.writeHead(body ? 200 : 404, type ? { "content-type": type as string } : {}).end(body);
});

let at = "";
before(() => new Promise<void>(resolve => server.listen(0, "127.0.0.1", () => {
  at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  resolve();
})));
after(() => server.close());

const says = (message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof TickonceError, String(error));
  assert.equal(error.code, "load");
  assert.match(error.message, message);
  return true;
};

test("a module comes from an address, as bytes, or compiled", async t => {
  const warn = t.mock.method(console, "warn", () => {});
  for (const options of [{ wasmURL: `${at}/tickonce.wasm` }, { wasmURL: new URL(`${at}/tickonce.wasm`) }, { bytes }, { bytes: new Uint8Array(bytes).buffer }, { module }]) {
    await using eng = (await loadSlim(options)).open();
    assert.equal(await eng.enqueue("q"), 1);
  }
  assert.equal(warn.mock.callCount(), 0);
  assert.deepEqual(asked, ["/tickonce.wasm"], "an address is fetched once");
});

test("a wrong type is no obstacle, but is told", async t => {
  const warn = t.mock.method(console, "warn", () => {});
  await moduleOf({ wasmURL: `${at}/plain.wasm` });
  assert.match(warn.mock.calls[0]!.arguments[0], /plain.wasm is served as application\/octet-stream: as application\/wasm/);
});

for (const [what, path, message] of [
  ["a page", "/page.wasm", /page.wasm \(text\/html\) is a page, no module: .*give its address as wasmURL/],
  ["a page that is said to be a module", "/typed-page.wasm", /is a page, no module/],
  ["nothing", "/none.wasm", /none.wasm cannot be fetched: the server answers 404 Not Found/],
  ["a part of a module", "/cut.wasm", /cut.wasm \(application\/wasm\) cannot be compiled/],
] as const) {
  test(`${what} instead of the module is said to be that`, () => assert.rejects(moduleOf({ wasmURL: at + path }), says(message)));
}

test("a server that is not there is told", () =>
  assert.rejects(moduleOf({ wasmURL: "http://127.0.0.1:1/tickonce.wasm" }), says(/cannot be fetched/)));

test("bytes that are none of a module are told", () =>
  assert.rejects(moduleOf({ bytes: new Uint8Array(8) }), says(/^there is no WebAssembly module in options\.bytes/)));

test("another module does not start", async () => {
  await assert.rejects(Guest.of(await WebAssembly.compile(empty)), says(/does not start, want the tickonce.wasm of this package/));
});

test("a guest that has trapped is entered no more", async () => {
  const handle = (await Guest.of(module)).open(0, { seed: "7" });
  const call = () => handle.call(0, "lookup", { name: "s" });
  let death: unknown;
  trapNext("tk_call");
  assert.throws(call, error => (death = error, /trapped/.test(String(error))));
  for (const [name, enter] of [
    ["tk_call", call], ["tk_step", () => handle.step(0)], ["tk_out", () => handle.out()], ["tk_snapshot", () => handle.snapshot()],
  ] as const) {
    trapNext(name);
    assert.throws(enter, error => error === death, name);
    trapNext(name, 0);
  }
  trapNext("tk_close");
  handle.close();
  trapNext("tk_close", 0);
});

test("what is loaded is loaded once, and again after a failure", async () => {
  let n = 0;
  const loads = once(async () => {
    if (++n === 1) throw new TickonceError("load", "the net is down");
    return n;
  });
  const first = loads();
  assert.equal(loads(), first, "at once, twice");
  await assert.rejects(first, says(/down/));
  assert.equal(await loads(), 2);
  assert.equal(await loads(), 2);
});

test("options are one source, of the right type", async () => {
  const loose = moduleOf as (options: unknown) => Promise<unknown>;
  for (const [options, message] of [
    [{ wasmURL: "x", bytes }, /^options have wasmURL and bytes, want one of them$/],
    [{}, /^options have none of wasmURL, module, bytes/],
    [{ wasm: "x" }, /^options has no "wasm", want any of wasmURL, module, bytes$/],
    [{ wasmURL: 5 }, /^options.wasmURL is no string and no URL$/],
    [{ module: bytes }, /^options.module is no WebAssembly.Module$/],
    [{ bytes: "AGFzbQ" }, /^options.bytes are no ArrayBuffer/],
    [null, /^options is null/],
  ] as [LoadOptions, RegExp][]) {
    await assert.rejects(loose(options), (e: unknown) => e instanceof TypeError && message.test(e.message) || assert.fail(String(e)));
  }
});

test("the shim answers what the runtime asks before it dies, and says its last words", t => {
  const error = t.mock.method(console, "error", () => {});
  const memory = new WebAssembly.Memory({ initial: 1 });
  const view = new DataView(memory.buffer);
  const wasi = imports(() => memory.buffer)["wasi_snapshot_preview1"] as Record<string, (...args: unknown[]) => number>;
  view.setBigUint64(0, 77n, true); // a subscription to the clock, and one to a file
  view.setUint8(48 + 8, 2);
  assert.equal(wasi["poll_oneoff"]!(0, 512, 2, 1024), 0);
  assert.equal(view.getUint32(1024, true), 2);
  assert.deepEqual([view.getBigUint64(512, true), view.getUint16(520, true), view.getUint8(522), view.getUint8(554)], [77n, 0, 0, 2]);

  new Uint8Array(memory.buffer).set(new TextEncoder().encode("fatal: x\nand "), 2048);
  view.setUint32(0, 2048, true);
  view.setUint32(4, 13, true);
  assert.equal(wasi["fd_write"]!(2, 0, 1, 1024), 0);
  assert.equal(view.getUint32(1024, true), 13);
  assert.deepEqual(error.mock.calls.map(c => c.arguments[0]), ["tickonce: fatal: x"]);
  assert.equal(wasi["fd_write"]!(5, 0, 1, 1024), 8);

  assert.equal(wasi["random_get"]!(4096, 60_000), 0);
  assert.ok(new Uint8Array(memory.buffer, 4096, 60_000).some(b => b !== 0));
  assert.throws(() => wasi["proc_exit"]!(2), /exited with code 2/);
  for (const { name } of WebAssembly.Module.imports(module)) assert.equal(typeof wasi[name], "function", name);
});
