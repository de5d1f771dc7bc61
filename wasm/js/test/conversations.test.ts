// The corpus that every way to the engine has to speak, see ../../conversation.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { TickonceError } from "../src/errors.js";
import { Guest, refusalOf } from "../src/guest.js";
import type { Handle } from "../src/guest.js";
import { ops } from "../src/ops.js";
import type { Op } from "../src/ops.js";
import { parseRecords } from "../src/records.js";
import type { OutRecord } from "../src/records.js";
import { concat } from "../src/stores/concat.js";
import { module } from "./guest.js";

interface Step {
  say?: string;
  at: number;
  open?: object;
  from?: "snapshot" | "log" | "both";
  cut?: number;
  flip?: number;
  snapshot?: boolean;
  call?: string;
  request?: unknown;
  text?: string;
  step?: number;
  reply?: unknown;
  next?: number;
  out?: unknown[];
  error?: { code: string; message: string };
}

const encoder = new TextEncoder();
const folder = "../testdata/conversations/";

for (const file of readdirSync(folder)) {
  test(`conversation ${file}`, async () => {
    const steps: Step[] = JSON.parse(readFileSync(folder + file, "utf8"));
    const guest = await Guest.of(module);
    let handle: Handle | undefined;
    let snapshot: Uint8Array = new Uint8Array(), log: Uint8Array = new Uint8Array();
    steps.forEach((asked, i) => {
      const { reply, next, out, error, ...step } = asked;
      const found: Step = step;
      try {
        if (step.open) {
          const from = step.from === "snapshot" || step.from === "both" ? snapshot.slice() : new Uint8Array();
          if (step.flip) from[step.flip]! ^= 0xff;
          const behind = step.from === "log" || step.from === "both" ? log.slice(0, log.length - (step.cut ?? 0)) : new Uint8Array();
          const opened = guest.open(step.at, step.open, from, behind);
          handle?.close();
          [handle, log] = [opened, behind];
        } else if (step.call !== undefined) {
          const request = encoder.encode(step.text ?? JSON.stringify(step.request));
          found.reply = JSON.parse(handle!.callRaw(step.at, ops[step.call as Op] ?? 2 ** 31 - 1, request));
        } else if (step.step !== undefined) {
          const next = handle!.step(step.at, step.step);
          if (next !== Infinity) found.next = next;
        } else if (step.snapshot) {
          snapshot = handle!.snapshot();
        }
      } catch (e) {
        if (!(e instanceof TickonceError)) throw e;
        found.error = { code: e.code, message: e.message };
      }
      if (step.call !== undefined || step.step !== undefined) {
        const records = parseRecords(handle!.out());
        const told = records.filter(r => r.kind !== "journal");
        log = concat([log, ...records.flatMap(r => (r.kind === "journal" ? [r.data] : []))]);
        if (told.length > 0) found.out = told.map(text);
      }
      assert.deepEqual(found, asked, `step ${i}, ${step.say ?? ""}`);
    });
  });
}

for (const { say, bytes, records = [], refused } of vectors<{ say: string; bytes: string; records?: unknown[]; refused?: true }>("records.json")) {
  test(`records: ${say}`, () => {
    const out = new Uint8Array(Buffer.from(bytes, "hex"));
    if (refused) assert.throws(() => parseRecords(out), TickonceError);
    else assert.deepEqual(parseRecords(out).map(text), records);
  });
}

test("errors are read as they are told", () => {
  for (const { text, ...told } of vectors<{ text: string; code: string; message: string }>("errors.json")) {
    const { code, message } = refusalOf(text);
    assert.deepEqual({ code, message }, told);
  }
});

test("an argument that is too long is refused, and what was put out before is not put out again", async () => {
  const handle = (await Guest.of(module)).open(0, { seed: "7", journal: true });
  handle.call(0, "enqueue", { queue: "q" });
  assert.equal(parseRecords(handle.out()).length, 1);
  assert.throws(() => handle.callRaw(0, ops.enqueue, new Uint8Array(2 ** 30 + 1)), (e: unknown) =>
    e instanceof TickonceError && e.code === "invalid_request" && /longer than 2\^30 bytes/.test(e.message));
  assert.equal(handle.out().length, 0);
});

function vectors<T>(file: string): T[] {
  return JSON.parse(readFileSync("../testdata/" + file, "utf8"));
}

/** The record as the conversations have it: without fields of zero value. */
function text(record: OutRecord): unknown {
  const fields = Object.entries(record).map(([key, value]) => {
    if (value instanceof Uint8Array) value = Buffer.from(value).toString("base64");
    if (value instanceof TickonceError) value = { code: value.code, message: value.message };
    return [key, value];
  });
  return Object.fromEntries(fields.filter(([key, value]) => (value !== 0 || isInstant(key as string)) && value !== "" && value !== undefined));
}

const isInstant = (key: string) => ["boundary", "enqueued", "runAt", "deadline"].includes(key);
