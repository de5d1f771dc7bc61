// The corpus that every way to the engine has to speak, see ../../conversation.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { TickonceError } from "../src/errors.js";
import { Guest } from "../src/guest.js";
import type { Handle } from "../src/guest.js";
import { ops } from "../src/ops.js";
import type { Op } from "../src/ops.js";
import { parseRecords } from "../src/records.js";
import type { OutRecord } from "../src/records.js";
import { module } from "./guest.js";

interface Step {
  say?: string;
  at: number;
  open?: object;
  from?: "snapshot" | "log" | "both";
  snapshot?: boolean;
  call?: string;
  request?: unknown;
  step?: number;
  reply?: unknown;
  next?: number;
  out?: unknown[];
  error?: { code: string; message: string };
}

const folder = "../testdata/conversations/";

for (const file of readdirSync(folder)) {
  test(`conversation ${file}`, async () => {
    const steps: Step[] = JSON.parse(readFileSync(folder + file, "utf8"));
    const guest = await Guest.of(module);
    let handle: Handle | undefined;
    let snapshot = new Uint8Array(), log = new Uint8Array();
    steps.forEach((asked, i) => {
      const { reply, next, out, error, ...step } = asked;
      const found: Step = step;
      try {
        if (step.open) {
          const from = step.from === "snapshot" || step.from === "both" ? snapshot : undefined;
          const opened = guest.open(step.at, step.open, from, step.from === "log" || step.from === "both" ? log : undefined);
          handle?.close();
          handle = opened;
          if (!step.from) log = new Uint8Array();
        } else if (step.call !== undefined) {
          found.reply = JSON.parse(handle!.callRaw(step.at, ops[step.call as Op] ?? 2 ** 31 - 1, new TextEncoder().encode(JSON.stringify(step.request))));
        } else if (step.step !== undefined) {
          const next = handle!.step(step.at, step.step);
          if (next !== Infinity) found.next = next;
        } else if (step.snapshot) {
          snapshot = handle!.snapshot() as typeof snapshot;
          log = new Uint8Array();
        }
        if (step.call !== undefined || step.step !== undefined) {
          const records = parseRecords(handle!.out());
          const told = records.filter(r => r.kind !== "journal");
          for (const r of records) if (r.kind === "journal") log = Uint8Array.of(...log, ...r.data);
          if (told.length > 0) found.out = told.map(text);
        }
      } catch (e) {
        if (!(e instanceof TickonceError)) throw e;
        found.error = { code: e.code, message: e.message };
      }
      assert.deepEqual(found, asked, `step ${i}, ${step.say ?? ""}`);
    });
  });
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
