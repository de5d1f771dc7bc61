// What a caller hands over, judged and as the requests have it: plain objects,
// which can be cloned and posted.

import { instantOf, isAny, isFlag, isInstant, isMS, isOneOf, isOptions, isText, isWhole, refuse } from "./check.js";
import type { ActiveHours, CatchUp, Claim, EnqueueOptions, OutboxOptions, Payload, Schedule, ScheduleOptions } from "./types.js";
import { messageOf } from "./failure.js";
import { encodePayload } from "./values.js";

/** The policies of catching up that have a name. */
const policies = {
  all: {},
  latest: { count: 1, newest: true },
  grace: { windowMS: -1 },
  none: { windowMS: -2, count: 1, newest: true },
} satisfies Record<string, CatchUp>;

const isCatchUp = isOptions<CatchUp>({
  windowMS: (name, value) => {
    isMS(name, value);
    if ((value as number) < -2) refuse(name, value, "whole milliseconds, or -1 or -2");
  },
  count: isWhole,
  newest: isFlag,
});
const isPolicy = isOneOf(...Object.keys(policies));

const isScheduleOptions = isOptions<ScheduleOptions>({
  payload: isAny,
  visibilityMS: isMS,
  maxAttempts: isWhole,
  baseBackoffMS: isMS,
  priority: isWhole,
  expiresMS: isMS,
  anchor: isInstant,
  catchUp: (name, value) => (typeof value === "object" ? isCatchUp : isPolicy)(name, value),
  overlap: isOneOf("allow", "skip", "buffer_one"),
  activeHours: isOptions<ActiveHours>({ from: isText, to: isText, zone: isText }, "from", "to"),
  runOnce: isFlag,
  breaker: isWhole,
  timeoutMS: isMS,
  resetCursor: isFlag,
});

/** A copy of an object of options, which may be a proxy. */
export function plain<T extends object>(options: T | undefined): T | undefined {
  return options && { ...options };
}

export function scheduleRequest(name: string, spec: string, queue: string, options: ScheduleOptions): object {
  isText("name", name);
  isText("spec", spec);
  isText("queue", queue);
  isScheduleOptions("options", options);
  const { payload, anchor, catchUp, activeHours, ...others } = options;
  return {
    name, spec, queue,
    payload: encodePayload(payload),
    options: {
      ...others, anchor: instantOf(anchor),
      catchUp: typeof catchUp === "string" ? policies[catchUp] : plain(catchUp), activeHours: plain(activeHours),
    },
  };
}

/** A schedule as it was answered, or that there was none. */
export function seenRequest(seen: Schedule | undefined): object {
  if (seen === undefined) return {};
  if (!(seen?.payload instanceof Uint8Array)) refuse("seen", seen, "a schedule as lookup answers it, or undefined");
  try {
    return JSON.parse(JSON.stringify({ schedule: { ...seen, payload: encodePayload(seen.payload) } }));
  } catch (cause) {
    throw new TypeError(`seen is no schedule as lookup answers it: ${messageOf(cause)}`, { cause });
  }
}

const isEnqueueOptions = isOptions<EnqueueOptions>({
  delayMS: isMS,
  runAt: isInstant,
  priority: isWhole,
  expiresMS: isMS,
  key: isText,
  visibilityMS: isMS,
  maxAttempts: isWhole,
  baseBackoffMS: isMS,
});

export function enqueueRequest(queue: string, payload: Payload | undefined, options: EnqueueOptions): object {
  isText("queue", queue);
  isEnqueueOptions("options", options);
  return { queue, payload: encodePayload(payload), options: { ...options, runAt: instantOf(options.runAt) } };
}

const isOutboxOptions = isOptions<OutboxOptions>({ maxAttempts: isWhole, key: isText });

export function outboxRequest(outbox: string, payload: Payload | undefined, options: OutboxOptions): object {
  isOutboxOptions("options", options);
  return { outbox, payload: encodePayload(payload), options: { ...options } };
}

/** The token of a claim, from a job or what has its id and attempt. */
export function claimOf(claim: Claim): { job: number; attempt: number } {
  if (!Number.isSafeInteger(claim?.id) || !Number.isSafeInteger(claim.attempt)) {
    throw new TypeError("the claim has no id and attempt, want a job that was claimed");
  }
  return { job: claim.id, attempt: claim.attempt };
}
