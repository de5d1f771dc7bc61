/** A call of an engine, as it goes from one that follows to the one that leads. It can be cloned and posted. */
export interface Call {
  op: string;
  request: object;
}

/** A time of leading. */
export interface Term {
  /** Ends the term. Called once, and not if it is lost. */
  release(): void;

  /** Resolves when the term has ended without a release: another may lead. */
  lost: Promise<void>;

  /** Takes the function that answers the calls of those that follow, until the term is over. */
  serve?(answer: (call: Call) => Promise<unknown>): void;
}

/**
 * Lets one of several engines hold the state that they share at a time: the tabs
 * of a site, or processes with one file. The others follow: their operations
 * wait until they lead or, where there is {@link Leadership.ask}, are sent to the
 * one that leads.
 */
export interface Leadership {
  /** Waits for the lead. Rejects with the signal's reason once it is aborted. */
  acquire(signal: AbortSignal): Promise<Term>;

  /**
   * Sends a call to the engine that leads, and resolves with its answer. Rejects
   * with a TickonceError: that of the answer, or "leader_gone" where there is none
   * and will be none, or none in time: it must not wait for ever. The engine aborts the signal when it leads itself, after its
   * acquire, and then makes the call: a call that is rejected by the signal's
   * reason was not sent, or is a read.
   */
  ask?(call: Call, signal?: AbortSignal): Promise<unknown>;
}
