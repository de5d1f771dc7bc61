import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { StoreError } from "../src/errors.js";
import type { Store } from "../src/store.js";
import { fileStore } from "../src/stores/file.js";
import { checksum, frameSize, headerSize } from "../src/stores/fileformat.js";
import { memoryStore } from "../src/stores/memory.js";

const root = mkdtempSync(join(tmpdir(), "tick-"));
after(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;
const directory = () => join(root, String(++directories));

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (b?: Uint8Array) => b && new TextDecoder().decode(b);
const code = (want: string) => (err: unknown) => err instanceof StoreError && err.code === want;

/** What a store holds, as texts. */
async function contents(store: Store) {
  const { snapshot, log } = await store.load();
  return { snapshot: text(snapshot), log: text(log) };
}

/** Loads a directory, and gives it back. */
async function reloaded(path: string) {
  const store = fileStore(path);
  const found = await contents(store);
  await store.close!();
  return found;
}

/** Makes a directory with these records in its log. */
async function logged(path: string, ...records: string[]) {
  const store = fileStore(path);
  await store.load();
  for (const record of records) await store.append(bytes(record));
  await store.close!();
}

const memory = memoryStore();
const path = directory();
for (const [name, open] of [["memory", () => memory], ["file", () => fileStore(path)]] as const) {
  test(`${name}: what was stored is loaded`, async () => {
    const steps: [(s: Store) => Promise<void>, { snapshot: string | undefined; log: string | undefined }][] = [
      [async () => {}, { snapshot: undefined, log: undefined }],
      [async (s) => s.append(bytes("a")), { snapshot: undefined, log: "a" }],
      [async (s) => (await s.append(bytes("b")), await s.append(bytes("c"))), { snapshot: undefined, log: "abc" }],
      [async (s) => s.replace(bytes("ABC")), { snapshot: "ABC", log: undefined }],
      [async (s) => (await s.append(bytes("d")), await s.append(bytes("e"))), { snapshot: "ABC", log: "de" }],
      [async (s) => (await s.replace(bytes("X")), await s.replace(bytes("Y")), await s.append(bytes("z"))), { snapshot: "Y", log: "z" }],
    ];
    for (const [work, want] of steps) {
      const store = open();
      await store.load();
      await work(store);
      await store.close?.();
      const again = open();
      assert.deepEqual(await contents(again), want);
      await again.close?.();
    }
  });
}

test("file: a replaced log leaves no file behind", async () => {
  const path = directory();
  await logged(path, "a");
  const store = fileStore(path);
  await store.load();
  await store.replace(bytes("A"));
  assert.deepEqual(readdirSync(path).filter((name) => !name.startsWith("lock-")), ["log-00000002", "snapshot-00000002"]);
  await store.close!();
});

test("file: an append that a crash has cut is cut off, wherever it was", async () => {
  const path = directory();
  await logged(path, "first", "second");
  const log = join(path, "log-00000001");
  const whole = readFileSync(log);
  const second = headerSize + frameSize + "first".length;
  for (let length = second; length < whole.length; length++) {
    writeFileSync(log, whole.subarray(0, length));
    assert.deepEqual(await reloaded(path), { snapshot: undefined, log: "first" });
    const store = fileStore(path);
    await store.load();
    await store.append(bytes("third"));
    await store.close!();
    assert.deepEqual(await reloaded(path), { snapshot: undefined, log: "firstthird" });
  }
});

test("file: a record that was on disk and is damaged is no crash", async () => {
  const path = directory();
  await logged(path, "first", "second");
  const log = join(path, "log-00000001");
  const whole = readFileSync(log);
  for (let at = 0; at < headerSize + frameSize + "first".length; at++) {
    const bad = Buffer.from(whole);
    bad[at]! ^= 1;
    writeFileSync(log, bad);
    await assert.rejects(reloaded(path), code("damaged"), `byte ${at}`);
    assert.deepEqual(readFileSync(log), bad);
  }
});

test("file: a missing log, one of another store and one of a later version are refused", async () => {
  const [path, other] = [directory(), directory()];
  for (const p of [path, other]) {
    await logged(p, "a");
    const store = fileStore(p);
    await store.load();
    await store.replace(bytes("A"));
    await store.close!();
  }
  const log = join(path, "log-00000002");
  writeFileSync(log, readFileSync(join(other, "log-00000002")));
  await assert.rejects(reloaded(path), code("damaged"));
  rmSync(log);
  await assert.rejects(reloaded(path), code("damaged"));
  const later = readFileSync(join(other, "log-00000002"));
  later[8] = 2;
  later.writeUInt32LE(checksum(later.subarray(0, 36)), 36);
  writeFileSync(join(other, "log-00000002"), later);
  await assert.rejects(reloaded(other), code("newer"));
});

test("file: one store at a time has a directory", async () => {
  const path = directory();
  const store = fileStore(path);
  await store.load();
  await store.append(bytes("a"));
  assert.equal((await contents(store)).log, "a", "loaded again by the same");
  await assert.rejects(fileStore(path).load(), code("taken"));
  const other = spawnSync(process.execPath, ["--input-type=module", "-e", `
    import { fileStore } from "tickonce/file";
    await fileStore(${JSON.stringify(path)}).load().catch((err) => console.log(err.code));
  `], { encoding: "utf8" });
  assert.equal(other.stdout, "taken\n", other.stderr);
  await store.append(bytes("b"));
  await store.close!();
  await assert.rejects(store.append(bytes("a")), code("unavailable"));
  assert.equal((await reloaded(path)).log, "ab");
});

test("file: of many that come at once at most one has the directory", async () => {
  const path = directory();
  await logged(path);
  for (let round = 0; round < 20; round++) {
    const stores = Array.from({ length: 5 }, () => fileStore(path));
    const came = await Promise.allSettled(stores.map((store) => store.load()));
    const refused = came.filter((c) => c.status === "rejected");
    assert.ok(refused.length >= 4, `${5 - refused.length} have it`);
    for (const c of refused) assert.ok(code("taken")(c.reason), String(c.reason));
    await Promise.all(stores.map((store) => store.close!()));
  }
});

// Prints the number of each record once it is stored, from the next one on.
const appender = (path: string) => `
  import { fileStore } from "tickonce/file";
  const store = fileStore(${JSON.stringify(path)});
  const { log = new Uint8Array(), snapshot } = await store.load();
  let n = Number(new TextDecoder().decode(snapshot ?? new Uint8Array())) + new TextDecoder().decode(log).split(";").length - 1;
  for (;;) {
    await store.append(new TextEncoder().encode(++n + ";"));
    console.log(n);
    if (n % 7 === 0) await store.replace(new TextEncoder().encode(String(n)));
  }`;

test("file: killed at any point, nothing is lost that was stored", async () => {
  const path = directory();
  let told = 0;
  for (let round = 1; round <= 8; round++) {
    const child = spawn(process.execPath, ["--input-type=module", "-e", appender(path)], { stdio: ["ignore", "pipe", "inherit"] });
    const until = told + 3 * round;
    for await (const chunk of child.stdout.setEncoding("utf8")) {
      for (const line of chunk.trim().split("\n")) told = Number(line);
      if (told >= until) child.kill("SIGKILL");
    }
    assert.equal(child.signalCode ?? (await new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)))), "SIGKILL");
    const { snapshot, log } = await reloaded(path);
    const from = Number(snapshot ?? 0);
    const numbers = (log ?? "").split(";").slice(0, -1).map(Number);
    assert.deepEqual(numbers, numbers.map((_, i) => from + 1 + i));
    const last = from + numbers.length;
    assert.ok(last === told || last === told + 1, `${told} were told, ${last} are there`);
    told = last;
  }
});

test("file: without room an append fails, and after a smaller snapshot it goes on", { skip: process.platform === "win32" }, async () => {
  const path = directory();
  const child = spawnSync("sh", ["-c", `ulimit -f 8; exec "$0" --input-type=module -e "$1"`, process.execPath, `
    import { fileStore } from "tickonce/file";
    const store = fileStore(${JSON.stringify(path)});
    await store.load();
    const codes = [];
    for (let i = 0; i < 20 && codes.length === 0; i++) await store.append(new Uint8Array(1000).fill(97)).catch((err) => codes.push(err.code));
    await store.append(new Uint8Array([98])).catch((err) => codes.push(err.code));
    await store.replace(new Uint8Array(100_000)).catch((err) => codes.push(err.code));
    await store.append(new Uint8Array([98])).catch((err) => codes.push(err.code));
    await store.replace(new Uint8Array([99]));
    await store.append(new Uint8Array([100]));
    console.log(codes.join());
  `], { encoding: "utf8" });
  assert.equal(child.stdout, "full,unavailable,full,unavailable\n", child.stderr);
  assert.deepEqual(await reloaded(path), { snapshot: "c", log: "d" });
});

test("file: a place that cannot be reached, and a path that is none, are refused", async () => {
  await assert.rejects(fileStore(join(root, "no", "parent")).load(), code("unavailable"));
  await assert.rejects(fileStore(join(root, "x".repeat(120))).load(), code("unavailable"));
  const file = directory();
  writeFileSync(file, "");
  await assert.rejects(fileStore(file).load(), code("unavailable"));
  assert.throws(() => fileStore(""), TypeError);
  assert.throws(() => fileStore(7 as never), TypeError);
  await assert.rejects(fileStore(directory()).append(bytes("a")), code("unavailable"));
});
