/** The numbers of the calls, as ../../ABI.md has them. */
export const ops = {
  schedule: 1, unschedule: 2, pause: 3, resume: 4, trigger: 5, lookup: 6, schedules: 7, enqueue: 8, claim: 9, ack: 10,
  retry: 11, fail: 12, heartbeat: 13, deliver: 14, summarize: 15, cancel: 16, requeue: 17, purge: 18, sweep: 19,
  dead: 20, nextClaim: 21, queue: 22, queues: 23, lock: 24, renewLock: 25, releaseLock: 26, history: 27, skips: 28,
  totals: 29, why: 30, details: 31, tx: 32, start: 33, stop: 34, work: 35, stopWork: 36, end: 37, recovery: 38,
} as const;

export type Op = keyof typeof ops;

const reads: ReadonlySet<string> = new Set([
  "lookup", "schedules", "dead", "nextClaim", "queue", "queues", "history", "skips", "totals", "why", "details",
  "recovery", "snapshot",
]);

/** Whether a call changes nothing, so that it can be asked again without harm. */
export function isRead(op: string, request: object): boolean {
  return reads.has(op) || (op === "tx" && (request as { plan?: boolean }).plan === true);
}
