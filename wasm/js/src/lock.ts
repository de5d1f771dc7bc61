/// <reference lib="esnext.disposable" preserve="true" />

import { isMS } from "./check.js";
import type { Session } from "./session.js";

/** A lock that is held until it is released or expires. It ends with the engine that gave it. */
export class Lock implements AsyncDisposable {
  readonly #session: Session;
  readonly name: string;
  /** Larger than that of every holder before. */
  readonly term: number;
  #expiresAt: number;

  /** @internal */
  constructor(session: Session, name: string, term: number, expiresAt: number) {
    this.#session = session;
    this.name = name;
    this.term = term;
    this.#expiresAt = expiresAt;
  }

  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** Makes it last so long from now. Answers false if it is lost. */
  async renew(forMS: number): Promise<boolean> {
    isMS("forMS", forMS);
    const { done = false, at } = await this.#session.call("renewLock", { term: this.term, forMS });
    if (done) this.#expiresAt = at;
    return done;
  }

  /** Gives it up. Answers false if it was lost. */
  async release(): Promise<boolean> {
    return (await this.#session.call("releaseLock", { term: this.term })).done ?? false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
