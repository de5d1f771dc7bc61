// Replies leave out what is zero; these put it in.

import type {
  DeadJob, Detail, PastRun, PastSkip, QueueInfo, ResolvedScheduleOptions, Schedule, Totals, TxResult, Why,
} from "./types.js";
import { decodeBase64 } from "./values.js";

type Raw = Record<string, any>;

export function scheduleOf(raw: Raw): Schedule {
  return {
    name: "", spec: "", queue: "", next: undefined, due: undefined, paused: "active", failures: 0, hold: undefined, ...raw,
    payload: decodeBase64(raw["payload"]), options: optionsOf(raw["options"] ?? {}),
  };
}

function optionsOf(raw: Raw): ResolvedScheduleOptions {
  return {
    visibilityMS: 0, maxAttempts: 0, baseBackoffMS: 0, priority: 0, expiresMS: 0, anchor: 0, overlap: "allow",
    activeHours: undefined, runOnce: false, breaker: 0, timeoutMS: 0, ...raw,
    catchUp: { windowMS: 0, count: 0, newest: false, ...raw["catchUp"] },
  };
}

export function queueOf(raw: Raw): QueueInfo {
  return {
    name: "", pending: 0, claimed: 0, dead: 0, enqueued: 0, claims: 0, retried: 0, done: 0, died: 0, cancelled: 0,
    requeued: 0, purged: 0, nextClaimAt: undefined, waiting: 0, ...raw,
  };
}

export function deadOf({ enqueued, died, ...raw }: Raw): DeadJob {
  return {
    id: 0, queue: "", schedule: "", boundary: undefined, origin: 0, attempts: 0, lastError: "", ...raw,
    enqueuedAt: enqueued, diedAt: died, payload: decodeBase64(raw["payload"]),
  };
}

export function runOf({ fired, started, finished, ...raw }: Raw): PastRun {
  return {
    id: 0, schedule: "", boundary: undefined, job: 0, attempt: 0, lateMS: 0, execution: "ok", error: "", then: undefined,
    summary: "", ...raw,
    firedAt: fired, startedAt: started, finishedAt: finished, deliveries: (raw["deliveries"] ?? []).map(detailOf),
  };
}

export function skipOf(raw: Raw): PastSkip {
  return {
    id: 0, schedule: "", reason: "pause", first: 0, last: 0, everyMS: 0, count: 0, from: undefined, until: undefined, ...raw,
  };
}

export function totalsOf(raw: Raw): Totals {
  return {
    runs: { ok: 0, failed: 0, timed_out: 0, panicked: 0, cancelled: 0, lost: 0, ...raw["runs"] },
    skipped: { pause: 0, hours: 0, policy: 0, overlap: 0, cap: 0, missed: 0, before: 0, ...raw["skipped"] },
  };
}

export function whyOf(raw: Raw, text: string): Why {
  return {
    schedule: "", boundary: 0, kind: "no_boundary", job: 0, state: undefined, lateMS: 0, lateness: "on_time",
    paused: "active", hold: undefined, since: undefined, ...raw,
    text, runs: (raw["runs"] ?? []).map(runOf), skip: raw["skip"] && skipOf(raw["skip"]),
  };
}

export function detailOf(raw: Raw): Detail {
  return {
    number: 0, at: 0, schedule: "", boundary: undefined, job: 0, attempt: 0, summary: "", deliveries: 0, outbox: "",
    entry: 0, try: 0, delivery: "none", last: false, error: "", ...raw,
  };
}

export function txResultOf(raw: Raw): TxResult {
  return {
    job: raw["job"], existing: raw["existing"] ?? false, done: raw["done"] ?? false,
    schedule: raw["schedule"] && scheduleOf(raw["schedule"]),
  };
}
