import { isListOf, isWhole } from "./check.js";
import type { Engine } from "./engine.js";
import { queueOf } from "./replies.js";
import { outboxRequest } from "./requests.js";
import type { DeadJob, OutboxOptions, Payload, QueueInfo } from "./types.js";

/** A queue of results to be delivered. What is in it is delivered by a handler of start's `outboxes`. */
export class Outbox {
  readonly #engine: Engine;
  readonly name: string;

  /** @internal */
  constructor(engine: Engine, name: string) {
    this.#engine = engine;
    this.name = name;
  }

  /** Puts an entry into the outbox and answers its id. */
  async enqueue(payload?: Payload, options: OutboxOptions = {}): Promise<number> {
    return (await this.#engine.session.call("enqueue", outboxRequest(this.name, payload, options))).job;
  }

  /** The entries that could not be delivered, by id. */
  dead(): AsyncGenerator<DeadJob, void, void> {
    return this.#engine.deadOf({ outbox: this.name });
  }

  /** Enqueues a dead entry anew, and answers its new id. */
  async requeue(entry: number): Promise<number> {
    isWhole("entry", entry);
    return (await this.#engine.session.call("requeue", { outbox: this.name, job: entry })).job;
  }

  /** Removes dead entries. */
  async purge(...entries: number[]): Promise<void> {
    isListOf(isWhole)("entries", entries);
    await this.#engine.session.call("purge", { outbox: this.name, jobs: entries });
  }

  /** Moves the entries that have no tries left to the dead ones, and answers how many. */
  async sweep(): Promise<number> {
    return (await this.#engine.session.call("sweep", { outbox: this.name })).count ?? 0;
  }

  /** When the next entry can be delivered; undefined: none is waiting. */
  async nextClaimAt(): Promise<number | undefined> {
    return (await this.#engine.session.call("nextClaim", { outbox: this.name })).at;
  }

  /** What is known of it. */
  async info(): Promise<QueueInfo> {
    return queueOf((await this.#engine.session.call("queue", { outbox: this.name })).queue);
  }
}
