/** What a store had of an engine's state; both are missing of a new one. */
export interface Stored {
  snapshot?: Uint8Array | undefined;
  /** The records that were appended since the snapshot, one behind the other. */
  log?: Uint8Array | undefined;
}

/**
 * Keeps an engine's state: a snapshot, and behind it the records of what has
 * changed since. The engine makes one call at a time. A call that fails rejects,
 * best with a {@link StoreError}; whether it has happened is then unknown, and the
 * engine replaces everything before it goes on.
 */
export interface Store {
  /**
   * Reads what there is, before everything else, for whoever leads; again after
   * the lead or the instance was lost. Who loads takes the state over: others
   * that had loaded it store nothing any more, but get a {@link StoreError}
   * "taken", after which only a load helps. A store that only one can have at a
   * time refuses the load of another by it.
   */
  load(): Promise<Stored>;

  /** Puts records behind the log: all of them or none. Resolves once they would survive a crash. */
  append(records: Uint8Array): Promise<void>;

  /** Puts a snapshot in the place of the snapshot and the log, atomically. */
  replace(snapshot: Uint8Array): Promise<void>;

  /** Gives back what the store holds open. Called once, after everything else. */
  close?(): Promise<void>;
}
