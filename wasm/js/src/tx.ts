import { isFlag, isListOf, isOptions, isText, isWhole } from "./check.js";
import { TickonceError } from "./errors.js";
import { messageOf } from "./failure.js";
import { txResultOf } from "./replies.js";
import { claimOf, enqueueRequest, outboxRequest, scheduleRequest, seenRequest } from "./requests.js";
import type { Session } from "./session.js";
import type { Claim, EnqueueOptions, OutboxOptions, Payload, Schedule, ScheduleOptions, TxResult } from "./types.js";

/**
 * A transaction: what is put into it is done together by {@link commit}, or none
 * of it. Nothing happens before; what comes behind it throws "tx_done".
 *
 *     await eng.tx().ack(job).enqueue("next", { after: job.id }).commit();
 */
export class Tx {
  readonly #session: Session;
  readonly #ops: object[] = [];
  #committed = false;

  /** @internal */
  constructor(session: Session) {
    this.#session = session;
  }

  #refuseIfCommitted(): void {
    if (this.#committed) throw new TickonceError("tx_done", "the transaction was committed before: begin another");
  }

  #put(op: string, request: object): this {
    this.#refuseIfCommitted();
    this.#ops.push({ op, ...request });
    return this;
  }

  schedule(name: string, spec: string, queue: string, options: ScheduleOptions = {}): this {
    return this.#put("schedule", scheduleRequest(name, spec, queue, options));
  }

  unschedule(name: string): this {
    isText("name", name);
    return this.#put("unschedule", { name });
  }

  pause(name: string): this {
    isText("name", name);
    return this.#put("pause", { name });
  }

  resume(name: string, options: { catchUp?: boolean | undefined } = {}): this {
    isText("name", name);
    isOptions<{ catchUp?: boolean }>({ catchUp: isFlag })("options", options);
    return this.#put("resume", { name, ...options });
  }

  /** Reads a schedule as the ops before have left it, for the result of this op. */
  lookup(name: string): this {
    isText("name", name);
    return this.#put("lookup", { name });
  }

  /**
   * Makes the commit reject with "conflict" if the schedule is by now another than
   * `seen`, which is what {@link Engine.lookup} has answered: undefined, it was not there.
   */
  unchanged(name: string, seen: Schedule | undefined): this {
    isText("name", name);
    return this.#put("lookup", { name, seen: seenRequest(seen) });
  }

  trigger(name: string): this {
    isText("name", name);
    return this.#put("trigger", { name });
  }

  enqueue(queue: string, payload?: Payload, options: EnqueueOptions = {}): this {
    return this.#put("enqueue", enqueueRequest(queue, payload, options));
  }

  /** Puts an entry into an outbox. */
  deliver(outbox: string, payload?: Payload, options: OutboxOptions = {}): this {
    isText("outbox", outbox);
    return this.#put("enqueue", outboxRequest(outbox, payload, options));
  }

  /** A claim that is lost by then makes the commit reject with "claim_lost". */
  ack(...claims: Claim[]): this {
    return this.#put("ack", { claims: claims.map(claimOf) });
  }

  retry(claim: Claim, error: unknown): this {
    return this.#put("retry", { claim: claimOf(claim), error: { message: messageOf(error) } });
  }

  fail(claim: Claim, error: unknown): this {
    return this.#put("fail", { claim: claimOf(claim), error: { message: messageOf(error) } });
  }

  cancel(queue: string, job: number): this {
    isText("queue", queue);
    isWhole("job", job);
    return this.#put("cancel", { queue, job });
  }

  requeue(queue: string, job: number): this {
    isText("queue", queue);
    isWhole("job", job);
    return this.#put("requeue", { queue, job });
  }

  purge(queue: string, ...jobs: number[]): this {
    isText("queue", queue);
    isListOf(isWhole)("jobs", jobs);
    return this.#put("purge", { queue, jobs });
  }

  /** Does it, and answers what each op did. Rejects with a TickonceError that names the op at fault; nothing is done then. Once only, however it ends. */
  async commit(): Promise<TxResult[]> {
    this.#refuseIfCommitted();
    this.#committed = true;
    return this.#send(false);
  }

  /** Answers what a commit would do, without the ids of new jobs, and does nothing. */
  async plan(): Promise<TxResult[]> {
    this.#refuseIfCommitted();
    return this.#send(true);
  }

  async #send(plan: boolean): Promise<TxResult[]> {
    return ((await this.#session.call("tx", { ops: [...this.#ops], plan })).results ?? []).map(txResultOf);
  }
}
