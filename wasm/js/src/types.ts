// What goes in and comes out. Instants are milliseconds since the Unix epoch, as
// Date.now() has them; durations are whole milliseconds in fields that end in MS.

/** An instant that is given. */
export type Instant = number | Date;

/** A payload that is given: bytes; a text; or any other value that JSON has, which is written as JSON. */
export type Payload = Uint8Array | string | Json;

/** A value that JSON has. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

/** How the boundaries of a schedule fire. What is left out has its default. */
export interface ScheduleOptions {
  /** What every job carries. Default: nothing. */
  payload?: Payload | undefined;
  /** How long a worker has for a job without a heartbeat. Default 5 min. */
  visibilityMS?: number | undefined;
  /** How often a job is tried. Default 3. */
  maxAttempts?: number | undefined;
  /** The base of the retry curve, at most 1 h. Default 1 min. */
  baseBackoffMS?: number | undefined;
  /** The higher is claimed sooner. Default 0. */
  priority?: number | undefined;
  /** A job that was not started so long after it was fired dies. Default: never. */
  expiresMS?: number | undefined;
  /**
   * Puts the boundaries on anchor + k·interval, in the past or in the future.
   * Default: that of the schedule if it is there with the same interval, else now.
   */
  anchor?: Instant | undefined;
  /**
   * Which of several missed boundaries fire: "all" (the 64 oldest, the default), "latest", "grace" (those not
   * later than half the interval, within 2 min and 2 h), "none" (only one that is on time), or one's own.
   */
  catchUp?: "all" | "latest" | "grace" | "none" | CatchUp | undefined;
  /** Whether a boundary fires while jobs of the schedule are live. Default "allow". */
  overlap?: "allow" | "skip" | "buffer_one" | undefined;
  /** The hours of the day in which boundaries fire, as {from: "09:00", to: "17:00", zone: "UTC"}. Default: all. */
  activeHours?: ActiveHours | undefined;
  /** Pauses the schedule for good when it fires first; that job is tried once. */
  runOnce?: boolean | undefined;
  /** How many jobs in a row have to fail to pause the schedule, at most 255; -1: never. Default 3. */
  breaker?: number | undefined;
  /** How long a run of its jobs may take. Default: as long as its worker allows. */
  timeoutMS?: number | undefined;
  /** Begins a new grid from now even if nothing else changed. */
  resetCursor?: boolean | undefined;
}

/** Those boundaries that are not later than the window, of these at most count, the oldest or the newest. */
export interface CatchUp {
  /** -1: half the interval, within 2 min and 2 h; -2: {@link OpenOptions.onTimeMS}. Default: none. */
  windowMS?: number | undefined;
  /** 1 to 64, the default. */
  count?: number | undefined;
  newest?: boolean | undefined;
}

/** Hours of the day, [from, to), which may wrap midnight. A zone but UTC is one of {@link OpenOptions.zones}. */
export interface ActiveHours {
  from: string;
  to: string;
  zone?: string | undefined;
}

/** A schedule as it was read or written, with its options resolved. */
export interface Schedule {
  name: string;
  spec: string;
  queue: string;
  payload: Uint8Array;
  options: ResolvedScheduleOptions;
  /** The next boundary that has neither fired nor been skipped. */
  next: number | undefined;
  /** When it is looked at; undefined while it is paused. */
  due: number | undefined;
  /** What paused it. */
  paused: "active" | "user" | "breaker" | "run_once";
  /** Jobs in a row that failed, as far as the breaker counts. */
  failures: number;
  /** Why it cannot fire for now: its queue is full, say. It is tried again every minute. */
  hold: Hold | undefined;
}

/** The options of a schedule, resolved. */
export interface ResolvedScheduleOptions {
  visibilityMS: number;
  maxAttempts: number;
  baseBackoffMS: number;
  priority: number;
  /** 0: never. */
  expiresMS: number;
  anchor: number;
  catchUp: { windowMS: number; count: number; newest: boolean };
  overlap: "allow" | "skip" | "buffer_one";
  activeHours: ActiveHours | undefined;
  runOnce: boolean;
  breaker: number;
  /** 0: none. */
  timeoutMS: number;
}

/** Why a schedule is held. */
export interface Hold {
  reason: string;
  since: number;
  times: number;
}

/** When and how a job runs. What is left out has its default. */
export interface EnqueueOptions {
  /** Ready so long after now. */
  delayMS?: number | undefined;
  /** Ready at that time; not together with a delay. */
  runAt?: Instant | undefined;
  /** The higher is claimed sooner. Default 0. */
  priority?: number | undefined;
  /** Dies if it was not started so long after it is ready. Default: never. */
  expiresMS?: number | undefined;
  /** Makes it safe to ask again: while a live job of the queue has the key, its id is answered and nothing is written. */
  key?: string | undefined;
  /** How long a claim lasts without a heartbeat. Default 5 min. */
  visibilityMS?: number | undefined;
  /** Default 3. */
  maxAttempts?: number | undefined;
  /** The base of the retry curve, at most 1 h. Default 1 min. */
  baseBackoffMS?: number | undefined;
}

/** How an entry of an outbox is delivered. */
export interface OutboxOptions {
  /** Default 5. */
  maxAttempts?: number | undefined;
  /** As {@link EnqueueOptions.key}. */
  key?: string | undefined;
}

/**
 * What names a claim: a job that was claimed will do. An engine that is opened from an older snapshot, or that leads
 * anew without a store, gives the same names to others: one from before is not passed to it.
 */
export interface Claim {
  readonly id: number;
  readonly attempt: number;
}

/** A job that ended without success. */
export interface DeadJob {
  id: number;
  queue: string;
  payload: Uint8Array;
  /** "" of a job that no schedule fired. */
  schedule: string;
  boundary: number | undefined;
  /** Of a delivery: the job whose result it is; else 0. */
  origin: number;
  attempts: number;
  lastError: string;
  enqueuedAt: number;
  diedAt: number;
}

/** What is known of a queue. */
export interface QueueInfo {
  name: string;
  pending: number;
  claimed: number;
  dead: number;
  /** Ever, and so are the following. */
  enqueued: number;
  claims: number;
  retried: number;
  done: number;
  died: number;
  cancelled: number;
  requeued: number;
  purged: number;
  /** When the next job can be claimed; undefined: nothing is waiting. */
  nextClaimAt: number | undefined;
  /** Jobs that wait for the end of another of their schedule. */
  waiting: number;
}

/** How a run ended. */
export type Execution = "ok" | "failed" | "timed_out" | "panicked" | "cancelled" | "lost";

/** How a delivery ended. */
export type Delivery = "none" | "delivered" | "transient" | "permanent";

/** Why boundaries did not fire. */
export type SkipReason = "pause" | "hours" | "policy" | "overlap" | "cap" | "missed" | "before";

/** Where a job is; undefined: it was cancelled, or is not kept. */
export type JobState = "pending" | "claimed" | "dead" | "done" | undefined;

/** An attempt of a job of a schedule, as it ended. */
export interface PastRun {
  id: number;
  schedule: string;
  /** undefined if it was fired by hand. */
  boundary: number | undefined;
  job: number;
  attempt: number;
  firedAt: number | undefined;
  lateMS: number;
  startedAt: number | undefined;
  finishedAt: number | undefined;
  execution: Execution;
  error: string;
  /** What became of the job. */
  then: JobState;
  summary: string;
  deliveries: Detail[];
}

/** A range of boundaries that did not fire, for one reason. */
export interface PastSkip {
  id: number;
  schedule: string;
  reason: SkipReason;
  first: number;
  last: number;
  everyMS: number;
  count: number;
  /** When the first and the last of them were skipped. */
  from: number | undefined;
  until: number | undefined;
}

/** How many runs of a schedule ever ended how, and how many boundaries were skipped why. */
export interface Totals {
  runs: Record<Execution, number>;
  skipped: Record<SkipReason, number>;
}

/** What became of a boundary. */
export interface Why {
  schedule: string;
  boundary: number;
  kind: "no_boundary" | "not_yet" | "fired" | "ran" | "skipped" | "missed" | "before" | "forgotten";
  /** The same for people. */
  text: string;
  /** Those that are kept of the boundary, the oldest first. */
  runs: PastRun[];
  /** The latest job that it fired; 0: not known. */
  job: number;
  state: JobState;
  lateMS: number;
  lateness: "on_time" | "late" | "caught_up";
  skip: PastSkip | undefined;
  paused: Schedule["paused"];
  hold: Hold | undefined;
  /** From when on the history knows everything. */
  since: number | undefined;
}

/** A summary of a run, or a try to deliver a result of it. */
export interface Detail {
  number: number;
  at: number;
  schedule: string;
  boundary: number | undefined;
  job: number;
  attempt: number;
  summary: string;
  /** How many results the run staged. */
  deliveries: number;
  outbox: string;
  entry: number;
  try: number;
  delivery: Delivery;
  last: boolean;
  error: string;
}

/** A boundary that fired. */
export interface Fire {
  job: number;
  boundary: number;
  schedule: string;
  queue: string;
}

/** Something that happened; each kind has the fields that apply to it. */
export interface EngineEvent {
  kind:
    | "scheduled" | "unscheduled" | "paused" | "resumed" | "breaker_opened" | "triggered"
    | "fired" | "skipped" | "quarantined" | "cursor_ahead" | "rearmed"
    | "leading" | "lease_lapsed" | "leadership_lost" | "stand_by" | "retrying" | "stopped"
    | "enqueued" | "claimed" | "buried" | "done" | "retried" | "died" | "claim_lost" | "cancelled" | "requeued"
    | "purged" | "abandoned" | "delivered" | "delivery_retried" | "delivery_failed";
  at: number;
  schedule?: string;
  queue?: string;
  job?: number;
  boundary?: number;
  origin?: number;
  execution?: Execution;
  delivery?: Delivery;
  first?: number;
  last?: number;
  count?: number;
  reason?: string;
  owner?: string;
  phase?: string;
  waitMS?: number;
  tookMS?: number;
  error?: string;
}

/** What one op of a transaction did. */
export interface TxResult {
  /** The id of the job of an enqueue, a trigger or a requeue; undefined of a plan. */
  job: number | undefined;
  /** There was a job with the key already. */
  existing: boolean;
  /** Of unschedule, pause, resume: whether there was something to do. */
  done: boolean;
  /** Of schedule, lookup and unchanged, if it is there. */
  schedule: Schedule | undefined;
}

/** Limits of an engine, which refuses what exceeds them. */
export interface Limits {
  /** Bytes. Default 1 MiB. */
  payload?: number | undefined;
  /** Jobs. Default 1,000,000. */
  queueLength?: number | undefined;
  /** Default 1,048,576. */
  schedules?: number | undefined;
  /** Bytes that are kept of an error's text. Default 1 KiB. */
  lastError?: number | undefined;
  /** Runs that are kept of each schedule. */
  runs?: number | undefined;
  /** Ranges of skipped boundaries that are kept of each schedule. */
  skips?: number | undefined;
  /** The same of all schedules. */
  history?: number | undefined;
}
